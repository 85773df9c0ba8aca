"""Compute each entity's neighbours with the relation that leads to them, and how much that narrows the entity down.

In: the triples of one graph. Out: `NeighborRows`, for each entity its neighbours ascending, one entry for each relation
and direction.
A way is a relation with a direction: 2 r leaves the entity by relation r, 2 r + 1 arrives by it.
The idea: a triple from a to s by a relation with which a reaches m entities leaves m possible s, hence the weight
m ** -1/4. Triples from an entity to itself are ignored.
Cost: two sorts of the triples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.machine.pieces import by_all_processors
from largegnn.matching.evidence import REACH_EXPONENT
from largegnn.matching.rows import offsets

__all__ = ["NeighborRows", "both_neighbor_rows", "neighbor_rows", "ways_of", "worth_sending"]

# Entities of a side. Below, rules take some ten seconds, about as long as sending the graphs to other machines.
_WORTH_SENDING = 200_000


class NeighborRows(NamedTuple):
    """Row i holds `ids[ptr[i]:ptr[i + 1]]`, ascending, the way from i to each, and the weights (float32)."""

    ptr: IntArray
    ids: IntArray
    ways: IntArray
    weights: npt.NDArray[np.float32]


def neighbor_rows(task: AlignmentTask, side: int) -> NeighborRows:
    """The neighbours of each entity of a side (0 source, 1 target); entities and relations numbered from 0."""
    entities, ids, ways = ways_of(task, side)
    # What an entity reaches one way is what a neighbour that is reached that way cannot be told from.
    _, groups, sizes = np.unique(
        ids.astype(np.int64) * (int(ways.max(initial=0)) + 2) + (ways ^ 1), return_inverse=True, return_counts=True
    )
    weights = sizes[groups].astype(np.float32) ** np.float32(REACH_EXPONENT)
    order = np.lexsort((ids, entities))
    ptr = offsets(entities, (task.num_source_entities, task.num_target_entities)[side])
    return NeighborRows(ptr, ids[order], ways[order], weights[order])


def both_neighbor_rows(task: AlignmentTask) -> tuple[NeighborRows, NeighborRows]:
    """The neighbours of both sides, at the same time."""
    source, target = by_all_processors(lambda side, _: neighbor_rows(task, side), 2, 1)
    return source, target


def worth_sending(task: AlignmentTask) -> bool:
    """Whether the graphs are large enough for other machines to take a part of the work on their neighbours."""
    return max(task.num_source_entities, task.num_target_entities) >= _WORTH_SENDING


def ways_of(task: AlignmentTask, side: int) -> tuple[IntArray, IntArray, IntArray]:
    """Each triple of a side from both of its ends, in their order: entity, neighbour and way (int32)."""
    split = task.num_source_triples
    triples = task.triples[:split] if side == 0 else task.triples[split:]
    first = np.array([task.num_source_entities, task.num_source_relations, task.num_source_entities]) * side
    triples = ((triples - first)[triples[:, 0] != triples[:, 2]]).astype(np.int32)
    ways = 2 * triples[:, 1:2] + np.array([0, 1], dtype=np.int32)
    return triples[:, [0, 2]].ravel(), triples[:, [2, 0]].ravel(), ways.ravel()
