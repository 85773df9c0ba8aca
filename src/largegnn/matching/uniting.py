"""What the searches of both sides found, as one list without repetition.

In: the nearest targets of each source and the nearest sources of each target. Out: sources, targets and cosines of the
distinct pairs, ascending by source, then target.
The idea: pairs are noted target by target in the rows of their sources, so the rows come out sorted, and a pair that is
already there stands last in its row. Nothing is sorted.
Cost: linear in what was found and in the entities; 16 bytes a found pair while it runs.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray, Neighbors
from largegnn.machine.compiled import compiled

__all__ = ["unite"]


def unite(source_neighbors: Neighbors, target_neighbors: Neighbors) -> tuple[IntArray, IntArray, IntArray]:
    """Sources, targets and cosines (e,) of every pair found from either side, once."""
    sides = (source_neighbors, target_neighbors)
    num_entities = 1 + max(int(found.max(initial=-1)) for side in sides for found in (side.queries, side.ids))
    found_ptr, found_by, found_scores = _turn(source_neighbors, num_entities)
    ptr = _offsets(_times(found_by, num_entities) + _times(target_neighbors.ids, num_entities))
    ends = ptr[:-1].copy()
    targets, cosines = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.float32)
    _note_pairs(
        *(found_ptr, found_by, found_scores),
        *(target_neighbors.queries, target_neighbors.ids.ravel(), target_neighbors.scores.ravel()),
        *(ptr, ends, targets, cosines),
    )
    del found_by, found_scores
    size = _close_ranks(ptr, ends, targets, cosines)
    sources = np.repeat(np.arange(num_entities, dtype=np.int32), np.diff(ptr))
    # Copies, so that the room left for pairs both sides found is given back.
    return sources, targets[:size].copy(), cosines[:size].copy()


def _turn(found: Neighbors, num_entities: int) -> tuple[IntArray, IntArray, IntArray]:
    """Who found each entity: offsets (num_entities + 1,), queries ascending, scores."""
    ptr = _offsets(_times(found.ids, num_entities))
    queries, scores = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.float32)
    _turn_rows(found.queries, found.ids.ravel(), found.scores.ravel(), ptr[:-1].copy(), queries, scores)
    return ptr, queries, scores


def _times(ids: IntArray, num_entities: int) -> IntArray:
    """How often each entity occurs; -1 is none."""
    return np.bincount(ids[ids >= 0], minlength=num_entities)


def _offsets(sizes: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


@compiled
def _turn_rows(
    queries: IntArray, ids: IntArray, scores: IntArray, free: IntArray, found_by: IntArray, found_scores: IntArray
) -> None:
    k = len(ids) // max(len(queries), 1)
    for row in range(len(queries)):
        for place in range(row * k, row * k + k):
            entity = ids[place]
            if entity >= 0:
                found_by[free[entity]] = queries[row]
                found_scores[free[entity]] = scores[place]
                free[entity] += 1


@compiled
def _note_pairs(
    found_ptr: IntArray,
    found_by: IntArray,
    found_scores: IntArray,
    queries: IntArray,
    ids: IntArray,
    scores: IntArray,
    ptr: IntArray,
    ends: IntArray,
    targets: IntArray,
    cosines: IntArray,
) -> None:
    """Note each target in the rows of its sources, `ptr[s]` to `ends[s]`: of those that found it, then of its own."""
    k = len(ids) // max(len(queries), 1)
    row = 0
    for target in range(len(ends)):
        for place in range(found_ptr[target], found_ptr[target + 1]):
            source = found_by[place]
            # The source's search comes first, and its score stays: the two may differ in rounding.
            if ends[source] == ptr[source] or targets[ends[source] - 1] != target:
                targets[ends[source]] = target
                cosines[ends[source]] = found_scores[place]
                ends[source] += 1
        if row < len(queries) and queries[row] == target:
            for place in range(row * k, row * k + k):
                source = ids[place]
                if source >= 0 and (ends[source] == ptr[source] or targets[ends[source] - 1] != target):
                    targets[ends[source]] = target
                    cosines[ends[source]] = scores[place]
                    ends[source] += 1
            row += 1


@compiled
def _close_ranks(ptr: IntArray, ends: IntArray, ids: IntArray, values: IntArray) -> int:
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
