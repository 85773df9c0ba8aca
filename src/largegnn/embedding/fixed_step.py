"""One step of training over arrays of a fixed size: what `stepping` does, made to be captured as a CUDA graph.

In: the rows of a padded subgraph, a `PairGraph`, and what was drawn for this step. Out: the loss, with its gradient.
The idea: nothing may depend on how many seeds, nodes or outside entities there are, since a captured step is repeated
as it is: padding counts nothing instead. A node that is drawn twice is encoded once and mixed twice, so that its two
outputs hide other numbers.
Only Dual-AMN and the paper's three losses are written this way: anything else takes the plain path.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.fused_encoder import hidden_layers, neighbor_sums, outputs_of
from largegnn.embedding.losses import FixedShape, cross_negative_loss, fixed_alignment_loss
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.pair_graph import PairGraph
from largegnn.embedding.sampling import dropout

__all__ = ["Draws", "can_be_fixed", "fixed_loss"]

_LOSSES = {"alignment", "reconstruction", "cross_subgraph"}


@dataclass(frozen=True, eq=False)
class Draws:
    """What a step draws: `seeds` (b, 2) with their `shares` (b,), distinct `negatives` (m,), all local ids;
    rows `outside` (c, d) of entities that are not in the subgraph, where `kept` (c,) is 1.
    """

    seeds: Tensor
    shares: Tensor
    negatives: Tensor
    outside: Tensor
    kept: Tensor


def can_be_fixed(encoder: object, options: TrainOptions) -> bool:
    """Whether a step with this encoder and these losses can be written over arrays of a fixed size."""
    used = {name for name, weight in options.losses.items() if weight}
    return type(encoder) is DualAMN and used <= _LOSSES and "alignment" in used and options.negatives > 0


def fixed_loss(
    encoder: DualAMN,
    rows: Tensor,
    relation_rows: Tensor,
    graph: PairGraph,
    draws: Draws,
    options: TrainOptions,
    generator: torch.Generator,
) -> Tensor:
    """The weighted sum of the losses of `rows` (n, d), of which the last may be padding."""
    weights = options.losses
    constants = {"scale": options.scale, "shift": options.shift, "chunk_bytes": options.loss_chunk_bytes}
    sums = neighbor_sums(rows, graph)
    layers = hidden_layers(encoder, rows, sums, relation_rows, graph)
    ends = draws.seeds.t().flatten()
    outputs = outputs_of(encoder, layers, graph, torch.cat([ends, draws.negatives]))
    outputs = dropout(outputs, options.dropout, generator)
    indices = _indices_among(draws.negatives, ends, len(rows)).view(2, -1)
    total = weights["alignment"] * fixed_alignment_loss(
        outputs, indices, FixedShape(draws.shares), gamma=options.gamma, **constants
    )
    if weights.get("reconstruction"):
        rate = options.reconstruction_dropout
        total = total + weights["reconstruction"] * _reconstruction(rows, sums, graph, rate, generator)
    if weights.get("cross_subgraph"):
        seed_rows = rows.index_select(0, draws.seeds.flatten()).view(len(draws.seeds), 2, -1)
        fixed = FixedShape(draws.shares, draws.kept)
        pushed = cross_negative_loss(seed_rows, draws.outside, gamma=options.cross_gamma, fixed=fixed, **constants)
        total = total + weights["cross_subgraph"] * pushed
    return total


def _indices_among(negatives: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """Where each of `nodes` (k,) is among the negatives, or -1."""
    index_of = torch.full((num_nodes,), -1, dtype=torch.int64, device=nodes.device)
    index_of[negatives] = torch.arange(len(negatives), device=nodes.device)
    return index_of.index_select(0, nodes)


def _reconstruction(rows: Tensor, sums: Tensor, graph: PairGraph, rate: float, generator: torch.Generator) -> Tensor:
    """`losses.reconstruction_loss` from the sums over neighbours."""
    means = dropout(sums / graph.degrees.clamp_min(1.0).unsqueeze(1), rate, generator)
    has_neighbors = graph.degrees.clamp_max(1.0).unsqueeze(1)
    return ((dropout(rows, rate, generator) - means) * has_neighbors).square().sum() / graph.num_nodes[0]
