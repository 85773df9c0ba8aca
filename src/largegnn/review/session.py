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
from largegnn.review.pair_view import PairView, PairViewer
from largegnn.review.worklist import Filters, Worklist

if TYPE_CHECKING:
    from largegnn.stages.report import RunSummary

__all__ = ["Progress", "ReviewSession"]

_CODES = ("", "accept", "reject", "unsure", "disputed")
_NEXT = 5


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
        keys = alignment.pairs[:, 0].astype(np.int64) << 32 | alignment.pairs[:, 1]
        self._key_order = np.argsort(keys, kind="stable")
        self._keys = keys[self._key_order]
        self._lock = threading.Lock()
        self._verdict = np.zeros(len(alignment.pairs), dtype=np.int8)
        self._reviewed: dict[tuple[str, str], Verdict] = {}
        self._read_verdicts()

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
            same = np.flatnonzero(found.pairs[:, side] == found.pairs[row, side])
            near = same[np.argsort(ranks[same], kind="stable")].tolist()
            rows.append([one for one in near if one != row])
        return [*rows[0][:_NEXT], *rows[1][: max(0, _NEXT - len(rows[0]))]]

    def decide(self, row: int, decision: str, reviewer: str, instead: int | None = None) -> None:
        """Save a decision; with `instead`, the pair at that row is accepted and this one rejected, in one action."""
        self.view(row)
        first = Decision(*self._named(row), "reject" if instead is not None else decision, reviewer)
        if instead is None:
            self.log.add(first)
        else:
            self.view(instead)
            if instead not in self.candidates(row):
                raise InputError("that is no candidate of either entity")
            self.log.add(first, Decision(*self._named(instead), "accept", reviewer, first.time, first.action))
        self._read_verdicts()

    def undo(self, reviewer: str) -> int | None:
        """Take back the last action of a reviewer; returns the row it was about."""
        gone = self.log.undo("".join(letter for letter in reviewer if letter.isprintable()).strip()[:64])
        self._read_verdicts()
        return self._row(gone[0].source, gone[0].target) if gone else None

    def progress(self) -> Progress:
        """How far the review is."""
        codes = self._verdict
        counts = np.bincount(codes, minlength=len(_CODES)).tolist()
        sample = codes[self.worklist.audit]
        right, judged = int((sample == 1).sum()), int(((sample == 1) | (sample == 2)).sum())
        low, high = wilson_interval(right, judged)
        _, accepted, rejected, unsure, disputed = counts
        decided, total = sum(counts[1:]), len(self.worklist.rows)
        return Progress(decided, total, accepted, rejected, unsure, disputed, judged, right, len(sample), low, high)

    def _named(self, row: int) -> tuple[str, str]:
        source, target = self.alignment.pairs[row].tolist()
        return self._viewer.labels.iri(source), self._viewer.labels.iri(target)

    def _row(self, source: str, target: str) -> int | None:
        ends = self._names.find_all([source], "source"), self._names.find_all([target], "target")
        key = int(ends[0][0]) << 32 | int(ends[1][0])
        place = int(np.searchsorted(self._keys, key))
        if min(ends[0][0], ends[1][0]) < 0 or place >= len(self._keys) or self._keys[place] != key:
            return None
        return int(self._key_order[place])

    def _read_verdicts(self) -> None:
        with self._lock:
            found = verdicts(self.log.decisions())
            changed = {pair: one for pair, one in found.items() if self._reviewed.get(pair) != one}
            gone = self._reviewed.keys() - found.keys()
            codes = self._verdict.copy()
            for pair in (*changed, *gone):
                row = self._row(*pair)
                if row is not None:
                    codes[row] = _CODES.index(found[pair].decision) if pair in found else 0
            self._verdict, self._reviewed = codes, found
