"""Divide both graphs by CPS (the partitioner of LargeEA) or SBP (the partitioner of LIME), baselines of the paper.

In: the task, its seeds, the number of parts. Out: a `Partition` that covers every entity; the blocks of SBP overlap.
CPS: METIS divides the leading graph. In the following graph, the partners of all seeds in one part form a group: the
group's edges get a high weight and edges between groups are removed, so that METIS on the following graph tends to keep
a group in one part. Stable matching pairs the parts of the two graphs by the seeds they share.
SBP: CPS led by the source and CPS led by the target; each block of the first is united with the block of the second
with which it shares most seeds. A block of the second may be used several times or never.
Cost: METIS on both graphs, for SBP twice.

# Paper: LargeEA's METIS-CPS with stable matching and LIME's SBP, the baselines "CPS" and "SBP" of the tables. Both
#     graphs first get the other's triples between seeds. Edges count once however many triples they stand for, as in
#     LargeEA's code.
# Departs: CPS gets the true seeds; preferences are counts of shared seeds on both sides, and every part is matched, so
#     no entity is lost. SBP runs this CPS twice.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from largegnn.artifacts import AlignmentTask, IntArray, Partition
from largegnn.division.metis import partition_csr

__all__ = ["block_of_entity", "count_overlap", "cps", "sbp", "stable_matching"]

_GROUP_WEIGHT = 1000  # of edges inside a group; other edges have weight 1
_NO_GROUP = -1


def cps(task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int) -> Partition:
    """Divide both graphs into `num_parts` blocks, the source leading; `seeds` (k, 2)."""
    return Partition.from_labels(block_of_entity(task, seeds, num_parts, seed), num_parts)


def sbp(task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int) -> Partition:
    """Divide both graphs into `num_parts` overlapping blocks; `seeds` (k, 2)."""
    forward = block_of_entity(task, seeds, num_parts, seed)
    backward = block_of_entity(task, seeds, num_parts, seed, target_leads=True)
    ends = np.unique(seeds)
    partner_of_block = count_overlap(forward[ends], backward[ends], num_parts).argmax(axis=1)
    first, second = Partition.from_labels(forward, num_parts), Partition.from_labels(backward, num_parts)
    blocks = [np.union1d(first.part(block), second.part(partner_of_block[block])) for block in range(num_parts)]
    part_ptr = np.concatenate([[0], np.cumsum([len(block) for block in blocks], dtype=np.int64)])
    return Partition(task.num_entities, np.concatenate(blocks), part_ptr)


def block_of_entity(
    task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int, *, target_leads: bool = False
) -> IntArray:
    """Compute the block of each entity, (num_entities,) int32; blocks have the numbers of the leading graph's parts."""
    sides = (slice(0, task.num_source_entities), slice(task.num_source_entities, task.num_entities))
    lead, follow = (1, 0) if target_leads else (0, 1)
    block = np.empty(task.num_entities, dtype=np.int32)
    leaders, followers = sides[lead], sides[follow]

    heads, tails = _edges(task, seeds, lead)
    block[leaders] = _metis(heads, tails, np.ones_like(heads), leaders, num_parts, seed)

    heads, tails = _edges(task, seeds, follow)
    group = np.full(task.num_entities, _NO_GROUP, dtype=np.int32)
    group[seeds[:, follow]] = block[seeds[:, lead]]
    heads, tails, weights = _join_groups(heads, tails, group)
    part = _metis(heads, tails, weights, followers, num_parts, seed)

    follower_part = part[seeds[:, follow] - followers.start]
    overlap = count_overlap(block[seeds[:, lead]], follower_part, num_parts)
    leader_of_part = np.argsort(stable_matching(overlap))
    block[followers] = leader_of_part[part]
    return block


def count_overlap(first_labels: IntArray, second_labels: IntArray, num_parts: int) -> IntArray:
    """Count how often label i occurs together with label j, (num_parts, num_parts)."""
    codes = first_labels.astype(np.int64) * num_parts + second_labels
    return np.bincount(codes, minlength=num_parts**2).reshape(num_parts, num_parts)


def stable_matching(overlap: IntArray) -> IntArray:
    """Match each row of `overlap` (n, n) with a column, (n,), by the Gale-Shapley method; higher overlap is preferred.

    Afterwards no row and column prefer each other to their matches. Ties are broken by the lower number, so the result
    is unique. Cost: O(n^2 log n).
    """
    size = len(overlap)
    choices_of_row = np.argsort(-overlap, axis=1, kind="stable").tolist()
    rank_in_column = np.empty_like(overlap)
    np.put_along_axis(rank_in_column, np.argsort(-overlap, axis=0, kind="stable"), np.arange(size)[:, None], axis=0)
    next_choice = [0] * size
    row_of_column: list[int | None] = [None] * size
    waiting = list(range(size))[::-1]
    while waiting:
        row = waiting.pop()
        column = choices_of_row[row][next_choice[row]]
        next_choice[row] += 1
        current = row_of_column[column]
        if current is None or rank_in_column[row, column] < rank_in_column[current, column]:
            row_of_column[column] = row
            row = current
        if row is not None:
            waiting.append(row)
    return np.argsort(np.array(row_of_column))


def _edges(task: AlignmentTask, seeds: IntArray, side: int) -> tuple[IntArray, IntArray]:
    """Heads and tails of one side's triples (0 source, 1 target) and of the other side's triples between seeds."""
    entity_on_side = np.full(task.num_entities, -1, dtype=np.int64)
    start, stop = (0, task.num_source_entities) if side == 0 else (task.num_source_entities, task.num_entities)
    entity_on_side[start:stop] = np.arange(start, stop)
    # If an entity is in several seeds, its last partner is used.
    entity_on_side[seeds[:, 1 - side]] = seeds[:, side]
    heads, tails = entity_on_side[task.triples[:, 0]], entity_on_side[task.triples[:, 2]]
    usable = (heads >= 0) & (tails >= 0) & (heads != tails)
    return heads[usable], tails[usable]


def _join_groups(heads: IntArray, tails: IntArray, group: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Remove edges between groups, add a star to each group, and weight edges inside groups; `group` is per entity."""
    members = np.flatnonzero(group != _NO_GROUP)
    _, first, inverse = np.unique(group[members], return_index=True, return_inverse=True)
    centers = members[first][inverse]
    is_ray = members != centers
    heads, tails = np.concatenate([heads, centers[is_ray]]), np.concatenate([tails, members[is_ray]])
    in_equal_groups = group[heads] == group[tails]
    both_in_groups = (group[heads] != _NO_GROUP) & (group[tails] != _NO_GROUP)
    keep = in_equal_groups | ~both_in_groups
    weights = np.where(in_equal_groups & both_in_groups, _GROUP_WEIGHT, 1)
    return heads[keep], tails[keep], weights[keep]


def _metis(heads: IntArray, tails: IntArray, weights: IntArray, side: slice, num_parts: int, seed: int) -> IntArray:
    """Divide the entities of one side by METIS; parallel edges count once."""
    size = side.stop - side.start
    low, high = np.minimum(heads, tails) - side.start, np.maximum(heads, tails) - side.start
    # Parallel edges have the same weight, which depends only on their ends, so any of them can be kept.
    _, distinct = np.unique(low * size + high, return_index=True)
    upper = sparse.coo_array((weights[distinct], (low[distinct], high[distinct])), shape=(size, size)).tocsr()
    graph = (upper + upper.T).tocsr()
    node_weights = np.ones(size, dtype=np.int64)
    return partition_csr(graph.indptr, graph.indices, graph.data, node_weights, num_parts, seed)
