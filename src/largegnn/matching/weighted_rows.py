"""Each entity's neighbours, weighted by how much they narrow things down.

In: the triples of one graph. Out: `WeightedRows`, for each entity its neighbours ascending, each with a weight.
The idea: an edge from a to s by a relation with which a reaches m entities tells s from m - 1 others, hence the weight
m ** -1/4, the relation that reaches fewest counting. Each a, in ascending order, notes itself in the rows of its
neighbours: so the rows come out sorted, and what a has noted already stands last in a row. Nothing is sorted.
Cost: linear in triples and entities; some 40 bytes a triple while it runs, at most 16 in the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled

__all__ = ["WeightedRows", "weigh_neighbors"]

_DISCOUNT = 0.25


class WeightedRows(NamedTuple):
    """A sparse matrix: row i holds `ids[ptr[i]:ptr[i + 1]]`, ascending, with their weights (float32)."""

    ptr: IntArray
    ids: IntArray
    weights: npt.NDArray[np.float32]


def weigh_neighbors(triples: IntArray, num_entities: int, offset: int) -> WeightedRows:
    """The weighted neighbours of each entity by the triples (m, 3) of one graph, whose ids begin at `offset`."""
    heads, relations, tails = (np.ascontiguousarray(triples[:, column], dtype=np.int32) for column in range(3))
    heads, tails = heads - np.int32(offset), tails - np.int32(offset)
    degrees = np.bincount(heads, minlength=num_entities) + np.bincount(tails, minlength=num_entities)
    ptr = np.concatenate([[0], np.cumsum(degrees)])
    others, ways = (np.empty(2 * len(triples), dtype=np.int32) for _ in range(2))
    _list_ways(heads, relations, tails, ptr[:-1].copy(), others, ways)
    del heads, relations, tails
    ids, reaches = np.empty(len(others), dtype=np.int32), np.empty(len(others), dtype=np.float32)
    counts = np.zeros(int(ways.max(initial=-1)) + 1, dtype=np.int64)
    ends = ptr[:-1].copy()
    _note_neighbors(ptr, others, ways, counts, ends, ids, reaches)
    del others, ways
    size = close_ranks(ptr, ends, ids, reaches)
    # Copies, so that the room left for neighbours that came twice is given back.
    return WeightedRows(ptr, ids[:size].copy(), reaches[:size] ** -_DISCOUNT)


# Only loops over single numbers are compiled: what makes or cuts arrays takes a second each to compile.
@compiled
def _list_ways(
    heads: IntArray, relations: IntArray, tails: IntArray, free: IntArray, others: IntArray, ways: IntArray
) -> None:
    """Where the triples of each entity lead, and which way: relation r is 2 r leaving and 2 r + 1 arriving."""
    for row in range(len(heads)):
        head = heads[row]
        tail = tails[row]
        others[free[head]] = tail
        ways[free[head]] = 2 * relations[row]
        free[head] += 1
        others[free[tail]] = head
        ways[free[tail]] = 2 * relations[row] + 1
        free[tail] += 1


@compiled
def _note_neighbors(
    ptr: IntArray, others: IntArray, ways: IntArray, counts: IntArray, ends: IntArray, ids: IntArray, reaches: IntArray
) -> None:
    """Each entity, ascending, notes itself in the rows of others, with the fewest entities it reaches the same way."""
    for entity in range(len(ends)):
        for place in range(ptr[entity], ptr[entity + 1]):
            counts[ways[place]] += 1
        for place in range(ptr[entity], ptr[entity + 1]):
            other = others[place]
            if other == entity:
                continue
            end = ends[other]
            reach = counts[ways[place]]
            if end == ptr[other] or ids[end - 1] != entity:
                ids[end] = entity
                reaches[end] = reach
                ends[other] = end + 1
            elif reach < reaches[end - 1]:
                reaches[end - 1] = reach
        for place in range(ptr[entity], ptr[entity + 1]):
            counts[ways[place]] = 0


@compiled
def close_ranks(ptr: IntArray, ends: IntArray, ids: IntArray, values: IntArray) -> int:
    """Move each row, `ptr[i]` to `ends[i]`, to where the one before it ends, in place; where the last one ends."""
    free = 0
    for row in range(len(ends)):
        begin = ptr[row]
        ptr[row] = free
        for place in range(begin, ends[row]):
            ids[free] = ids[place]
            values[free] = values[place]
            free += 1
    ptr[len(ends)] = free
    return free
