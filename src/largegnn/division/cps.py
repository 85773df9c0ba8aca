"""CPS, LargeEA's partition: one graph is divided first, the other is drawn after it along the seeds.

In: the task, its seeds, the number of parts. Out: a `Partition` into disjoint blocks that cover every entity.
The idea: METIS divides the leading graph. The seed partners of one part's seeds form a group in the following graph;
heavy edges hold the group together and edges between groups are cut, so that METIS on the following graph tends to keep
each group in one part. Parts of the two sides are then married by the seeds they share.
Cost: METIS on either graph, and sparse matrix assembly.

# Paper: LargeEA's METIS-CPS with stable matching, the baseline "CPS" of the tables. Both graphs first get the other's
#     triples between seeds. Edges count once however many triples they stand for, as in LargeEA's code.
# Departs: it gets the true seeds; preferences are plain counts of shared seeds on both sides, and every part finds a
#     partner, so no entity is lost.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from largegnn.artifacts import AlignmentTask, IntArray, Partition
from largegnn.division.metis import partition_csr
from largegnn.division.stable_matching import stable_matching

__all__ = ["block_of_entity", "count_overlap", "cps"]

_GROUP_WEIGHT = 1000
_NO_GROUP = -1


def cps(task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int) -> Partition:
    """Divide both graphs into `num_parts` blocks, the source leading; `seeds` (k, 2)."""
    return Partition.from_labels(block_of_entity(task, seeds, num_parts, seed), num_parts)


def block_of_entity(
    task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int, *, target_leads: bool = False
) -> IntArray:
    """The block of each entity, (num_entities,) int32; blocks are numbered by the parts of the leading graph."""
    ends = [(0, task.num_source_entities), (task.num_source_entities, task.num_entities)]
    lead, follow = (1, 0) if target_leads else (0, 1)
    block = np.empty(task.num_entities, dtype=np.int32)
    leaders, followers = slice(*ends[lead]), slice(*ends[follow])

    heads, tails = _edges(task, seeds, lead)
    block[leaders] = _metis(heads, tails, np.ones_like(heads), leaders, num_parts, seed)

    heads, tails = _edges(task, seeds, follow)
    group = np.full(task.num_entities, _NO_GROUP, dtype=np.int32)
    group[seeds[:, follow]] = block[seeds[:, lead]]
    heads, tails, weights = _draw_groups(heads, tails, group)
    part = _metis(heads, tails, weights, followers, num_parts, seed)

    follower_part = part[seeds[:, follow] - followers.start]
    overlap = count_overlap(block[seeds[:, lead]], follower_part, num_parts)
    leader_of_part = np.argsort(stable_matching(overlap))
    block[followers] = leader_of_part[part]
    return block


def count_overlap(first_labels: IntArray, second_labels: IntArray, num_parts: int) -> IntArray:
    """How often label i meets label j, (num_parts, num_parts)."""
    codes = first_labels.astype(np.int64) * num_parts + second_labels
    return np.bincount(codes, minlength=num_parts**2).reshape(num_parts, num_parts)


def _edges(task: AlignmentTask, seeds: IntArray, side: int) -> tuple[IntArray, IntArray]:
    """Both ends of the triples of one side (0 source, 1 target) and of the other side's triples between seeds."""
    # Where seeds are not one-to-one, the last partner of an entity stands for it.
    here = np.full(task.num_entities, -1, dtype=np.int64)
    start, stop = (0, task.num_source_entities) if side == 0 else (task.num_source_entities, task.num_entities)
    here[start:stop] = np.arange(start, stop)
    here[seeds[:, 1 - side]] = seeds[:, side]
    heads, tails = here[task.triples[:, 0]], here[task.triples[:, 2]]
    usable = (heads >= 0) & (tails >= 0) & (heads != tails)
    return heads[usable], tails[usable]


def _draw_groups(heads: IntArray, tails: IntArray, group: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Cut edges between groups, add a star to each group, and weigh the edges inside; `group` is per entity."""
    members = np.flatnonzero(group != _NO_GROUP)
    _, first, inverse = np.unique(group[members], return_index=True, return_inverse=True)
    centers = members[first][inverse]
    rays = members != centers
    heads, tails = np.concatenate([heads, centers[rays]]), np.concatenate([tails, members[rays]])
    one_group = group[heads] == group[tails]
    grouped = (group[heads] != _NO_GROUP) & (group[tails] != _NO_GROUP)
    keep = one_group | ~grouped
    weights = np.where(one_group & grouped, _GROUP_WEIGHT, 1)
    return heads[keep], tails[keep], weights[keep]


def _metis(heads: IntArray, tails: IntArray, weights: IntArray, side: slice, num_parts: int, seed: int) -> IntArray:
    """METIS on the entities of one side; parallel edges count once."""
    size = side.stop - side.start
    low, high = np.minimum(heads, tails) - side.start, np.maximum(heads, tails) - side.start
    # An edge's weight follows from its two ends, so any of its parallels will do.
    _, once = np.unique(low * size + high, return_index=True)
    upper = sparse.coo_array((weights[once], (low[once], high[once])), shape=(size, size)).tocsr()
    graph = (upper + upper.T).tocsr()
    node_weights = np.ones(size, dtype=np.int64)
    return partition_csr(graph.indptr, graph.indices, graph.data, node_weights, num_parts, seed)
