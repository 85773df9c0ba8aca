"""The stage `report`: what people look at, written into the run folder: pairs, unmatched entities, figures.

The files are the entries of the table of pages; a page is a function of what a finished run is, and a path.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    LiteralEvidence,
    PartitionQuality,
    RelationAlignment,
    TaskNames,
    UpdateReport,
    to_plain,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.summary import LoadSummary
from largegnn.seams.tables import PAGES
from largegnn.settings import ReportSettings, Settings
from largegnn.version import __version__

if TYPE_CHECKING:  # whoever only looks at a run need not load what trains and divides
    from largegnn.stages.literals import LiteralsOutcome
    from largegnn.stages.match import MatchOutcome
    from largegnn.stages.rounds import RoundsOutcome
    from largegnn.stages.search import SearchOutcome
    from largegnn.stages.train import TrainOutcome

__all__ = ["ReportInputs", "ReportOutcome", "Reported", "RunSummary", "report"]


@dataclass(frozen=True)
class RunSummary:
    """What a run is like: its settings, what each finished stage cost and found out; None for what is not done."""

    settings: Settings
    costs: Mapping[str, Cost]
    load: LoadSummary | None = None
    literals: LiteralsOutcome | None = None
    plan: DivisionPlan | None = None
    quality: PartitionQuality | None = None
    training: TrainOutcome | None = None
    rounds: RoundsOutcome | None = None
    search: SearchOutcome | None = None
    match: MatchOutcome | None = None
    evaluation: Evaluation | None = None
    update: UpdateReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values: the content of `report.json`."""
        evaluation, match = self.evaluation, self.match
        quality = to_plain(self.quality)
        if quality is not None and evaluation is not None:
            quality["test_kept"] = evaluation.test_kept
        return {
            "largegnn": __version__,
            "protocol": None if evaluation is None else to_plain(evaluation.protocol),
            "ideal": None if evaluation is None else to_plain(evaluation.ideal),
            "real": None if evaluation is None else to_plain(evaluation.real),
            "reliability": {
                "valid": None if match is None else to_plain(match.reliability),
                "test": None if evaluation is None else to_plain(evaluation.reliability),
            },
            "threshold": None if match is None else to_plain(match.threshold),
            "calibrated": None if match is None else match.calibration.is_calibrated,
            "calibration": None if match is None else to_plain(match.calibration),
            "pairs": None if match is None else match.num_accepted,
            "candidates": None if match is None else match.num_candidates,
            "evidence": None if match is None else list(match.evidence),
            "reasons": None if match is None else dict(match.reasons),
            "relations": None if match is None else to_plain(match.relations),
            "load": to_plain(self.load),
            "literals": to_plain(self.literals),
            "plan": to_plain(self.plan),
            "partition": quality,
            "cluster": None if self.training is None else to_plain(self.training.cluster),
            "history": None if self.training is None else to_plain(self.training.history),
            "rounds": None if self.rounds is None else to_plain(self.rounds.history),
            "search": to_plain(self.search),
            "stages": to_plain(self.costs),
            "settings": self.settings.model_dump(mode="json"),
            **({} if self.update is None else {"update": to_plain(self.update)}),
        }


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

    files: Mapping[str, int]


@dataclass(frozen=True)
class Reported:
    """Pages in the run folder."""

    outcome: ReportOutcome


def report(
    task: AlignmentTask,
    names: TaskNames,
    alignment: Alignment,
    summary: RunSummary,
    report: ReportSettings,
    folder: Path,
    literal_evidence: LiteralEvidence | None = None,
    relations: RelationAlignment | None = None,
    literals: Literals | None = None,
) -> Reported:
    """Write every page the settings name."""
    equal = LiteralEvidence.empty() if literal_evidence is None else literal_evidence
    answering = RelationAlignment.empty() if relations is None else relations
    inputs = ReportInputs(task, names, alignment, summary, equal.duplicates, answering, literals)
    files = {name.rpartition(":")[2]: PAGES[name](inputs, folder / name.rpartition(":")[2]) for name in report.pages}
    return Reported(ReportOutcome(files))
