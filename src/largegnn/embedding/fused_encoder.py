"""Compute the Dual-AMN encoder with fused kernels: the function of `dual_amn` over a `PairGraph`, both blocks at once.

In: entity rows (n, d), relation rows (2R, d), the graph, and k nodes whose outputs are needed. Out: outputs (k, 6 d).
The idea: the first two layers are computed for all nodes; the last layer, and everything after it, only for the nodes
whose outputs are needed, in training a tenth of a large subgraph. The sums over neighbours are also used by the
reconstruction loss.
Cost: O(pairs d) for the first layers; for the rest, O(d) per pair and O(d^2) per node among the k nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.fused import Places, Powers, first_layers, powers_of, reflected_sums, sums_of_rows
from largegnn.embedding.pair_graph import PairGraph

__all__ = ["HiddenLayers", "hidden_layers", "outputs_of"]


@dataclass(frozen=True, eq=False)
class HiddenLayers:
    """The first two layers (2, n, d) of both blocks, unit vectors (S, d) of the sets, their logits (4, S) and powers.

    The first dimension of the layers is the block. The four rows of logits: first attention layer in the entity and the
    relation block, second attention layer in both blocks.
    """

    first: Tensor
    second: Tensor
    relations: Tensor
    logits: Tensor
    powers: Powers


def hidden_layers(
    encoder: DualAMN, rows: Tensor, relation_rows: Tensor, graph: PairGraph, rate: float, noise: Tensor
) -> tuple[HiddenLayers, Tensor]:
    """The layers before the last, for all nodes, and the reconstruction loss of `rows` with dropout `rate`."""
    relations = _unit_vectors(relation_rows, graph)
    pairs = (graph.neighbors, graph.node_pieces)  # a symmetric pattern, its own transpose
    sums = sums_of_rows(rows, *pairs, *pairs, len(rows))
    relation_sums = sums_of_rows(
        relation_rows, graph.incidences, graph.incidence_pieces, graph.touched, graph.row_pieces, len(rows)
    )
    first, loss = first_layers(rows, sums, relation_sums, graph, rate, noise)
    del sums, relation_sums  # large for a whole graph, and kept by autograd if gradients need them
    attention = torch.stack([encoder.entity_block.attention, encoder.relation_block.attention], dim=1)
    logits = attention.flatten(0, 1) @ relations.t()
    powers = powers_of(logits, graph)
    second = _tanh(reflected_sums(first, relations, logits[:2], powers.part(slice(0, 2)), graph))
    return HiddenLayers(first, second, relations, logits, powers), loss


def outputs_of(encoder: DualAMN, layers: HiddenLayers, graph: PairGraph, nodes: Tensor) -> Tensor:
    """Outputs (k, 6 d) of `nodes` (k,), which may repeat."""
    places = Places.of(nodes, layers.first.shape[1])
    powers = layers.powers.part(slice(2, 4))
    last = reflected_sums(layers.second, layers.relations, layers.logits[2:], powers, graph, places)
    last = _tanh(last.index_select(1, places.of_node[nodes].long()))
    hidden = torch.cat([layers.first.index_select(1, nodes), layers.second.index_select(1, nodes), last], dim=2)
    by_entity, by_relation = hidden.unbind()
    return torch.cat([encoder.entity_block.mix(by_entity), encoder.relation_block.mix(by_relation)], dim=1)


def _tanh(rows: Tensor) -> Tensor:
    """Hyperbolic tangent, computed in place if no gradient is needed."""
    return torch.tanh(rows) if torch.is_grad_enabled() else rows.tanh_()


def _unit_vectors(relation_rows: Tensor, graph: PairGraph) -> Tensor:
    """The unit vector of each relation set, (S, d): the normalised mean of its relation rows."""
    of_members = relation_rows.index_select(0, graph.members)
    sums = relation_rows.new_zeros(len(graph.set_sizes), relation_rows.shape[1])
    sums = sums.index_add(0, graph.set_of_member, of_members)
    return functional.normalize(sums / graph.set_sizes.clamp_min(1.0).unsqueeze(1), dim=1)
