"""Keep the state of a review: the pairs to decide, the decisions so far, and the precision measured by them.

In: a finished run and a file of decisions. Out: views of pairs, the worklist, verdicts, the precision so far. Nothing
here depends on the web; several reviewers may use one session at the same time.
The precision is measured on the random sample only, because reviewers choose doubtful pairs first, and these are wrong
more often than the average pair.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.decisions import Decision, Verdict, verdicts
from largegnn.data.names import EntityNames
from largegnn.errors import InputError
from largegnn.review.cuts import selected_pairs, wilson_interval
from largegnn.review.decisions import DecisionLog
from largegnn.review.lookup import Rows
from largegnn.review.pair_view import PairView, PairViewer
from largegnn.review.worklist import Filters, Worklist

if TYPE_CHECKING:
    from largegnn.run import RunSummary

__all__ = ["Progress", "ReviewSession"]

# The index of a decision in this tuple is its code; 0 is undecided.
_CODES = ("", "accept", "reject", "unsure", "disputed")
_MAX_CANDIDATES = 5
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Progress:
    """The progress of a review; of the random sample, `judged` pairs were accepted or rejected, `right` accepted."""

    decided: int
    total: int
    accepted: int
    rejected: int
    unsure: int
    disputed: int
    judged: int
    right: int
    sample: int
    low: float
    high: float

    @property
    def precision(self) -> float | None:
        """The share of right pairs among the judged pairs of the sample."""
        return self.right / self.judged if self.judged else None


class ReviewSession:
    """A run under review."""

    def __init__(
        self,
        task: AlignmentTask,
        names: TaskNames,
        literals: Literals,
        alignment: Alignment,
        summary: RunSummary,
        decisions: Path,
    ) -> None:
        match, settings = summary.match, summary.settings
        assert match is not None, "only a run with pairs is reviewed"
        self.alignment = alignment
        self.measure = match.calibration.measure
        self.threshold = match.threshold.threshold
        self.log = DecisionLog(decisions)
        self._viewer = PairViewer(task, names, literals, alignment, summary)
        self._names = EntityNames(names.entities, task.num_source_entities)
        selected = selected_pairs(alignment, settings.match.selection, settings.match.k)
        self.worklist = Worklist(task, self._viewer.labels, alignment, selected, self.threshold)
        self._rows = tuple(Rows(alignment.pairs[:, side], task.num_entities) for side in (0, 1))
        self._lock = threading.Lock()
        self._read_log()

    def prepare(self) -> None:
        """Make the indexes now, so that the first search and decision do not wait: seconds at a million entities."""
        self._names.prepare()
        self.worklist.prepare()

    def find(self, filters: Filters) -> IntArray:
        """The rows that pass the filters, in order."""
        return self.worklist.find(filters, self._verdict_codes)

    def view(self, row: int) -> PairView:
        """Collect what the page shows about a pair."""
        if not 0 <= row < len(self.alignment.pairs):
            raise InputError("this pair does not exist", found=str(row))
        return self._viewer.view(row)

    def labels(self, row: int) -> tuple[str, str]:
        """The labels of the two ends of a pair."""
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.label(source), self._viewer.labels.label(target)

    def verdict(self, row: int) -> Verdict | None:
        """The verdict on a pair; None where it is undecided."""
        return self._verdicts.get(self._names_of(row))

    def candidates(self, row: int) -> list[int]:
        """The rows of other candidate pairs of the source, best first, then of the target; at most five."""
        alignment = self.alignment
        candidates = []
        for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
            rows = self._rows[side].of(int(alignment.pairs[row, side]))
            ordered = rows[np.argsort(ranks[rows], kind="stable")].tolist()
            candidates += [candidate for candidate in ordered if candidate != row]
        return candidates[:_MAX_CANDIDATES]

    def decide(self, row: int, decision: str, reviewer: str, instead: int | None = None) -> None:
        """Save a decision; with `instead`, accept the pair at that row and reject this pair, in one action."""
        self.view(row)
        first = Decision(*self._names_of(row), "reject" if instead is not None else decision, reviewer)
        decisions = [first]
        if instead is not None:
            if instead not in self.candidates(row):
                raise InputError("this pair is not a candidate of either entity")
            decisions.append(Decision(*self._names_of(instead), "accept", reviewer, first.time, first.action))
        with self._lock:  # so that the verdicts are updated in the order of the file
            self.log.add(*decisions)
            self._update(decisions)

    def undo(self, reviewer: str) -> int | None:
        """Undo the last action of a reviewer; returns its row, or None where nothing can be undone."""
        with self._lock:
            undone = self.log.undo("".join(letter for letter in reviewer if letter.isprintable()).strip()[:64])
            if undone:
                self._read_log()
        return self._row(undone[0].source, undone[0].target) if undone else None

    def progress(self) -> Progress:
        """Count the decisions, and measure the precision on the random sample."""
        _, accepted, rejected, unsure, disputed = np.bincount(self._verdict_codes, minlength=len(_CODES)).tolist()
        sample = self._verdict_codes[self.worklist.audit]
        right = int((sample == _CODES.index("accept")).sum())
        judged = right + int((sample == _CODES.index("reject")).sum())
        low, high = wilson_interval(right, judged)
        return Progress(
            decided=accepted + rejected + unsure + disputed,
            total=len(self.worklist.rows),
            accepted=accepted,
            rejected=rejected,
            unsure=unsure,
            disputed=disputed,
            judged=judged,
            right=right,
            sample=len(sample),
            low=low,
            high=high,
        )

    def _names_of(self, row: int) -> tuple[str, str]:
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.iri(source), self._viewer.labels.iri(target)

    def _row(self, source: str, target: str) -> int | None:
        """Find the row of a pair by its names; None where it is no candidate."""
        ends = [int(self._names.find_all([name], side)[0]) for name, side in ((source, "source"), (target, "target"))]
        if min(ends) < 0:
            return None
        rows = self._rows[0].of(ends[0])
        rows = rows[self.alignment.pairs[rows, 1] == ends[1]]
        return int(rows[0]) if len(rows) else None

    def _read_log(self) -> None:
        """Compute all verdicts from the log again."""
        self._verdict_codes = np.zeros(len(self.alignment.pairs), dtype=np.int8)
        self._decisions: dict[_Pair, list[Decision]] = {}
        self._verdicts: dict[_Pair, Verdict] = {}
        self._update(self.log.decisions())

    def _update(self, decisions: list[Decision]) -> None:
        """Update the verdicts on the pairs of these decisions; the time does not depend on other decisions."""
        for decision in decisions:
            self._decisions.setdefault((decision.source, decision.target), []).append(decision)
        for pair in dict.fromkeys((decision.source, decision.target) for decision in decisions):
            self._verdicts[pair] = verdicts(self._decisions[pair])[pair]
            row = self._row(*pair)
            if row is not None:
                self._verdict_codes[row] = _CODES.index(self._verdicts[pair].decision)
