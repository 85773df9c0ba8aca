"""Compute a plain graph convolution as a baseline: two layers, no relations (after GCN-Align, Wang et al. 2018).

In: as for `dual_amn`. Out: d numbers for each node. Both graphs share the weights.
The idea: out = A relu(A x W1) W2 with A = D^-1/2 (adjacency + I) D^-1/2, D the degrees with the self-loop. With
s = D^-1/2, A x is the mean of s * x over a node and its neighbours, divided by s: one `gather_mean`.
Cost: O(pairs d + nodes d^2).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from largegnn.artifacts import FloatArray
from largegnn.embedding.layerwise import Layers, Rows, as_tensor
from largegnn.embedding.message_passing import gather_mean
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = ["GCN"]


class GCN(nn.Module):
    """The GCN encoder; entity rows are its input, not its parameters."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.output_dim = dim
        self.first = nn.Linear(dim, dim, bias=False)
        self.second = nn.Linear(dim, dim, bias=False)
        nn.init.xavier_uniform_(self.first.weight)
        nn.init.xavier_uniform_(self.second.weight)

    def forward(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, d) from rows (n, d); with `nodes` (k,) only the outputs (k, d) of these nodes.

        `relation_rows` are not used.
        """
        scale = _scale(structure).to(entity_rows.dtype)
        pattern = (structure.pair_ptr, structure.neighbors)
        hidden = gather_mean(entity_rows * scale, *pattern, *pattern, with_self=True) / scale
        hidden = torch.relu(self.first(hidden))
        hidden = gather_mean(hidden * scale, *pattern, *pattern, with_self=True) / scale
        return self.second(hidden if nodes is None else hidden.index_select(0, nodes))  # type: ignore[no-any-return]

    def encode_by_layers(self, entity_rows: Rows, relation_rows: Tensor, layers: Layers, outputs: FloatArray) -> None:
        """Write the result of `forward` into `outputs` (n, d)."""
        scaled = (as_tensor(entity_rows).cpu() * _scale(layers.structure)).numpy()
        hidden = np.empty_like(scaled)
        with progress("encode", 2, "layers") as work:
            layers.neighborhood_means(scaled, hidden, self._finish_first)
            work.advance()
            layers.neighborhood_means(hidden, outputs, self._finish_second)
            work.advance()

    def _finish_first(self, means: Tensor, degrees: Tensor) -> Tensor:
        scale = _scale_of(degrees)
        return torch.relu(self.first(means / scale)) * scale

    def _finish_second(self, means: Tensor, degrees: Tensor) -> Tensor:
        return self.second(means / _scale_of(degrees))  # type: ignore[no-any-return]


def _scale(structure: GraphStructure) -> Tensor:
    """D^-1/2 of each node, (n, 1)."""
    return _scale_of(structure.pair_ptr.diff())


def _scale_of(degrees: Tensor) -> Tensor:
    """D^-1/2 (k, 1) from degrees (k,) without the self-loop."""
    return (degrees + 1.0).rsqrt().unsqueeze(1)
