"""Compute the Dual-AMN encoder: reflections at relation vectors, attention, proxies (section 5, after Mao et al.).

In: the input rows of a graph's nodes, the table of relation rows, a `GraphStructure`. Out: 6 d numbers for each node.
The idea: two blocks with separate weights. The input of the first is the mean of a node's and its neighbours' rows, the
input of the second is the mean of the relation rows at the node. In a block, two layers sum the neighbours' rows with
attention, reflected at the unit vector of the pair's relation set. All layers side by side are compared with 64
proxies, which give a node information about the whole graph, and a gate mixes proxies and layers. All computation that
depends on edges is in `message_passing`.
Cost: O((pairs + slots) d) for the layers, and O(d^2) for the gate of each node whose output is needed.

# Paper: two layers, one head, 64 proxies, output of both blocks side by side; d = 128 gives 768 numbers.
# Departs: relations are those of the pair (the authors' code shifts them against the pairs); no self-loops among the
#     pairs; the relation rows at a node are numbered as in its pairs (the authors' code swaps the directions there).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from largegnn.artifacts import FloatArray
from largegnn.embedding.layerwise import Layers, Rows
from largegnn.embedding.message_passing import gather_mean, reflected_sum
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = ["DualAMN"]

_NUM_LAYERS = 2
_CPU_CHUNK_ROWS = 1024  # rows that `_Mix` computes at a time, so that they stay in the cache of a CPU
_GPU_CHUNK_ROWS = 2**17
_MIN_NORM = 1e-12


class DualAMN(nn.Module):
    """The Dual-AMN encoder; entity and relation rows are its inputs, not its parameters."""

    def __init__(self, dim: int, num_proxies: int = 64) -> None:
        super().__init__()
        self.dim = dim
        self.output_dim = 2 * (_NUM_LAYERS + 1) * dim
        self.entity_block = _Block(dim, num_proxies)
        self.relation_block = _Block(dim, num_proxies)

    def forward(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, 6 d) from rows (n, d) and (2R, d); with `nodes` (k,) only the outputs (k, 6 d) of these nodes."""
        relations = set_vectors(relation_rows, structure)
        by_entity = torch.tanh(neighborhood_mean(entity_rows, structure))
        by_relation = torch.tanh(relation_mean(relation_rows, structure))
        outputs = [
            self.entity_block(by_entity, relations, structure, nodes),
            self.relation_block(by_relation, relations, structure, nodes),
        ]
        return torch.cat(outputs, dim=1)

    def encode_by_layers(self, entity_rows: Rows, relation_rows: Tensor, layers: Layers, outputs: FloatArray) -> None:
        """Write the result of `forward` into `outputs` (n, 6 d)."""
        relations = set_vectors(relation_rows, layers.structure.to(relation_rows.device))
        width = self.output_dim // 2
        by_entity, by_relation = outputs[:, :width], outputs[:, width:]
        with progress("encode", 2 + 2 * (_NUM_LAYERS + 1), "layers") as work:
            layers.neighborhood_means(entity_rows, by_entity[:, : self.dim], _tanh)
            work.advance()
            layers.relation_means(relation_rows, by_relation[:, : self.dim], _tanh)
            work.advance()
            for block, hidden in ((self.entity_block, by_entity), (self.relation_block, by_relation)):
                for layer, vector in enumerate(block.attention):
                    before = hidden[:, self.dim * layer : self.dim * (layer + 1)]
                    after = hidden[:, self.dim * (layer + 1) : self.dim * (layer + 2)]
                    layers.reflected_sums(before, relations, relations @ vector, after, _tanh)
                    work.advance()
                layers.transform(hidden, block.mix)
                work.advance()


def _tanh(rows: Tensor, num_entries: Tensor) -> Tensor:
    return torch.tanh(rows)


