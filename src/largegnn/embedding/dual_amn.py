"""Dual-AMN: reflections at relation vectors, attention by relation, proxies (section 5 of the paper, after Mao et al.).

In: the input rows of a graph's nodes, the table of relation rows, a `GraphStructure`. Out: 6 d numbers for each node.

The idea. Two blocks with weights of their own, one fed with the mean of a node's and its neighbours' rows, one with the
mean of the relation rows at the node. In a block two layers pass on what neighbours hold, reflected at the unit vector
of their relation set; all layers side by side are compared with 64 proxies, which give a node a view of the whole
graph, and a gate mixes the two. All the work that depends on edges is in `propagation`.
Cost: O((pairs + slots) d) for the layers, and O(nodes d^2) for the gate, of only those nodes whose output is asked for.

# Paper: two layers, one head, 64 proxies, output of both blocks side by side; d = 128 gives 768 numbers.
# Departs: relations are those of the pair (the authors' code shifts them against the pairs); no self-loops among the
#     pairs; the relation rows at a node are numbered as in its pairs (the authors' code swaps the directions there).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from largegnn.artifacts import FloatArray
from largegnn.embedding import layerwise
from largegnn.embedding.layer_pieces import LayerPieces
from largegnn.embedding.mixing import mix_with_proxies
from largegnn.embedding.propagation import gather_mean, reflected_sum
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = ["DualAMN"]

_NUM_LAYERS = 2


class DualAMN(nn.Module):
    """The encoder; entity and relation rows are its inputs, not its parameters.

    An output depends on what is at most `reach` triples away.
    """

    reach = _NUM_LAYERS + 1

    def __init__(self, dim: int, num_proxies: int = 64) -> None:
        super().__init__()
        self.dim = dim
        self.output_dim = 2 * (_NUM_LAYERS + 1) * dim
        self.entity_block = _Block(dim, num_proxies)
        self.relation_block = _Block(dim, num_proxies)

    def forward(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, 6 d) from rows (n, d) and (2R, d); with `nodes` (k,) only theirs, (k, 6 d)."""
        relations = set_vectors(relation_rows, structure)
        by_entity = torch.tanh(neighborhood_mean(entity_rows, structure))
        by_relation = torch.tanh(relation_mean(relation_rows, structure))
        outputs = [
            self.entity_block(by_entity, relations, structure, nodes),
            self.relation_block(by_relation, relations, structure, nodes),
        ]
        return torch.cat(outputs, dim=1)

    def encode_in_chunks(
        self,
        entity_rows: Tensor,
        relation_rows: Tensor,
        structure: GraphStructure,
        outputs: npt.NDArray[np.float32],
        chunk_bytes: int,
    ) -> None:
        """Write what `forward` returns into `outputs` (n, 6 d), layer by layer, a chunk of nodes at a time."""
        device = relation_rows.device
        relations = set_vectors(relation_rows, structure.to(device))
        width = self.output_dim // 2
        blocks = ((self.entity_block, outputs[:, :width]), (self.relation_block, outputs[:, width:]))
        first = [hidden[:, : self.dim] for _, hidden in blocks]
        with progress("encode", 2 + len(blocks) * (_NUM_LAYERS + 1), "layers") as work:
            layerwise.write_neighborhood_means(entity_rows, structure, device, first[0], chunk_bytes, _tanh)
            work.advance()
            layerwise.write_relation_means(relation_rows, structure, first[1], chunk_bytes, _tanh)
            work.advance()
            for block, hidden in blocks:
                for layer, vector in enumerate(block.attention):
                    before, after = (hidden[:, self.dim * at : self.dim * (at + 1)] for at in (layer, layer + 1))
                    logits = relations @ vector
                    layerwise.write_reflected_sums(before, relations, logits, structure, after, chunk_bytes, _tanh)
                    work.advance()
                layerwise.transform_rows(hidden, block.mix, device, chunk_bytes)
                work.advance()

    def encode_in_pieces(
        self, entity_rows: FloatArray, relation_rows: Tensor, pieces: LayerPieces, outputs: FloatArray
    ) -> None:
        """Write the unit vectors of what `forward` returns into `outputs` (n, 6 d), by the workers of a cluster."""
        relation_rows = relation_rows.cpu()
        relations = set_vectors(relation_rows, pieces.structure)
        first = (
            pieces.neighborhood_means(entity_rows, "entity-0", _tanh),
            pieces.relation_means(relation_rows, "relation-0", _tanh),
        )
        layers = []
        for rows, block, name in zip(
            first, (self.entity_block, self.relation_block), ("entity", "relation"), strict=True
        ):
            layers.append(rows)
            for number, vector in enumerate(block.attention.detach().cpu(), start=1):
                how = (relations, relations @ vector, f"{name}-{number}", _tanh)
                layers.append(pieces.reflected_sums(layers[-1], *how))
        pieces.write_outputs(layers, _Mixer(self.entity_block, self.relation_block), outputs)


