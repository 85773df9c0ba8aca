"""Collect in one place what the laboratory imports from the inner modules of a run.

Other modules of `lab` import runs, their outcomes and their folders only from this file.
"""

from __future__ import annotations

from largegnn.api import Division
from largegnn.data.inputs import DataInput
from largegnn.embedding.train import TrainOutcome
from largegnn.evaluation.evaluate import evaluate
from largegnn.matching.match import MatchOutcome
from largegnn.parts import SEARCHERS
from largegnn.pipeline import run_pipeline, run_task
from largegnn.planning.plan import plan_division
from largegnn.rounds import RoundsOutcome
from largegnn.run import Run
from largegnn.runfolder.steps import derived_seed
from largegnn.runfolder.store import RunStore

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
