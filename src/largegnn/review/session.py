"""Keep the state of a review: pairs to decide, decisions so far, and the precision they imply.

In: a finished run and a file of decisions. Out: views of pairs, the worklist, verdicts, a running precision. Nothing
here depends on the web; several reviewers may use one session at once.
The precision is measured on the random sample alone: doubtful pairs, which reviewers choose first, are wrong more often
than the average pair.
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

_CODES = ("", "accept", "reject", "unsure", "disputed")
_NEXT = 5
_Pair = tuple[str, str]


@dataclass(frozen=True)
class Progress:
    """The progress of a review; `right` of the `judged` pairs of the random sample were accepted."""

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
        self.alignment, self.measure, self.threshold = alignment, match.calibration.measure, match.threshold.threshold
        self.log = DecisionLog(decisions)
        self._viewer = PairViewer(task, names, literals, alignment, summary)
        self._names = EntityNames(names.entities, task.num_source_entities)
        selected = selected_pairs(alignment, settings.match.selection, settings.match.k)
        self.worklist = Worklist(task, self._viewer.labels, alignment, selected, self.threshold)
        self._rows = tuple(Rows(alignment.pairs[:, side], task.num_entities) for side in (0, 1))
        self._lock = threading.Lock()
        self._read_log()

    def prepare(self) -> None:
        """Make the indexes now, and not with the first search and decision; seconds at a million entities."""
        self._names.prepare()
        self.worklist.prepare()

    def find(self, filters: Filters) -> IntArray:
        """The rows that pass the filters, in order."""
        return self.worklist.find(filters, self._verdict)

    def view(self, row: int) -> PairView:
        """One pair."""
        if not 0 <= row < len(self.alignment.pairs):
            raise InputError("this pair does not exist", found=str(row))
        return self._viewer.view(row)

    def labels(self, row: int) -> tuple[str, str]:
        """The labels of the two ends of a pair."""
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.label(source), self._viewer.labels.label(target)

    def verdict(self, row: int) -> Verdict | None:
        """The verdict on a pair; None where it is undecided."""
        return self._verdicts.get(self._named(row))

    def candidates(self, row: int) -> list[int]:
        """The next candidates of the source of a pair, best first, then those of its target."""
        found = self.alignment
        rows = []
        for side, ranks in ((0, found.source_ranks), (1, found.target_ranks)):
            same = self._rows[side].of(int(found.pairs[row, side]))
            near = same[np.argsort(ranks[same], kind="stable")].tolist()
            rows.append([one for one in near if one != row])
        return [*rows[0][:_NEXT], *rows[1][: max(0, _NEXT - len(rows[0]))]]

    def decide(self, row: int, decision: str, reviewer: str, instead: int | None = None) -> None:
        """Save a decision; with `instead`, the pair at that row is accepted and this one rejected, in one action."""
        self.view(row)
        first = Decision(*self._named(row), "reject" if instead is not None else decision, reviewer)
        decisions = [first]
        if instead is not None:
            if instead not in self.candidates(row):
                raise InputError("this pair is no candidate of either entity")
            decisions.append(Decision(*self._named(instead), "accept", reviewer, first.time, first.action))
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
        """The counts of decisions, and the precision on the random sample."""
        _, accepted, rejected, unsure, disputed = np.bincount(self._verdict, minlength=len(_CODES)).tolist()
        sample = self._verdict[self.worklist.audit]
        right, judged = int((sample == 1).sum()), int(((sample == 1) | (sample == 2)).sum())
        low, high = wilson_interval(right, judged)
        decided, total = accepted + rejected + unsure + disputed, len(self.worklist.rows)
        return Progress(decided, total, accepted, rejected, unsure, disputed, judged, right, len(sample), low, high)

    def _named(self, row: int) -> tuple[str, str]:
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.iri(source), self._viewer.labels.iri(target)

    def _row(self, source: str, target: str) -> int | None:
        """The row of a pair by its names; None where it is no candidate."""
        ends = [int(self._names.find_all([name], side)[0]) for name, side in ((source, "source"), (target, "target"))]
        if min(ends) < 0:
            return None
        rows = self._rows[0].of(ends[0])
        found = rows[self.alignment.pairs[rows, 1] == ends[1]]
        return int(found[0]) if len(found) else None

    def _read_log(self) -> None:
        """Compute all verdicts anew from the log."""
        self._verdict = np.zeros(len(self.alignment.pairs), dtype=np.int8)
        self._decisions: dict[_Pair, list[Decision]] = {}
        self._verdicts: dict[_Pair, Verdict] = {}
        self._update(self.log.decisions())

    def _update(self, decisions: list[Decision]) -> None:
        """Update the verdicts on the pairs of these decisions alone; the number of other decisions adds no time."""
        for one in decisions:
            self._decisions.setdefault((one.source, one.target), []).append(one)
        for pair in dict.fromkeys((one.source, one.target) for one in decisions):
            self._verdicts[pair] = verdicts(self._decisions[pair])[pair]
            row = self._row(*pair)
            if row is not None:
                self._verdict[row] = _CODES.index(self._verdicts[pair].decision)
