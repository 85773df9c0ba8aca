"""Divide a graph with METIS; no other module imports `pymetis` (section 4.1 of the paper).

In: a `MergedGraph`, or CSR arrays. Out: the part of each node, or a `Partition` of the entities.
The idea: METIS minimises the weight of edges between parts of about equally many entities. A seed pair is one node of
the merged graph, so no seed pair is split.
Cost: multilevel k-way partitioning, about linear in the edges; CSR arrays are passed without a copy if their integers
have the width that METIS uses. pymetis holds the GIL: other threads of the process wait.

# Paper: k-way METIS on the merged graph, default imbalance (3 %).
# Departs: the weight of an edge is its number of triples, the weight of a node its number of entities, so that parts
#     have about equally many entities (the authors' code passes no weights); no part is empty; the seed is given; for a
#     small graph METIS returns the best of several partitions, which differ less between seeds and take a few seconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, MergedGraph, Partition
from largegnn.errors import InputError

__all__ = ["check_num_parts", "merged_metis", "partition_csr", "partition_graph", "without_empty_parts"]

_MAX_SMALL_EDGES = 1_000_000  # edges of a graph that counts as small
_SMALL_GRAPH_CUTS = 4  # partitions of a small graph that METIS computes, to return the best


def merged_metis(graph: MergedGraph, num_parts: int, seed: int) -> Partition:
    """Divide the entities by dividing the nodes of the merged graph."""
    part_of_node = partition_graph(graph, num_parts, seed)
    return Partition.from_labels(part_of_node[graph.node_of_entity], num_parts)


def partition_graph(graph: MergedGraph, num_parts: int, seed: int) -> IntArray:
    """Compute the part of each node, (num_nodes,) int32; no part is empty."""
    return partition_csr(graph.neighbor_ptr, graph.neighbors, graph.edge_weights, graph.node_weights, num_parts, seed)


def partition_csr(
    neighbor_ptr: IntArray,
    neighbors: IntArray,
    edge_weights: IntArray,
    node_weights: IntArray,
    num_parts: int,
    seed: int,
) -> IntArray:
    """Compute the part of each node of a symmetric CSR graph without loops, (num_nodes,) int32; no part is empty."""
    import pymetis

    num_nodes = len(neighbor_ptr) - 1
    check_num_parts(num_parts, num_nodes)
    if num_parts == 1:
        return np.zeros(num_nodes, dtype=np.int32)
    width = pymetis.zero_copy_dtype()
    _check_width(width, len(neighbors), int(edge_weights.sum(dtype=np.int64)))
    # METIS seeds the random generator of the C library, for which 0 and 1 are the same seed.
    options = pymetis.Options(seed=seed % (2**31 - 1) + 1)
    if len(neighbors) <= 2 * _MAX_SMALL_EDGES:
        options.ncuts = _SMALL_GRAPH_CUTS
    division = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(neighbor_ptr.astype(width, copy=False), neighbors.astype(width, copy=False)),
        vweights=node_weights.astype(width, copy=False),
        eweights=edge_weights.astype(width, copy=False),
        recursive=False,
        options=options,
    )
    return without_empty_parts(np.asarray(division.vertex_part, dtype=np.int32), num_parts)


def _check_width(width: np.dtype[np.integer[npt.NBitBase]], num_slots: int, total_weight: int) -> None:
    """Refuse a graph with more edges than METIS' integers can count."""
    limit = int(np.iinfo(width).max)
    if max(num_slots, total_weight) > limit:
        raise InputError(
            f"the graph is too large for this build of METIS, which counts in {8 * width.itemsize} bits",
            expected=f"at most {limit} edge ends, also when weighted",
            found=f"{num_slots} edge ends of total weight {total_weight}",
            fix="install a pymetis built with 64-bit indices, as the wheels on PyPI are",
        )


def check_num_parts(num_parts: int, num_nodes: int) -> None:
    """Refuse a number of parts that would leave a part without a node."""
    if num_nodes == 0:
        raise InputError("there is nothing to divide: the graph has no entities", fix="check the triple files")
    if not 1 <= num_parts <= num_nodes:
        raise InputError(
            "the graph cannot be divided into that many parts",
            expected=f"1 to {num_nodes} parts, as the graph has {num_nodes} nodes",
            found=f"{num_parts} parts",
            fix="choose a number of parts in that range",
        )


def without_empty_parts(part_of_node: IntArray, num_parts: int) -> IntArray:
    """Give each empty part one node of the parts with the most nodes; `part_of_node` (num_nodes,).

    METIS returns empty parts if there are only a few more nodes than parts, or very few edges.
    """
    sizes = np.bincount(part_of_node, minlength=num_parts)
    empty = np.flatnonzero(sizes == 0)
    if len(empty) == 0:
        return part_of_node
    by_part = np.argsort(part_of_node, kind="stable")
    rank_in_part = np.arange(len(by_part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # Nodes with the highest rank in their part are moved; the first node of a part stays, so no part becomes empty.
    moved = by_part[np.argsort(-rank_in_part, kind="stable")[: len(empty)]]
    result = part_of_node.copy()
    result[moved] = empty
    return result
