"""Propose candidate pairs next to matched pairs, by aligned relations.

In: matched pairs, and how often relations occur together. Out: for each source the few targets with most support,
whether or not a search found them.
The idea: from s along a relation to a, from a to its counterpart b, and from b back along a relation aligned with the
first. A relation by which a or b reaches many entities is skipped: it proposes many pairs with little support. The way
there and the way back are two sparse matrices; of each row of their product the largest entries stay.
Cost: each way from a source times the few ways aligned with it; at most `_MOST_REACHED` targets for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import AlignmentTask, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces, piece_size, pieces
from largegnn.matching.evidence import REACH_EXPONENT
from largegnn.matching.neighbor_rows import NeighborRows, ways_of, worth_sending
from largegnn.matching.relations import Counterparts, RelationCounts, likelihoods
from largegnn.matching.rows import entries_of, offsets

__all__ = ["propose_pairs"]

Values = npt.NDArray[np.float64]

_MOST_REACHED = 50  # entities that a way may lead to
_LEAST_LIKELY = 0.15  # of two aligned relations; above that of relations which never occurred together


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
    known = (near_source, matched, counts, *_ways_back(task, allowed[split:]), allowed[:split], number)
    ranges = pieces(split, piece_size(split, send))
    pairs: IntArray = np.concatenate(
        [np.empty((0, 2), dtype=np.int32), *map_pieces(rule_piece, ranges, *known, send=send)]
    )
    return pairs + np.array([0, split], dtype=np.int32)


def _ways_back(task: AlignmentTask, allowed: Mask) -> tuple[IntArray, Any]:
    """The keys (g,) of target entities with a way from them, ascending, and the allowed targets each leads to (g, t).

    A key is the entity times the number of ways, plus the way.
    """
    entities, ids, ways = ways_of(task, 1)
    keys, groups, sizes = np.unique(
        entities.astype(np.int64) * (2 * task.num_target_relations) + ways, return_inverse=True, return_counts=True
    )
    keep = np.flatnonzero(allowed[ids] & (sizes[groups] <= _MOST_REACHED))
    keep = keep[np.lexsort((ids[keep], groups[keep]))]
    rows = groups[keep]
    weights = sizes[rows].astype(np.float64) ** REACH_EXPONENT
    shape = (len(keys), task.num_target_entities)
    return keys, sparse.csr_array((weights, ids[keep], offsets(rows, len(keys))), shape=shape)


def rule_piece(
    first: int,
    last: int,
    near: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    keys: IntArray,
    back: Any,
    allowed: Mask,
    number: int,
) -> IntArray:
    """The pairs (p, 2) of sources `first` to `last`, both ends numbered from 0."""
    relations = np.repeat(np.arange(len(counts.ptr) - 1), np.diff(counts.ptr))
    likely = likelihoods(counts, relations)
    aligned = np.flatnonzero(likely >= _LEAST_LIKELY)
    ptr = offsets(relations[aligned], len(counts.ptr) - 1)

    sources, steps = entries_of(near.ptr[first:last], near.ptr[first + 1 : last + 1])
    keep = allowed[first:last][sources] & (near.weights[steps] >= np.float64(_MOST_REACHED**REACH_EXPONENT))
    sources, steps = sources[keep], steps[keep]
    rows, links = entries_of(matched.ptr[near.ids[steps]], matched.ptr[near.ids[steps] + 1])
    sources, steps = sources[rows], steps[rows]
    strengths = near.weights[steps] * matched.certainties[links]
    relation = near.ways[steps] >> 1
    rows, others = entries_of(ptr[relation], ptr[relation + 1])
    # A way to the counterpart is the reverse way for it.
    ways = counts.ways[aligned[others]] ^ (near.ways[steps[rows]] & 1) ^ 1
    wanted = matched.ids[links[rows]].astype(np.int64) * (2 * len(counts.target_scale)) + ways
    places = np.searchsorted(keys, wanted)
    found = np.flatnonzero(np.append(keys, -1)[places] == wanted)
    ends = sources[rows[found]], places[found]
    values = strengths[rows[found]] * likely[aligned[others[found]]]
    ptr = offsets(ends[0], last - first)
    best = np.empty((int(np.count_nonzero(np.diff(ptr))) * number, 2), dtype=np.int32)
    strengths, reached = np.zeros(back.shape[1], dtype=np.float32), np.empty(back.shape[1], dtype=np.int32)
    there = ptr, ends[1], values
    size = _choose(*there, back.indptr, back.indices, back.data, number, strengths, reached, best)
    return best[:size] + np.array([first, 0], dtype=np.int32)


@compiled
def _choose(
    ptr: IntArray,
    places: IntArray,
    values: Values,
    back_ptr: IntArray,
    back_ids: IntArray,
    weights: Values,
    number: int,
    strengths: FloatArray,
    reached: IntArray,
    best: IntArray,
) -> int:
    """Multiply the rows (`ptr`, `places`, `values`) by those back, and write the strongest few of each: how many."""
    size = 0
    for row in range(len(ptr) - 1):
        num_reached = 0
        for entry in range(ptr[row], ptr[row + 1]):
            for index in range(back_ptr[places[entry]], back_ptr[places[entry] + 1]):
                target = back_ids[index]
                if strengths[target] == 0:
                    reached[num_reached] = target
                    num_reached += 1
                strengths[target] += values[entry] * weights[index]
        # Of equal ones the first that was reached.
        for rank in range(min(number, num_reached)):
            first = rank
            for other in range(rank + 1, num_reached):
                if strengths[reached[other]] > strengths[reached[first]]:
                    first = other
            reached[rank], reached[first] = reached[first], reached[rank]
            best[size, 0], best[size, 1] = row, reached[rank]
            size += 1
        for index in range(num_reached):
            strengths[reached[index]] = 0.0
    return size
