"""Compute each entity's neighbours with the relation that leads to them, and how much that narrows the entity down.

In: the triples of one graph. Out: `NeighborRows`, for each entity its neighbours ascending, one entry for each relation
and direction; or `WayRows`, the same by relation.
A way is a relation with a direction: 2 r leaves the entity by relation r, 2 r + 1 arrives by it.
The idea: a triple from a to s by a relation with which a reaches m entities leaves m possible s, hence the weight
m ** -1/4. Each a, in ascending order, notes itself in the rows of its neighbours: so the rows come out sorted, and
nothing is sorted. Triples from an entity to itself are ignored.
Cost: linear in triples and entities; some 40 bytes a triple while it runs, 24 in the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors
from largegnn.matching.evidence import REACH_EXPONENT

__all__ = ["NeighborRows", "WayRows", "both_neighbor_rows", "lower_bound", "neighbor_rows", "way_rows", "worth_sending"]

# Entities of a side. Below, rules take some ten seconds, about as long as sending the graphs to other machines.
_WORTH_SENDING = 200_000


class NeighborRows(NamedTuple):
    """Row i holds `ids[ptr[i]:ptr[i + 1]]`, ascending, the way from i to each, and the weights (float32)."""

    ptr: IntArray
    ids: IntArray
    ways: IntArray
    weights: npt.NDArray[np.float32]


class WayRows(NamedTuple):
    """Row i holds `ids[ptr[i]:ptr[i + 1]]` with the way from i to each, ascending by way."""

    ptr: IntArray
    ids: IntArray
    ways: IntArray


def neighbor_rows(task: AlignmentTask, side: int) -> NeighborRows:
    """The neighbours of each entity of a side (0 source, 1 target); entities and relations numbered from 0."""
    found = way_rows(task, side, by_relation=False)
    ids, ways = np.empty_like(found.ids), np.empty_like(found.ways)
    reaches = np.empty(len(ids), dtype=np.float32)
    counts = np.zeros(int(found.ways.max(initial=-1)) + 1, dtype=np.int64)
    _note_neighbors(found.ptr, found.ids, found.ways, counts, found.ptr[:-1].copy(), ids, ways, reaches)
    reaches **= REACH_EXPONENT
    return NeighborRows(found.ptr, ids, ways, reaches)


def both_neighbor_rows(task: AlignmentTask) -> tuple[NeighborRows, NeighborRows]:
    """The neighbours of both sides, at the same time."""
    source, target = by_all_processors(lambda side, _: neighbor_rows(task, side), 2, 1)
    return source, target


def worth_sending(task: AlignmentTask) -> bool:
    """Whether the graphs are large enough for other machines to take a part of the work on their neighbours."""
    return max(task.num_source_entities, task.num_target_entities) >= _WORTH_SENDING


def way_rows(task: AlignmentTask, side: int, *, by_relation: bool = True) -> WayRows:
    """Where the triples of each entity of a side lead; in the order of the triples where `by_relation` is off."""
    split = task.num_source_triples
    triples = task.triples[:split] if side == 0 else task.triples[split:]
    first = np.array([task.num_source_entities, task.num_source_relations, task.num_source_entities]) * side
    heads, relations, tails = (
        np.ascontiguousarray(triples[:, column] - first[column], dtype=np.int32) for column in range(3)
    )
    keep = np.flatnonzero(heads != tails)
    if by_relation:
        keep = keep[np.argsort(relations[keep], kind="stable")]
    heads, relations, tails = heads[keep], relations[keep], tails[keep]
    num_entities = (task.num_source_entities, task.num_target_entities)[side]
    degrees = np.bincount(heads, minlength=num_entities) + np.bincount(tails, minlength=num_entities)
    ptr = np.concatenate([[0], np.cumsum(degrees)])
    ids, ways = (np.empty(2 * len(heads), dtype=np.int32) for _ in range(2))
    _list_ways(heads, relations, tails, ptr[:-1].copy(), ids, ways)
    return WayRows(ptr, ids, ways)


# Only loops over single numbers are compiled: what makes or cuts arrays takes a second each to compile.
@compiled
def _list_ways(
    heads: IntArray, relations: IntArray, tails: IntArray, free: IntArray, ids: IntArray, ways: IntArray
) -> None:
    """Where the triples of each entity lead and which way, those of one relation first leaving, then arriving."""
    begin = 0
    while begin < len(heads):
        end = begin
        while end < len(heads) and relations[end] == relations[begin]:
            head = heads[end]
            ids[free[head]] = tails[end]
            ways[free[head]] = 2 * relations[end]
            free[head] += 1
            end += 1
        for row in range(begin, end):
            tail = tails[row]
            ids[free[tail]] = heads[row]
            ways[free[tail]] = 2 * relations[row] + 1
            free[tail] += 1
        begin = end


@compiled
def _note_neighbors(
    ptr: IntArray,
    others: IntArray,
    ways: IntArray,
    counts: IntArray,
    ends: IntArray,
    ids: IntArray,
    ways_there: IntArray,
    reaches: IntArray,
) -> None:
    """Write each entity, ascending, into the rows of others, with how many entities it reaches the same way."""
    for entity in range(len(ends)):
        for index in range(ptr[entity], ptr[entity + 1]):
            counts[ways[index]] += 1
        for index in range(ptr[entity], ptr[entity + 1]):
            end = ends[others[index]]
            ids[end] = entity
            ways_there[end] = ways[index] ^ 1
            reaches[end] = counts[ways[index]]
            ends[others[index]] = end + 1
        for index in range(ptr[entity], ptr[entity + 1]):
            counts[ways[index]] = 0


@compiled
def lower_bound(row: IntArray, begin: int, end: int, wanted: int) -> int:
    """The first index of an ascending row, from `begin` to `end`, at which nothing smaller stands."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if row[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
