"""Exact search both ways on a processor, by one product: who is nearest to whom is asked of the same scores.

In: `UnitRows` of sources and targets, k. Out: the k nearest of each of either side, as `torch_search` finds them.

The idea: products are most of a search on a processor, and those of the way back are the same numbers. While the
sources are searched for, every target keeps the k + spare best of the scores that go by, by a loop over the chunk that
was just written; these are scored again exactly and proven in the same way, and the few that are not are searched for
in float64. A GPU has products to spare, and such a loop would take it longer than they do.

Cost: one product, three passes over the scores; k + spare numbers and indices for each target beside that.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import IntArray, Neighbors, SearchRecord
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.machine.precision import full_precision
from largegnn.matching.torch_search import FLOAT32, FLOAT64, run_passes
from largegnn.matching.unit_rows import NO_KEY, UnitRows, exact_scores, neighbors_of_rows, pack, scores_of, unpack

__all__ = ["two_way_search"]

_SCORED_BYTES = 1 << 28  # of rows that are copied to be scored again, at most
_BYTES_SCORED = 24  # for a number of such a row: as it is, and in float64
_SOURCES = 32  # whose scores a target looks at together


def two_way_search(
    sources: UnitRows, targets: UnitRows, k: int, *, max_bytes: int = 4_000_000_000
) -> tuple[Neighbors, Neighbors]:
    """The k nearest targets of every source, and the k nearest sources of every target."""
    best = _Best(len(targets), min(k + FLOAT32.spare, len(sources)))
    near_targets = run_passes(sources, targets, k, (FLOAT32, FLOAT64), max_bytes=max_bytes, see=best.see)
    if not len(sources) or not len(targets):
        return near_targets, run_passes(targets, sources, k, (FLOAT64,))
    with full_precision():
        keys, is_proven = best.scored_again(sources, targets, k, max_bytes)
    indices, scores = unpack(keys)
    left = np.flatnonzero(~is_proven)
    if len(left):
        found = run_passes(targets.subset(left), sources, k, (FLOAT64,), max_bytes=max_bytes)
        indices[left], scores[left] = found.ids, found.scores
    return near_targets, neighbors_of_rows(indices, scores, SearchRecord("exact", num_float64=len(left)))


class _Best:
    """The best m of the scores that each of the targets was shown, best first, and whose they were."""

    def __init__(self, num_targets: int, m: int) -> None:
        self._scores = np.full((num_targets, m), -np.inf, dtype=np.float32)
        self._sources = np.zeros((num_targets, m), dtype=np.int32)

    def see(self, scores: Tensor, first_source: int, first_target: int) -> None:
        """Scores (s, t) of the sources and the targets from these on."""
        shown = scores.numpy()  # whole, with the padding: a part of it would have gaps, which are read more slowly
        here = slice(first_target, first_target + shown.shape[1])
        kept, whose = self._scores[here], self._sources[here]
        by_all_processors(
            lambda first, last: _keep_best(first, last, shown, first_source, kept, whose),
            len(kept),
            piece_size(len(kept)),
        )

    def scored_again(
        self, sources: UnitRows, targets: UnitRows, k: int, max_bytes: int
    ) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Keys (t, k) of the nearest of each target, and for which of them (t,) they are proven.

        A source is a candidate of many targets: each is made a unit row once, where half of the memory holds them all.
        """
        fits = 12 * len(sources) * sources.dim <= max_bytes // 2  # 4 for a number, 8 while its row is divided
        units = sources.piece(0, len(sources)) if fits else None
        num_targets, m = self._scores.shape
        keys = torch.full((num_targets, k), NO_KEY, dtype=torch.int64)
        is_proven = np.empty(num_targets, dtype=bool)
        step = max(1, min(_SCORED_BYTES, max_bytes // 4) // (_BYTES_SCORED * m * targets.dim))
        none = torch.zeros(())
        for start in range(0, num_targets, step):
            here = slice(start, min(start + step, num_targets))
            whose = self._sources[here]
            numbers = torch.from_numpy(whose.astype(np.int64))
            candidates = sources.take(whose) if units is None else units[numbers]
            found = pack(exact_scores(targets.piece(here.start, here.stop), candidates), numbers)
            keys[here, : min(k, m)] = found.topk(min(k, m), dim=1).values
            last = torch.from_numpy(self._scores[here, -1].copy())
            ceiling = last + FLOAT32.error(torch.zeros_like(last), none, last, targets.dim)
            if m == len(sources):
                ceiling.fill_(-torch.inf)
            is_proven[here] = (scores_of(keys[here, min(k, m) - 1]) > ceiling).numpy()
        return keys, is_proven


@compiled
def _keep_best(
    first: int,
    last: int,
    shown: npt.NDArray[np.float32],
    first_source: int,
    kept: npt.NDArray[np.float32],
    whose: IntArray,
) -> None:
    """Let the targets from `first` to `last` keep the best of what they are shown (s, t)."""
    end = kept.shape[1] - 1
    lowest, highest = kept[first:last, end].copy(), np.empty(last - first, dtype=np.float32)
    for start in range(0, len(shown), _SOURCES):
        stop = min(start + _SOURCES, len(shown))
        # The highest of a few sources is found many targets at a time; seldom it is worth a look at each of them.
        highest[:] = shown[start, first:last]
        for source in range(start + 1, stop):
            for index in range(last - first):
                score = shown[source, first + index]
                highest[index] = score if score > highest[index] else highest[index]
        for index in range(last - first):
            if highest[index] > lowest[index]:
                target = first + index
                for source in range(start, stop):
                    if shown[source, target] > kept[target, end]:
                        _insert(shown[source, target], first_source + source, kept[target], whose[target])
                lowest[index] = kept[target, end]


@compiled
def _insert(score: float, source: int, kept: npt.NDArray[np.float32], whose: IntArray) -> None:
    place = len(kept) - 1
    while place > 0 and kept[place - 1] < score:
        kept[place], whose[place] = kept[place - 1], whose[place - 1]
        place -= 1
    kept[place], whose[place] = score, source