def _tanh(rows: Tensor, nodes: slice) -> Tensor:
    return torch.tanh(rows)


class _Block(nn.Module):
    """One stream: layers of reflected attention, then proxies and gate."""

    def __init__(self, dim: int, num_proxies: int) -> None:
        super().__init__()
        width = (_NUM_LAYERS + 1) * dim
        self.attention = nn.Parameter(torch.empty(_NUM_LAYERS, dim))
        self.proxies = nn.Parameter(torch.empty(num_proxies, width))
        self.gate = nn.Linear(width, width)
        for vector in self.attention:
            nn.init.xavier_uniform_(vector.detach().unsqueeze(1))
        nn.init.xavier_uniform_(self.proxies)
        nn.init.xavier_uniform_(self.gate.weight)
        nn.init.zeros_(self.gate.bias)

    def forward(self, hidden: Tensor, relations: Tensor, structure: GraphStructure, nodes: Tensor | None) -> Tensor:
        """Output (n, 3 d) of the block from its first hidden rows (n, d) and the sets' unit vectors (S, d)."""
        layers = [hidden]
        for vector in self.attention:
            layers.append(torch.tanh(reflected_sum(layers[-1], relations, relations @ vector, structure)))
        if nodes is not None:
            layers = [layer.index_select(0, nodes) for layer in layers]
        return self.mix(torch.cat(layers, dim=1))

    def mix(self, own: Tensor) -> Tensor:
        """Compare rows (k, 3 d) with the proxies and mix them by the gate."""
        return mix_with_proxies(own, self.proxies, self.gate.weight, self.gate.bias)


class _Mixer(nn.Module):
    """Proxies and gates of both blocks, for nodes whose rows in all layers are there."""

    def __init__(self, entity_block: _Block, relation_block: _Block) -> None:
        super().__init__()
        self.entity_block, self.relation_block = entity_block, relation_block

    def forward(self, layers: Sequence[Tensor]) -> Tensor:
        """Outputs (k, 6 d) from the layers (k, d) of one block, then of the other."""
        half = _NUM_LAYERS + 1
        halves = (self.entity_block, layers[:half]), (self.relation_block, layers[half:])
        return torch.cat([block.mix(torch.cat(list(own), dim=1)) for block, own in halves], dim=1)


def set_vectors(relation_rows: Tensor, structure: GraphStructure) -> Tensor:
    """The unit vector of each relation set, (S, d): its mean row, normalised."""
    means = gather_mean(relation_rows, structure.member_ptr, structure.members, structure.holder_ptr, structure.holders)
    return functional.normalize(means, dim=1)


def neighborhood_mean(entity_rows: Tensor, structure: GraphStructure) -> Tensor:
    """Mean of the rows of each node and its neighbours, (n, d)."""
    pattern = (structure.pair_ptr, structure.neighbors)
    return gather_mean(entity_rows, *pattern, *pattern, with_self=True)


def relation_mean(relation_rows: Tensor, structure: GraphStructure) -> Tensor:
    """Mean of the distinct relation rows at each node, (n, d)."""
    return gather_mean(
        relation_rows, structure.incidence_ptr, structure.incidences, structure.touched_ptr, structure.touched
    )
