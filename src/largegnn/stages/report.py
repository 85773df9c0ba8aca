"""The stage `report`: what people look at, written into the run folder: pairs, unmatched entities, figures.

The files are the entries of the table of pages; a page is a function of what a finished run is, and a path.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    Cost,
    DivisionPlan,
    Evaluation,
    IntArray,
    PartitionQuality,
    RelationAlignment,
    TaskNames,
    to_plain,
)
from largegnn.artifacts.literal_evidence import LiteralEvidence
from largegnn.artifacts.literals import Literals
from largegnn.artifacts.update import UpdateReport
from largegnn.data.summary import LoadSummary
from largegnn.seams.tables import PAGES
from largegnn.run import RunSummary
from largegnn.settings import ReportSettings
from largegnn.version import __version__

if TYPE_CHECKING:  # whoever only looks at a run need not load what trains and divides
    from largegnn.stages.literals import LiteralsOutcome
    from largegnn.stages.match import MatchOutcome
    from largegnn.stages.search import SearchOutcome
    from largegnn.stages.train import TrainOutcome

__all__ = ["ReportInputs", "ReportOutcome", "Reported", "RunSummary", "report"]


@dataclass(frozen=True)
class ReportInputs:
    """What a page is made of; `duplicates` (d, 2) are entities of one side with equal names that contradict nothing."""

    task: AlignmentTask
    names: TaskNames
    alignment: Alignment
    summary: RunSummary
    duplicates: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    relations: RelationAlignment = field(default_factory=RelationAlignment.empty)
    literals: Literals | None = None


@dataclass(frozen=True)
class ReportOutcome:
    """The files written, with the rows in each."""

    pages: Mapping[str, int]


@dataclass(frozen=True)
class Reported:
    """Pages in the run folder."""

    outcome: ReportOutcome


def report(
    task: AlignmentTask,
    names: TaskNames,
    literals: Literals,
    evidence: LiteralEvidence,
    alignment: Alignment,
    relations: RelationAlignment,
    evaluation: Evaluation,
    settings: ReportSettings,
    *,
    summary: RunSummary,
    folder: Path,
) -> Reported:
    """Write every page the settings name."""
    summary = dataclasses.replace(summary, evaluation=evaluation)
    inputs = ReportInputs(task, names, alignment, summary, evidence.duplicates, relations, literals)
    return Reported(ReportOutcome({name: PAGES[name](inputs, folder / name) for name in settings.pages}))
