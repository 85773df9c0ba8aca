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
from largegnn.embedding.fused_encoder import hidden_layers, outputs_of
from largegnn.embedding.fused_rows import hide
from largegnn.embedding.losses import FixedShape, HardNegatives, cross_negative_loss, fixed_alignment_loss
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.pair_graph import PairGraph

__all__ = ["Draws", "can_be_fixed", "fixed_loss"]

_LOSSES = {"alignment", "reconstruction", "cross_subgraph"}


@dataclass(frozen=True, eq=False)
class Draws:
    """What a step draws at random.

    - `seeds` (b, 2) with their `shares` (b,), distinct `negatives` (m,): local ids
    - `outside` (c, d): input rows of entities, which are not in the subgraph where `kept` (c,) is 1
    - `noise` (1,) int64: from it follows what dropout hides
    """

    seeds: Tensor
    shares: Tensor
    negatives: Tensor
    outside: Tensor
    kept: Tensor
    noise: Tensor


def can_be_fixed(encoder: object, options: TrainOptions) -> bool:
    """Whether a step with this encoder and these losses can be written over arrays of a fixed size."""
    used = {name for name, weight in options.losses.items() if weight}
    return type(encoder) is DualAMN and used <= _LOSSES and "alignment" in used and options.negatives > 0


def fixed_loss(
    encoder: DualAMN, rows: Tensor, relation_rows: Tensor, graph: PairGraph, draws: Draws, options: TrainOptions
) -> Tensor:
    """The weighted sum of the losses of `rows` (n, d), of which the last may be padding."""
    weights = options.losses
    layers, rebuilt = hidden_layers(encoder, rows, relation_rows, graph, options.reconstruction_dropout, draws.noise)
    ends = draws.seeds.t().flatten()
    outputs = outputs_of(encoder, layers, graph, torch.cat([ends, draws.negatives]))
    outputs = hide(outputs, options.dropout, draws.noise)
    indices = _indices_among(draws.negatives, ends, len(rows)).view(2, -1)
    total = weights["alignment"] * fixed_alignment_loss(
        outputs, indices, FixedShape(draws.shares), HardNegatives.of(options, options.gamma)
    )
    if weights.get("reconstruction"):
        total = total + weights["reconstruction"] * rebuilt
    if weights.get("cross_subgraph"):
        seed_rows = rows.index_select(0, draws.seeds.flatten()).view(len(draws.seeds), 2, -1)
        fixed = FixedShape(draws.shares, draws.kept)
        pushed = cross_negative_loss(seed_rows, draws.outside, HardNegatives.of(options, options.cross_gamma), fixed)
        total = total + weights["cross_subgraph"] * pushed
    return total


def _indices_among(negatives: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """Where each of `nodes` (k,) is among the negatives, or -1."""
    index_of = torch.full((num_nodes,), -1, dtype=torch.int64, device=nodes.device)
    index_of[negatives] = torch.arange(len(negatives), device=nodes.device)
    return index_of.index_select(0, nodes)
