"""How much a division keeps: sizes, and shares of edges, triples and links with both ends in one part.

In: the task, its merged graph, a partition, and the partition before landmarks if it has any. Out: `PartitionQuality`.
Cost: O(members + edges + triples + links), whatever the number of parts.

# Paper: the columns "Train", "Test" and "S-size" of its tables.
# Departs: "Test" counts test links only; the authors' code counted the seeds in.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, MergedGraph, Partition, PartitionQuality
from largegnn.division.membership import Membership, count_sharing, invert_parts, share_part
from largegnn.machine.compiled import compiled

__all__ = ["measure_quality", "share_kept"]


def measure_quality(
    task: AlignmentTask, graph: MergedGraph, partition: Partition, before_landmarks: Partition | None = None
) -> PartitionQuality:
    """Measure `partition`; what it has beyond `before_landmarks` counts as landmarks."""
    membership = invert_parts(partition.num_entities, partition.entities, partition.part_ptr)
    # A node is in a part if any of its entities is: the node may repeat within the part, which does no harm here.
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
    """The share of `links` (k, 2) with both ends in one part; None of none."""
    return _kept(invert_parts(partition.num_entities, partition.entities, partition.part_ptr), links)


def _kept(membership: Membership, pairs: IntArray) -> float | None:
    """The share of `pairs` (k, 2) that are together in a part."""
    return _share(count_sharing(membership, pairs[:, 0].copy(), pairs[:, 1].copy()), len(pairs))


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


@compiled
def _count_cut(membership: Membership, neighbor_ptr: IntArray, neighbors: IntArray) -> int:
    """How many edges have their two nodes in no common part, each edge counted once."""
    count = 0
    for node in range(len(neighbor_ptr) - 1):
        for slot in range(neighbor_ptr[node], neighbor_ptr[node + 1]):
            if neighbors[slot] > node and not share_part(membership, node, neighbors[slot]):
                count += 1
    return count
