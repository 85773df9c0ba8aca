"""Propose candidate pairs next to matched pairs, by aligned relations.

In: matched pairs, and how often relations occur together. Out: for each source the few targets with most support,
whether or not a search found them.
The idea: from s along a relation to a, from a to its counterpart b, and from b back along a relation aligned with the
first. A relation by which a or b reaches many entities is skipped: it proposes many pairs with little support.
Which relations are aligned is found once: most pairs of relations that occur together do so by chance.
Cost: each way from a source times the few ways aligned with it; at most `_MOST_REACHED` targets for each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import AlignmentTask, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces, piece_size, pieces
from largegnn.matching.evidence import REACH_EXPONENT
from largegnn.matching.neighbor_rows import NeighborRows, WayRows, lower_bound, way_rows, worth_sending
from largegnn.matching.relations import Counterparts, RelationCounts, likelihoods

__all__ = ["propose_pairs"]

_MOST_REACHED = 50  # entities that a way may lead to
_LEAST_LIKELY = 0.15  # of two aligned relations; above that of relations which never occurred together


class AlignedWays(NamedTuple):
    """The target ways aligned with source relation i: `ways[ptr[i]:ptr[i + 1]]`, ascending, and their likelihoods."""

    ptr: IntArray
    ways: IntArray
    likelihoods: npt.NDArray[np.float64]


def aligned_ways(counts: RelationCounts) -> AlignedWays:
    """The aligned ways among those that occur together."""
    relations = np.repeat(np.arange(len(counts.ptr) - 1), np.diff(counts.ptr))
    likely = likelihoods(counts, relations)
    keep = np.flatnonzero(likely >= _LEAST_LIKELY)
    ptr = np.searchsorted(relations[keep], np.arange(len(counts.ptr)))
    return AlignedWays(ptr, counts.ways[keep], likely[keep])


def propose_pairs(
    task: AlignmentTask,
    near_source: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    allowed: Mask,
    number: int,
) -> IntArray:
    """Pairs (p, 2) of entity ids: of each allowed source the `number` best supported of the allowed targets."""
    split, send = task.num_source_entities, worth_sending(task)
    known = (near_source, matched, way_rows(task, 1), aligned_ways(counts), allowed, number)
    ranges = pieces(split, piece_size(split, send))
    found = list(map_pieces(rule_piece, ranges, *known, send=send))
    if not found:
        return np.empty((0, 2), dtype=np.int32)
    pairs: IntArray = np.concatenate(found)
    pairs[:, 1] += split
    return pairs


def rule_piece(
    first: int,
    last: int,
    near_source: NeighborRows,
    matched: Counterparts,
    back: WayRows,
    aligned: AlignedWays,
    allowed: Mask,
    number: int,
) -> IntArray:
    """The pairs (p, 2) of sources `first` to `last`, both ends numbered from 0."""
    split, num_targets = len(near_source.ptr) - 1, len(back.ptr) - 1
    sources, targets = allowed[:split], allowed[split:]
    found = np.empty((int(sources[first:last].sum()) * number, 2), dtype=np.int32)
    strengths, reached = np.zeros(num_targets, dtype=np.float32), np.empty(num_targets, dtype=np.int32)
    rows = (near_source, matched, back, aligned, sources, targets, number, strengths, reached, found)
    return found[: _propose(first, last, *rows)].copy()  # without the rows that were not filled


@compiled
def _propose(
    first: int,
    last: int,
    near: NeighborRows,
    matched: Counterparts,
    back: WayRows,
    aligned: AlignedWays,
    is_source: Mask,
    is_target: Mask,
    number: int,
    strengths: FloatArray,
    reached: IntArray,
    found: IntArray,
) -> int:
    """Write the strongest few targets of each source from `first` to `last`; returns how many pairs that makes."""
    size = 0
    least = _MOST_REACHED**REACH_EXPONENT
    for source in range(first, last):
        if not is_source[source]:
            continue
        num_reached = 0
        for index in range(near.ptr[source], near.ptr[source + 1]):
            if near.weights[index] < least:
                continue
            neighbor = near.ids[index]
            for link in range(matched.ptr[neighbor], matched.ptr[neighbor + 1]):
                strength = near.weights[index] * matched.certainties[link]
                num_reached = _reach_back(
                    back, matched.ids[link], aligned, near.ways[index], strength, is_target, strengths, reached,
                    num_reached,
                )  # fmt: skip
        for rank in range(min(number, num_reached)):
            best = rank
            for other in range(rank + 1, num_reached):
                if strengths[reached[other]] > strengths[reached[best]]:
                    best = other
            reached[rank], reached[best] = reached[best], reached[rank]
            found[size, 0], found[size, 1] = source, reached[rank]
            size += 1
        for index in range(num_reached):
            strengths[reached[index]] = 0.0
    return size


@compiled
def _reach_back(
    back: WayRows,
    counterpart: int,
    aligned: AlignedWays,
    source_way: int,
    strength: float,
    is_target: Mask,
    strengths: FloatArray,
    reached: IntArray,
    num_reached: int,
) -> int:
    """Go from a counterpart to the targets that lead to it as the source led to its neighbour; how many are reached.

    A way to the counterpart is the reverse way for it.
    """
    relation = source_way >> 1
    begin, end = back.ptr[counterpart], back.ptr[counterpart + 1]
    for known in range(aligned.ptr[relation], aligned.ptr[relation + 1]):
        target_way, likely = aligned.ways[known] ^ (source_way & 1), aligned.likelihoods[known]
        low, high = _range_of(back.ways, begin, end, target_way ^ 1)
        if high - low > _MOST_REACHED:
            continue
        support = strength * likely * (high - low) ** REACH_EXPONENT if high > low else 0.0
        for index in range(low, high):
            target = back.ids[index]
            if is_target[target]:
                if strengths[target] == 0:
                    reached[num_reached] = target
                    num_reached += 1
                strengths[target] += support
    return num_reached


@compiled
def _range_of(ways: IntArray, begin: int, end: int, way: int) -> tuple[int, int]:
    """Where a way begins and ends in a row that is ascending by way."""
    low = lower_bound(ways, begin, end, way)
    last = low
    while last < end and ways[last] == way and last - low <= _MOST_REACHED:
        last += 1
    return low, last
