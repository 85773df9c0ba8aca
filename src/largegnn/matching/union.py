"""What the searches of both sides found, as one list without repetition.

In: the nearest targets of each source and the nearest sources of each target. Out: sources, targets and cosines of the
distinct pairs, ascending by source, then target.
The idea: what targets found is turned round, which lists for each source the targets that found it, ascending; its own
few are put in between, in their place. Sources are independent of each other, so all processors take ranges of them.
Cost: linear in what was found and in the entities; 16 bytes a found pair while it runs.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import FloatArray, IntArray, Neighbors
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors, piece_size

__all__ = ["unite"]


def unite(source_neighbors: Neighbors, target_neighbors: Neighbors) -> tuple[IntArray, IntArray, FloatArray]:
    """Sources, targets and cosines (e,) of every pair found from either side, once."""
    num_sources = 1 + max(int(source_neighbors.queries.max(initial=-1)), int(target_neighbors.ids.max(initial=-1)))
    found_ptr, found_by, found_scores = _turn(target_neighbors, num_sources)
    row_of = np.full(num_sources, -1, dtype=np.int64)
    row_of[source_neighbors.queries] = np.arange(len(source_neighbors.queries))
    own = source_neighbors.ids, source_neighbors.scores, row_of
    sizes = np.empty(num_sources, dtype=np.int64)
    pieces = num_sources, piece_size(num_sources)
    by_all_processors(lambda first, last: _count(first, last, own[0], own[2], found_ptr, found_by, sizes), *pieces)
    ptr = _offsets(sizes)
    sources, targets = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.int32)
    cosines = np.empty(ptr[-1], dtype=np.float32)
    found = found_ptr, found_by, found_scores
    noted = ptr, sources, targets, cosines
    by_all_processors(lambda first, last: _note_pairs(first, last, *own, *found, *noted), *pieces)
    return sources, targets, cosines


def _turn(found: Neighbors, num_entities: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Who found each entity: offsets (num_entities + 1,), queries ascending, scores."""
    ptr = _offsets(np.bincount(found.ids[found.ids >= 0], minlength=num_entities))
    queries, scores = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.float32)
    free = ptr[:-1].copy()
    by_all_processors(
        lambda first, last: _turn_rows(first, last, found.queries, found.ids, found.scores, free, queries, scores),
        num_entities,
        max(1, -(-num_entities // num_processors())),  # all that was found is read once for every piece
    )
    return ptr, queries, scores


def _offsets(sizes: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


@compiled
def _turn_rows(
    first: int,
    last: int,
    queries: IntArray,
    ids: IntArray,
    scores: FloatArray,
    free: IntArray,
    found_by: IntArray,
    found_scores: FloatArray,
) -> None:
    """Note who found each entity from `first` to `last`."""
    for row in range(len(queries)):
        for place in range(ids.shape[1]):
            entity = ids[row, place]
            if first <= entity < last:
                found_by[free[entity]] = queries[row]
                found_scores[free[entity]] = scores[row, place]
                free[entity] += 1


@compiled
def _count(
    first: int, last: int, ids: IntArray, row_of: IntArray, found_ptr: IntArray, found_by: IntArray, sizes: IntArray
) -> None:
    """How many distinct targets each source from `first` to `last` has."""
    for source in range(first, last):
        size, row = 0, row_of[source]
        for index in range(found_ptr[source], found_ptr[source + 1]):
            # A search may name an entity twice.
            if index == found_ptr[source] or found_by[index] != found_by[index - 1]:
                size += 1
        for place in range(ids.shape[1] if row >= 0 else 0):
            is_new = ids[row, place] >= 0
            for index in range(place):
                is_new = is_new and ids[row, index] != ids[row, place]
            index = found_ptr[source]
            while is_new and index < found_ptr[source + 1]:
                is_new = found_by[index] != ids[row, place]
                index += 1
            if is_new:
                size += 1
        sizes[source] = size


@compiled
def _note_pairs(
    first: int,
    last: int,
    ids: IntArray,
    scores: FloatArray,
    row_of: IntArray,
    found_ptr: IntArray,
    found_by: IntArray,
    found_scores: FloatArray,
    ptr: IntArray,
    sources: IntArray,
    targets: IntArray,
    cosines: FloatArray,
) -> None:
    """Note the targets of each source from `first` to `last`: those that found it, and its own in between."""
    for source in range(first, last):
        begin, end = ptr[source], ptr[source]
        for index in range(found_ptr[source], found_ptr[source + 1]):
            if end == begin or targets[end - 1] != found_by[index]:
                targets[end], cosines[end] = found_by[index], found_scores[index]
                end += 1
        row = row_of[source]
        for place in range(ids.shape[1] if row >= 0 else 0):
            target = ids[row, place]
            is_new = target >= 0
            for index in range(place):
                is_new = is_new and ids[row, index] != target
            if not is_new:
                continue
            at = end
            while at > begin and targets[at - 1] >= target:
                at -= 1
            if at == end or targets[at] != target:
                for index in range(end, at, -1):
                    targets[index], cosines[index] = targets[index - 1], cosines[index - 1]
                targets[at] = target
                end += 1
            # The source's search comes first, and its score stays: the two may differ in rounding.
            cosines[at] = scores[row, place]
        for index in range(begin, end):
            sources[index] = source
