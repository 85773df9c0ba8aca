"""Import the run of the program from one place: everything here that depends on how a run is laid out.

Other modules of `lab` import runs, their outcomes and their folders from this file alone.
"""

from __future__ import annotations

from largegnn.runs.on_task import division_of, run_task
from largegnn.runs.pipeline import resume_input, run_pipeline
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore
from largegnn.stages.rounds import RoundsOutcome

from largegnn.data.inputs import DataInput
from largegnn.planning.sizes import plan_division
from largegnn.seams.tables import SEARCHERS
from largegnn.stages import derived_seed
from largegnn.stages.evaluate import evaluate
from largegnn.stages.match import MatchOutcome
from largegnn.stages.train import TrainOutcome

__all__ = [
    "SEARCHERS",
    "DataInput",
    "MatchOutcome",
    "RoundsOutcome",
    "Run",
    "RunStore",
    "TrainOutcome",
    "derived_seed",
    "division_of",
    "evaluate",
    "plan_division",
    "resume_input",
    "run_pipeline",
    "run_task",
]
