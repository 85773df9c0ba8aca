"""A plain graph convolution, to compare with: two layers, relations ignored (after GCN-Align, Wang et al. 2018).

In and out as with `dual_amn`, but d numbers for each node. The weights are shared by both graphs.
The idea: out = A relu(A x W1) W2 with A = D^-1/2 (adjacency + I) D^-1/2, D the degrees with the self-loop. With
s = D^-1/2, A x is the mean over each node and its neighbours of s * x, divided by s, so it is one `gather_mean`.
Cost: O(pairs d + nodes d^2).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from largegnn.embedding import layerwise
from largegnn.embedding.propagation import gather_mean
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = ["GCN"]


class GCN(nn.Module):
    """The encoder; entity rows are its input, not its parameters.

    An output depends on what is at most `reach` triples away: the degrees of the farthest count, too.
    """

    reach = 3

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
        """Outputs (n, d) from rows (n, d); with `nodes` (k,) only theirs, (k, d). `relation_rows` are not used."""
        scale = _scale(structure).to(entity_rows.dtype)
        pattern = (structure.pair_ptr, structure.neighbors)
        hidden = gather_mean(entity_rows * scale, *pattern, *pattern, with_self=True) / scale
        hidden = torch.relu(self.first(hidden))
        hidden = gather_mean(hidden * scale, *pattern, *pattern, with_self=True) / scale
        return self.second(hidden if nodes is None else hidden.index_select(0, nodes))  # type: ignore[no-any-return]

    def encode_in_chunks(
        self,
        entity_rows: Tensor,
        relation_rows: Tensor,
        structure: GraphStructure,
        outputs: npt.NDArray[np.float32],
        chunk_bytes: int,
    ) -> None:
        """Write what `forward` returns into `outputs` (n, d), layer by layer, a chunk of nodes at a time."""
        device = relation_rows.device
        scale = _scale(structure)

        def first_layer(rows: Tensor, nodes: slice) -> Tensor:
            near = scale[nodes].to(device)
            return torch.relu(self.first(rows / near)) * near

        def second_layer(rows: Tensor, nodes: slice) -> Tensor:
            return self.second(rows / scale[nodes].to(device))  # type: ignore[no-any-return]

        scaled = (entity_rows.cpu() * scale).numpy()
        hidden = np.empty_like(scaled)
        with progress("encode", 2, "layers") as work:
            layerwise.write_neighborhood_means(scaled, structure, device, hidden, chunk_bytes, first_layer)
            work.advance()
            layerwise.write_neighborhood_means(hidden, structure, device, outputs, chunk_bytes, second_layer)
            work.advance()


def _scale(structure: GraphStructure) -> Tensor:
    """D^-1/2 of each node, (n, 1)."""
    return (structure.pair_ptr.diff() + 1.0).rsqrt().unsqueeze(1)
