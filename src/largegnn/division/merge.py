"""Merge the two graphs: contract each seed pair to one node (section 4.1 of the paper).

In: an `AlignmentTask` and which of its links are seeds. Out: a `MergedGraph`, undirected and weighted, without loops.
If seeds are not one-to-one, all entities that a chain of seeds connects become one node, so no seed pair is split.
Cost: the assembly of a sparse matrix, O(triples); a few arrays of that length are in memory at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from largegnn.artifacts import AlignmentTask, IntArray, MergedGraph, SeedsFrom

__all__ = ["MergeCounts", "MergeOutcome", "MergeResult", "count_merge", "merge", "merge_result"]


@dataclass(frozen=True)
class MergeCounts:
    """How many nodes hold a seed pair; how many nodes hold more than two entities, and how many entities those are."""

    num_seed_nodes: int
    num_group_nodes: int
    num_group_entities: int


@dataclass(frozen=True)
class MergeOutcome:
    """The size of the merged graph, and the counts of contracted nodes."""

    num_nodes: int
    num_edges: int
    counts: MergeCounts


@dataclass(frozen=True)
class MergeResult:
    """The merged graph and its counts."""

    merged: MergedGraph
    outcome: MergeOutcome


def merge_result(task: AlignmentTask, seeds_from: SeedsFrom = "train") -> MergeResult:
    """Merge the graphs and count nodes and edges of the result."""
    graph = merge(task, seeds_from)
    return MergeResult(graph, MergeOutcome(graph.num_nodes, graph.num_edges, count_merge(graph)))


def merge(task: AlignmentTask, seeds_from: SeedsFrom = "train") -> MergedGraph:
    """Contract the seed pairs of `task`; the weight of an edge is the number of triples between its nodes."""
    node_of_entity = _contract(task.num_entities, task.seeds(seeds_from))
    num_nodes = int(node_of_entity.max(initial=-1)) + 1
    heads, tails = node_of_entity[task.triples[:, 0]], node_of_entity[task.triples[:, 2]]
    joins_two_nodes = heads != tails
    heads, tails = heads[joins_two_nodes], tails[joins_two_nodes]
    # Assembling only the upper triangle halves the work; conversion to CSR sums parallel triples.
    upper = sparse.coo_array(
        (np.ones(len(heads), dtype=np.int32), (np.minimum(heads, tails), np.maximum(heads, tails))),
        shape=(num_nodes, num_nodes),
    ).tocsr()
    upper.sum_duplicates()
    graph = (upper + upper.T).tocsr()
    graph.sort_indices()
    return MergedGraph(
        node_of_entity=node_of_entity,
        neighbor_ptr=graph.indptr,
        neighbors=graph.indices,
        edge_weights=graph.data,
        node_weights=np.bincount(node_of_entity, minlength=num_nodes),
    )


def count_merge(graph: MergedGraph) -> MergeCounts:
    """Count the nodes that hold several entities, and the nodes that hold more than two."""
    is_group = graph.node_weights > 2
    return MergeCounts(
        num_seed_nodes=int((graph.node_weights > 1).sum()),
        num_group_nodes=int(is_group.sum()),
        num_group_entities=int(graph.node_weights[is_group].sum()),
    )


def _contract(num_entities: int, seeds: IntArray) -> IntArray:
    """Map each entity to its node, (num_entities,) int32; nodes are numbered by their smallest entity."""
    pairs = sparse.coo_array(
        (np.ones(len(seeds), dtype=np.int8), (seeds[:, 0], seeds[:, 1])), shape=(num_entities, num_entities)
    )
    _, group_of_entity = csgraph.connected_components(pairs, directed=False)
    _, first_entity = np.unique(group_of_entity, return_index=True)
    node_of_group = np.empty(len(first_entity), dtype=np.int32)
    node_of_group[np.argsort(first_entity, kind="stable")] = np.arange(len(first_entity), dtype=np.int32)
    return node_of_group[group_of_entity]
