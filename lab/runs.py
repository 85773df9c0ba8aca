"""Import the run of the program from one place: everything here that depends on how a run is laid out.

Other modules of `lab` import runs, their outcomes and their folders from this file alone.
"""

from __future__ import annotations

from largegnn.api import Division
from largegnn.data.inputs import DataInput
from largegnn.embedding.train import TrainOutcome
from largegnn.parts import SEARCHERS
from largegnn.pipeline import run_pipeline, run_task
from largegnn.planning.sizes import plan_division
from largegnn.rounds import RoundsOutcome
from largegnn.run import Run
from largegnn.runfolder.steps import derived_seed
from largegnn.runfolder.store import RunStore
from largegnn.stages.evaluate import evaluate
from largegnn.stages.match import MatchOutcome

__all__ = [
    "SEARCHERS",
    "DataInput",
    "Division",
    "MatchOutcome",
    "RoundsOutcome",
    "Run",
    "RunStore",
    "TrainOutcome",
    "derived_seed",
    "evaluate",
    "plan_division",
    "run_pipeline",
    "run_task",
]