class _Block(nn.Module):
    """One of the two blocks: layers of attention over reflected rows, then proxies and gate."""

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
        """Output (n, 3 d) of the block from its input rows (n, d) and the sets' unit vectors (S, d)."""
        layers = [hidden]
        for vector in self.attention:
            layers.append(torch.tanh(reflected_sum(layers[-1], relations, relations @ vector, structure)))
        if nodes is not None:
            layers = [layer.index_select(0, nodes) for layer in layers]
        return self.mix(torch.cat(layers, dim=1))

    def mix(self, rows: Tensor) -> Tensor:
        """Compare rows (k, 3 d) with the proxies and mix rows and proxies by the gate."""
        return mix_with_proxies(rows, self.proxies, self.gate.weight, self.gate.bias)


def set_vectors(relation_rows: Tensor, structure: GraphStructure) -> Tensor:
    """The unit vector of each relation set, (S, d): the normalised mean of its relation rows."""
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


def mix_with_proxies(rows: Tensor, proxies: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Mix `rows` (k, w) with `proxies` (p, w); `weight` (w, w) and `bias` (w,) make the gate.

    With a = softmax(cosine of the row with each proxy), u = row - a P and g = sigmoid(u G + b), the result is
    g * row + (1 - g) * u, which is u + g * (a P). Rows are computed in chunks, so that intermediate results stay in the
    CPU's cache. The gradient is written by hand, so that besides the inputs only norms, cosines and gates are kept.
    """
    units = functional.normalize(proxies, dim=1)
    result: Tensor = _Mix.apply(rows, units, proxies, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _chunks(rows: Tensor) -> Iterator[slice]:
    step = _CPU_CHUNK_ROWS if rows.device.type == "cpu" else _GPU_CHUNK_ROWS
    return (slice(start, start + step) for start in range(0, len(rows), step))


class _Mix(torch.autograd.Function):
    """`mix_with_proxies` with its gradient; `units` are the normalised proxies."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, units: Tensor, proxies: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        norms = torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min_(_MIN_NORM)
        cosines = (rows @ units.t()).div_(norms)
        gates, result = torch.empty_like(rows), torch.empty_like(rows)
        for chunk in _chunks(rows):
            of_proxies = functional.softmax(cosines[chunk], dim=1) @ proxies
            differences = rows[chunk] - of_proxies
            gate = torch.addmm(bias, differences, weight.t(), out=gates[chunk]).sigmoid_()
            torch.addcmul(differences, gate, of_proxies, out=result[chunk])
        ctx.save_for_backward(rows, units, proxies, weight, norms, cosines, gates)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, units, proxies, weight, norms, cosines, gates = ctx.saved_tensors
        grad_rows, grad_cosines = torch.empty_like(rows), torch.empty_like(cosines)
        grad_units, grad_proxies = torch.zeros_like(units), torch.zeros_like(proxies)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(weight[0])
        for chunk in _chunks(rows):
            incoming, gate = grad[chunk], gates[chunk]
            shares = functional.softmax(cosines[chunk], dim=1)
            of_proxies = shares @ proxies
            before_gate = torch.ops.aten.sigmoid_backward(incoming * of_proxies, gate)
            grad_weight.addmm_(before_gate.t(), rows[chunk] - of_proxies)
            grad_bias += before_gate.sum(dim=0)
            grad_apart = torch.addmm(incoming, before_gate, weight, out=grad_rows[chunk])
            grad_of_proxies = torch.mul(incoming, gate).sub_(grad_apart)
            grad_proxies.addmm_(shares.t(), grad_of_proxies)
            gain = (grad_of_proxies @ proxies.t()).mul_(shares)
            torch.addcmul(gain, shares, gain.sum(dim=1, keepdim=True), value=-1.0, out=grad_cosines[chunk])
            # The gradient of a normalised row has no component along the row.
            radial = (grad_cosines[chunk] * cosines[chunk]).sum(dim=1, keepdim=True)
            scaled = grad_cosines[chunk].div_(norms[chunk])
            grad_units.addmm_(scaled.t(), rows[chunk])
            grad_apart.addmm_(scaled, units)
            grad_apart.addcmul_(radial.div_(norms[chunk].square()), rows[chunk], value=-1.0)
        return grad_rows, grad_units, grad_proxies, grad_weight, grad_bias
