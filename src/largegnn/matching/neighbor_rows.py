"""List each entity's neighbours with relation, direction and a weight for how specific they are.

In: the triples of one graph. Out: `NeighborRows`: for each entity its neighbours, ascending, with one entry for each
relation and direction.
A directed relation is a relation with a direction: 2 r leads from an entity by relation r to the tail, 2 r + 1 back to
the head.
The idea: the weight is m ** -0.25, where m is how many entities the neighbour reaches by the same relation read
backwards; the more, the less the triple says about the entity. Triples from an entity to itself are ignored.
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

__all__ = ["NeighborRows", "both_neighbor_rows", "directed_relations_of", "neighbor_rows", "should_distribute"]

# Entities of a side from which graphs are sent: below, rules take about ten seconds, no longer than sending the graphs.
_WORTH_SENDING = 200_000


class NeighborRows(NamedTuple):
    """Row i, `ptr[i]:ptr[i + 1]`: the neighbours of i, ascending, the directed relations to them, and the weights."""

    ptr: IntArray
    ids: IntArray
    directed_relations: IntArray
    weights: npt.NDArray[np.float32]


def neighbor_rows(task: AlignmentTask, side: int) -> NeighborRows:
    """List the neighbours of each entity of a side (0 source, 1 target); entities and relations numbered from 0."""
    entities, ids, directed_relations = directed_relations_of(task, side)
    # The neighbour and the relation read backwards, as one number; m is how often it occurs.
    keys = ids.astype(np.int64) * (int(directed_relations.max(initial=0)) + 2) + (directed_relations ^ 1)
    _, groups, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    weights = sizes[groups].astype(np.float32) ** np.float32(REACH_EXPONENT)
    order = np.lexsort((ids, entities))
    ptr = offsets(entities, (task.num_source_entities, task.num_target_entities)[side])
    return NeighborRows(ptr, ids[order], directed_relations[order], weights[order])


def both_neighbor_rows(task: AlignmentTask) -> tuple[NeighborRows, NeighborRows]:
    """List the neighbours of the entities of both sides, at the same time."""
    source, target = by_all_processors(lambda side, _: neighbor_rows(task, side), 2, 1)
    return source, target


def should_distribute(task: AlignmentTask) -> bool:
    """Whether the graphs are large enough to distribute work on neighbours over machines."""
    return max(task.num_source_entities, task.num_target_entities) >= _WORTH_SENDING


def directed_relations_of(task: AlignmentTask, side: int) -> tuple[IntArray, IntArray, IntArray]:
    """List each triple of a side from both ends, in order: entity, neighbour and directed relation (int32)."""
    split = task.num_source_triples
    triples = task.triples[:split] if side == 0 else task.triples[split:]
    first_ids = np.array([task.num_source_entities, task.num_source_relations, task.num_source_entities]) * side
    triples = ((triples - first_ids)[triples[:, 0] != triples[:, 2]]).astype(np.int32)
    directed_relations = 2 * triples[:, 1:2] + np.array([0, 1], dtype=np.int32)
    return triples[:, [0, 2]].ravel(), triples[:, [2, 0]].ravel(), directed_relations.ravel()
