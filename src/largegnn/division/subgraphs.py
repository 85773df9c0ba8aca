"""Build the subgraphs of a partition, and measure how much they keep of the graphs (section 4 of the paper).

In: the task, its seeds, a partition whose parts may overlap. Out: a `SubgraphSet`, flat arrays with local ids of the
triples and seed pairs that have both ends in a part; and a `PartitionQuality`: sizes, and the shares of edges, triples
and links with both ends in one part.
The idea: one pass over the triples counts the triples of each part, a second pass writes them.
Cost: O(triples + links + members), whatever the number of parts; memory is the result, twice while it is written.

# Paper: a triple is kept in every subgraph that has both its ends. The quality has the columns "Train", "Test" and
#     "S-size" of the paper's tables.
# Departs: sizes differ, because parts are not padded with random entities as in the authors' code. "Test" counts only
#     test links; the authors' code included the seeds.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    DivisionPlan,
    IntArray,
    MergedGraph,
    Partition,
    PartitionQuality,
    SubgraphSet,
)
from largegnn.division.landmarks import landmarks as recall
from largegnn.division.membership import Membership, count_sharing, invert_parts, place_pairs, share_part
from largegnn.machine.compiled import compiled
from largegnn.parts import PARTITIONERS

if TYPE_CHECKING:
    from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings

__all__ = ["SubgraphsResult", "build_subgraphs", "divide_again", "measure_quality", "share_kept", "subgraphs"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubgraphsResult:
    """The subgraphs, and how much of graphs and links they keep."""

    subgraphs: SubgraphSet
    outcome: PartitionQuality


def subgraphs(
    task: AlignmentTask, merged: MergedGraph, parts: Partition, membership: Partition, protocol: ProtocolSettings
) -> SubgraphsResult:
    """Build the subgraphs of all parts, and measure the quality of the division."""
    # Quality is measured in a second thread: both are compiled loops, which release the GIL.
    with ThreadPoolExecutor(1) as pool:
        pending_quality = pool.submit(measure_quality, task, merged, membership, parts)
        subgraph_set = build_subgraphs(task, task.seeds(protocol.seeds_from), membership)
        quality = pending_quality.result()
    if quality.num_uncovered:
        _log.warning("subgraphs: %s entities are in no subgraph", f"{quality.num_uncovered:,}")
    return SubgraphsResult(subgraph_set, quality)


def divide_again(
    task: AlignmentTask,
    merged: MergedGraph,
    plan: DivisionPlan,
    protocol: ProtocolSettings,
    division: DivisionSettings,
    landmarks: LandmarkSettings,
    seed: int,
) -> SubgraphSet:
    """Divide again by an existing plan, with another seed: for repartitioning, and for rounds of self-training."""
    # No warning of parts larger than the cap, which get no landmarks: `partition` warned at the first division.
    parts = PARTITIONERS[division.partitioner](task, merged, protocol.seeds_from, plan.num_parts, seed)
    membership = recall(task, merged, parts, plan, protocol, landmarks).membership
    return build_subgraphs(task, task.seeds(protocol.seeds_from), membership)


def build_subgraphs(task: AlignmentTask, seeds: IntArray, partition: Partition) -> SubgraphSet:
    """Build every part's subgraph: the triples and `seeds` (k, 2) with both ends in it, in their given order."""
    membership = invert_parts(partition.num_entities, partition.entities, partition.part_ptr)
    # Columns are copied, because numba compiles a function again for arrays with another memory layout.
    heads, tails = task.triples[:, 0].copy(), task.triples[:, 2].copy()
    placed = place_pairs(membership, partition.num_parts, heads, tails)
    triples = np.empty((len(placed.rows), 3), dtype=np.int32)
    triples[:, 0] = placed.firsts
    triples[:, 1] = task.triples[placed.rows, 1]
    triples[:, 2] = placed.seconds
    paired = place_pairs(membership, partition.num_parts, seeds[:, 0].copy(), seeds[:, 1].copy())
    return SubgraphSet(
        entities=partition.entities,
        entity_ptr=partition.part_ptr,
        triples=triples,
        triple_ptr=placed.part_ptr,
        seeds=np.stack([paired.firsts, paired.seconds], axis=1),
        seed_ptr=paired.part_ptr,
    )


def measure_quality(
    task: AlignmentTask, graph: MergedGraph, partition: Partition, before_landmarks: Partition | None = None
) -> PartitionQuality:
    """Measure `partition`; the entities that a part has more than in `before_landmarks` count as landmarks."""
    membership = invert_parts(partition.num_entities, partition.entities, partition.part_ptr)
    # A node is in a part if one of its entities is; a node that repeats within a part does not change the count.
    node_membership = invert_parts(graph.num_nodes, graph.node_of_entity[partition.entities], partition.part_ptr)
    sizes = partition.sizes
    num_sources = np.concatenate([[0], np.cumsum(partition.entities < task.num_source_entities)])
    landmarks = np.zeros_like(sizes) if before_landmarks is None else sizes - before_landmarks.sizes
    return PartitionQuality(
        sizes=tuple(sizes.tolist()),
        source_sizes=tuple(np.diff(num_sources[partition.part_ptr]).tolist()),
        num_landmarks=tuple(landmarks.tolist()),
        num_uncovered=partition.num_uncovered,
        edge_cut=_share(_count_cut(node_membership, graph.neighbor_ptr, graph.neighbors), graph.num_edges),
        triples_kept=_kept(membership, task.triples[:, (0, 2)]),
        train_kept=_kept(membership, task.train_links),
        valid_kept=_kept(membership, task.valid_links),
        test_kept=_kept(membership, task.test_links),
    )


def share_kept(links: IntArray, partition: Partition) -> float | None:
    """The share of `links` (k, 2) with both ends in one part; None without links."""
    return _kept(invert_parts(partition.num_entities, partition.entities, partition.part_ptr), links)


def _kept(membership: Membership, pairs: IntArray) -> float | None:
    """The share of `pairs` (k, 2) with both ends in one part."""
    return _share(count_sharing(membership, pairs[:, 0].copy(), pairs[:, 1].copy()), len(pairs))


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


@compiled
def _count_cut(membership: Membership, neighbor_ptr: IntArray, neighbors: IntArray) -> int:
    """Count the edges whose two nodes have no part in common; every edge is counted once."""
    count = 0
    for node in range(len(neighbor_ptr) - 1):
        for slot in range(neighbor_ptr[node], neighbor_ptr[node + 1]):
            if neighbors[slot] > node and not share_part(membership, node, neighbors[slot]):
                count += 1
    return count
