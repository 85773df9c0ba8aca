"""A review of one run: what to look at, what was decided, and how good the pairs are by that.

In: what a finished run is, and a file of decisions. Out: views of pairs, the worklist, verdicts, a running precision.
Knows nothing of the web. Several reviewers may use one session at once.
The precision is that of the random sample alone: whoever looks at doubtful pairs first would find the run worse than it
is.
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
from largegnn.review.decision_log import DecisionLog
from largegnn.review.labels import span
from largegnn.review.pair_view import PairView, PairViewer
from largegnn.review.worklist import Filters, Worklist

if TYPE_CHECKING:
    from largegnn.stages.report import RunSummary

__all__ = ["Progress", "ReviewSession"]

_CODES = ("", "accept", "reject", "unsure", "disputed")
_NEXT = 5
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Progress:
    """How far the review is; `right` of the `judged` pairs of the random sample were accepted."""

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
        """The share of the sample that is right so far."""
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
        self.alignment, self.measure, self.threshold = alignment, match.calibration.measure, match.threshold.threshold
        self.log = DecisionLog(decisions)
        self._viewer = PairViewer(task, names, literals, alignment, summary)
        self._names = EntityNames(names.entities, task.num_source_entities)
        selected = selected_pairs(alignment, settings.match.selection, settings.match.k)
        self.worklist = Worklist(task, self._viewer.labels, alignment, selected, self.threshold)
        self._rows_of_end = tuple(_rows_by_end(alignment.pairs[:, side]) for side in (0, 1))
        self._lock = threading.Lock()
        self._verdict = np.zeros(len(alignment.pairs), dtype=np.int8)
        self._said: dict[_Pair, list[Decision]] = {}
        self._reviewed: dict[_Pair, Verdict] = {}
        self._codes: dict[int, int] = {}
        self._read_all()

    def prepare(self) -> None:
        """Make the indexes that the first search and the first decisions would wait for; seconds at a million."""
        self._names.prepare()
        self.worklist.prepare()

    def find(self, filters: Filters) -> IntArray:
        """The rows to look at, in order."""
        return self.worklist.find(filters, self._verdict)

    def view(self, row: int) -> PairView:
        """One pair."""
        if not 0 <= row < len(self.alignment.pairs):
            raise InputError("there is no such pair")
        return self._viewer.view(row)

    def labels(self, row: int) -> tuple[str, str]:
        """What the two ends of a pair are called."""
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.label(source), self._viewer.labels.label(target)

    def verdict(self, row: int) -> Verdict | None:
        """What was decided on a pair."""
        return self._reviewed.get(self._named(row))

    def candidates(self, row: int) -> list[int]:
        """The next candidates of the source of a pair, best first, then those of its target."""
        found = self.alignment
        rows = []
        for side, ranks in ((0, found.source_ranks), (1, found.target_ranks)):
            same = self._with_end(side, int(found.pairs[row, side]))
            near = same[np.argsort(ranks[same], kind="stable")].tolist()
            rows.append([one for one in near if one != row])
        return [*rows[0][:_NEXT], *rows[1][: max(0, _NEXT - len(rows[0]))]]

    def decide(self, row: int, decision: str, reviewer: str, instead: int | None = None) -> None:
        """Save a decision; with `instead`, the pair at that row is accepted and this one rejected, in one action."""
        self.view(row)
        first = Decision(*self._named(row), "reject" if instead is not None else decision, reviewer)
        taken = [first]
        if instead is not None:
            if instead not in self.candidates(row):
                raise InputError("that is no candidate of either entity")
            taken.append(Decision(*self._named(instead), "accept", reviewer, first.time, first.action))
        with self._lock:  # so that what is shown is in the order of the file
            self.log.add(*taken)
            self._note(taken)

    def undo(self, reviewer: str) -> int | None:
        """Take back the last action of a reviewer; returns the row it was about."""
        with self._lock:
            gone = self.log.undo("".join(letter for letter in reviewer if letter.isprintable()).strip()[:64])
            if gone:
                self._read_all()
        return self._row(gone[0].source, gone[0].target) if gone else None

    def progress(self) -> Progress:
        """How far the review is."""
        with self._lock:
            codes = np.fromiter(self._codes.values(), np.int64, len(self._codes))
        counts = np.bincount(codes, minlength=len(_CODES)).tolist()
        sample = self._verdict[self.worklist.audit]
        right, judged = int((sample == 1).sum()), int(((sample == 1) | (sample == 2)).sum())
        low, high = wilson_interval(right, judged)
        _, accepted, rejected, unsure, disputed = counts
        decided, total = sum(counts[1:]), len(self.worklist.rows)
        return Progress(decided, total, accepted, rejected, unsure, disputed, judged, right, len(sample), low, high)

    def _named(self, row: int) -> tuple[str, str]:
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.iri(source), self._viewer.labels.iri(target)

    def _row(self, source: str, target: str) -> int | None:
        """The row of a pair by its names; None where it is no candidate."""
        ends = [int(self._names.find_all([name], side)[0]) for name, side in ((source, "source"), (target, "target"))]
        rows = self._with_end(0, ends[0]) if min(ends) >= 0 else np.empty(0, dtype=np.int64)
        found = rows[self.alignment.pairs[rows, 1] == ends[1]]
        return int(found[0]) if len(found) else None

    def _with_end(self, side: int, entity: int) -> IntArray:
        """The rows of the pairs of one entity."""
        order, ends = self._rows_of_end[side]
        begin, end = span(ends, entity)
        return order[begin:end]

    def _read_all(self) -> None:
        """Forget what was noted, and note all that the log holds."""
        self._verdict[list(self._codes)] = 0
        self._said, self._reviewed, self._codes = {}, {}, {}
        self._note(self.log.decisions())

    def _note(self, decisions: list[Decision]) -> None:
        """Bring the verdicts on these pairs up to date, and no others: a decision among thousands is as quick."""
        for one in decisions:
            self._said.setdefault((one.source, one.target), []).append(one)
        for pair in dict.fromkeys((one.source, one.target) for one in decisions):
            self._reviewed[pair] = verdicts(self._said[pair])[pair]
            row = self._row(*pair)
            if row is not None:
                self._codes[row] = _CODES.index(self._reviewed[pair].decision)
                self._verdict[row] = self._codes[row]


def _rows_by_end(ends: IntArray) -> tuple[IntArray, IntArray]:
    """The rows by their end, ascending, and the ends in that order, (p,) each."""
    order = np.argsort(ends, kind="stable")
    return order, ends[order]
