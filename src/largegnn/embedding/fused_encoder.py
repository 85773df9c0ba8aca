"""Dual-AMN by fused kernels: what `dual_amn` computes, over a `PairGraph`, both blocks at once.

In: entity rows (n, d), relation rows (2R, d), the graph, and the nodes whose outputs are asked for. Out: (k, 6 d).
The idea: only the first layer is needed of all nodes; the second, and all that follows, of those asked for alone. In
training that is a tenth of a large subgraph. The sum over neighbours also serves the reconstruction loss.
Cost: O(pairs d) for the first layer, and for each node that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.fused import Places, reflected_sums, sums_of_rows
from largegnn.embedding.pair_graph import PairGraph

__all__ = ["HiddenLayers", "hidden_layers", "neighbor_sums", "outputs_of"]


@dataclass(frozen=True, eq=False)
class HiddenLayers:
    """The first two layers (2, n, d) of both blocks, the unit vectors (S, d) of sets, their logits (layer, 2, S)."""

    first: Tensor
    second: Tensor
    relations: Tensor
    logits: Tensor


def neighbor_sums(rows: Tensor, graph: PairGraph) -> Tensor:
    """Sum of the neighbours' rows, (n, d)."""
    pattern = (graph.neighbors, graph.node_pieces)
    return sums_of_rows(rows, *pattern, *pattern, len(rows))


def hidden_layers(
    encoder: DualAMN, rows: Tensor, sums: Tensor, relation_rows: Tensor, graph: PairGraph
) -> HiddenLayers:
    """What all nodes hold before the last layer; `sums` are their `neighbor_sums`."""
    relations = _unit_vectors(relation_rows, graph)
    by_entity = (sums + rows) / (graph.degrees + 1.0).unsqueeze(1)
    at_node = (graph.incidences, graph.incidence_pieces, graph.touched, graph.row_pieces)
    by_relation = sums_of_rows(relation_rows, *at_node, len(rows)) / graph.num_incident.clamp_min(1.0).unsqueeze(1)
    first = torch.tanh(torch.stack([by_entity, by_relation]))
    attention = torch.stack([encoder.entity_block.attention, encoder.relation_block.attention], dim=1)
    logits = attention @ relations.t()
    second = torch.tanh(reflected_sums(first, relations, logits[0], graph))
    return HiddenLayers(first, second, relations, logits)


def outputs_of(encoder: DualAMN, layers: HiddenLayers, graph: PairGraph, nodes: Tensor) -> Tensor:
    """Outputs (k, 6 d) of `nodes` (k,), of which some may be named twice."""
    places = Places.of(nodes, layers.first.shape[1])
    last = reflected_sums(layers.second, layers.relations, layers.logits[1], graph, places)
    last = torch.tanh(last.index_select(1, places.of_node[nodes].long()))
    own = torch.cat([layers.first.index_select(1, nodes), layers.second.index_select(1, nodes), last], dim=2)
    blocks = (encoder.entity_block, encoder.relation_block)
    return torch.cat([block.mix(rows) for block, rows in zip(blocks, own, strict=True)], dim=1)


def _unit_vectors(relation_rows: Tensor, graph: PairGraph) -> Tensor:
    """The unit vector of each relation set, (S, d): its mean row, normalised."""
    of_members = relation_rows.index_select(0, graph.members)
    sums = relation_rows.new_zeros(len(graph.set_sizes), relation_rows.shape[1])
    sums = sums.index_add(0, graph.set_of_member, of_members)
    return functional.normalize(sums / graph.set_sizes.clamp_min(1.0).unsqueeze(1), dim=1)
