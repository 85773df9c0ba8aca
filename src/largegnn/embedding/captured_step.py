"""Take all steps of a subgraph on a GPU in one go, each step one launch of a captured CUDA graph.

In: a subgraph, the batches of its seeds, the learning rate of each step. Out: the losses; the model is changed.
The idea: the rows of one subgraph and their state travel to the device once per visit and back, wherever the tables
are. A step is some two hundred kernels and takes longer to launch than to compute; captured once over arrays of a fixed
size, it is launched as one. Nothing in it may depend on how many seeds, nodes or outside entities there are: padding
counts nothing. Everything random is drawn before, for all steps of a visit, and a counter on the device tells the steps
apart. Arrays grow, and the step is captured again, when a subgraph does not fit. Without a GPU the same step runs
without being captured, which the tests use. Only Dual-AMN and three losses of the paper are written this way.
Cost: a few milliseconds for a visit, besides its steps. Memory: the arrays of a subgraph and of one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.entity_table import ALPHA, EPS
from largegnn.embedding.fused import hide, rmsprop_
from largegnn.embedding.fused_encoder import hidden_layers, outputs_of
from largegnn.embedding.losses import FixedShape, HardNegatives, cross_negative_loss, fixed_alignment_loss
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import Capacity, PairGraph

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["CapturedVisits", "Draws", "Visit", "can_be_captured", "fixed_loss"]

_LOSSES = {"alignment", "reconstruction", "cross_subgraph"}


def can_be_captured(encoder: object, options: TrainSettings) -> bool:
    """Whether a step with this encoder and these losses can be written over arrays of a fixed size."""
    used = {name for name, weight in options.losses.items() if weight}
    return type(encoder) is DualAMN and used <= _LOSSES and "alignment" in used and options.negatives > 0


@dataclass(frozen=True, eq=False)
class Visit:
    """A subgraph to be trained on: its graph, entities (k,), batches of seeds, and a learning rate for each batch."""

    graph: PairGraph
    entities: Tensor
    batches: Sequence[Tensor]
    learning_rates: Sequence[float]


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


@dataclass(eq=False)
class _Buffers:
    """Arrays of a fixed size: the subgraph with rows and state, and what every step of a visit draws."""

    graph: PairGraph
    rows: Tensor
    squares: Tensor
    draws: Draws  # each with one dimension more in front: the step
    learning_rates: Tensor
    losses: Tensor
    at: Tensor

    @property
    def num_steps(self) -> int:
        return len(self.losses)


class CapturedVisits:
    """Takes all steps of a subgraph on a model."""

    def __init__(self, model: EmbeddingModel, options: TrainSettings) -> None:
        assert isinstance(model.encoder, DualAMN)
        self._model, self._options, self._encoder = model, options, model.encoder
        self._generator = torch.Generator(model.device)
        self._buffers: _Buffers | None = None
        self._captured: torch.cuda.CUDAGraph | None = None
        self._is_captured = model.device.type == "cuda"

    def visit(self, visit: Visit, seed: int) -> Tensor:
        """Take the steps of a visit; the loss of each, (steps,), on the device. All draws follow from the seed."""
        self._generator.manual_seed(seed)
        buffers = self._load(visit)
        if self._is_captured and self._captured is None:
            self._capture(buffers)
        for _ in visit.batches:
            if self._captured is None:
                self._step(buffers)
            else:
                self._captured.replay()
        num_nodes = len(visit.entities)
        self._model.entities.put(visit.entities, buffers.rows[:num_nodes], buffers.squares[:num_nodes])
        return buffers.losses[: len(visit.batches)].clone()

    def _load(self, visit: Visit) -> _Buffers:
        """Copy rows, graph and draws of a visit into the arrays."""
        buffers = self._fitting(visit.graph.capacity, len(visit.batches))
        num_nodes, num_steps = len(visit.entities), len(visit.batches)
        buffers.graph.put(visit.graph)
        rows, squares = self._model.entities.take(visit.entities)
        for array, values in ((buffers.rows, rows), (buffers.squares, squares)):
            array[:num_nodes].copy_(values)
            array[num_nodes:].zero_()
        draws = buffers.draws
        draws.seeds.zero_()
        draws.shares.zero_()
        for step, seeds in enumerate(visit.batches):
            draws.seeds[step, : len(seeds)] = seeds
            draws.shares[step, : len(seeds)] = 1.0 / len(seeds)
        self._draw_negatives(draws.negatives[:num_steps], num_nodes)
        self._draw_outside(draws, visit.entities, num_steps)
        rates = torch.tensor(visit.learning_rates, dtype=torch.float32)
        buffers.learning_rates[:num_steps].copy_(rates)
        buffers.at.zero_()
        return buffers

    def _draw_negatives(self, negatives: Tensor, num_nodes: int) -> None:
        """Distinct nodes for each step, (steps, m)."""
        keys = torch.rand(len(negatives), num_nodes, generator=self._generator, device=negatives.device)
        negatives.copy_(keys.argsort(dim=1)[:, : negatives.shape[1]])

    def _draw_outside(self, draws: Draws, entities: Tensor, num_steps: int) -> None:
        """Rows of entities drawn from all, and which of them are not in the subgraph."""
        table = self._model.entities
        shape = (num_steps, draws.kept.shape[1])
        drawn = torch.randint(len(table.values), shape, generator=self._generator, device=entities.device)
        index = torch.searchsorted(entities, drawn).clamp_(max=len(entities) - 1)
        draws.noise[:num_steps].random_(0, 2**31 - 2, generator=self._generator)
        draws.kept[:num_steps].copy_(entities[index] != drawn)
        draws.outside[:num_steps].copy_(table.rows_of(drawn.flatten()).view(*shape, -1))

    def _step(self, buffers: _Buffers) -> None:
        """One step over the arrays; everything it reads and writes keeps its address."""
        model, options, at = self._model, self._options, buffers.at
        rows = buffers.rows.detach().requires_grad_()
        draws = buffers.draws
        of_step = [
            each.index_select(0, at)[0]
            for each in (draws.seeds, draws.shares, draws.negatives, draws.outside, draws.kept, draws.noise)
        ]
        loss = fixed_loss(self._encoder, rows, model.relations, buffers.graph, Draws(*of_step), options)
        gradients = torch.autograd.grad(loss, [rows, *model.dense])
        with torch.no_grad():
            rate = buffers.learning_rates.index_select(0, at)
            rmsprop_(buffers.rows, buffers.squares, gradients[0], rate, ALPHA, EPS)
            _update_all(list(model.dense), model.dense_squares(), list(gradients[1:]), rate[0])
            buffers.losses.index_copy_(0, at, loss.detach().reshape(1))
            at += 1

    def _capture(self, buffers: _Buffers) -> None:
        """Record a step; what the recording and the steps before it change is restored."""
        changing = [buffers.rows, buffers.squares, *self._model.dense, *self._model.dense_squares(), buffers.at]
        before = [tensor.detach().clone() for tensor in changing]
        stream, current = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        # Kernels are compiled and libraries make their handles in the first steps, which must not be recorded.
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step(buffers)
                buffers.at.zero_()
        current.wait_stream(stream)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            self._step(buffers)
        with torch.no_grad():
            for tensor, values in zip(changing, before, strict=True):
                tensor.copy_(values)
        self._captured = captured

    def _fitting(self, capacity: Capacity, num_steps: int) -> _Buffers:
        """The arrays, allocated anew if they are too small."""
        found = self._buffers
        if found is not None and found.graph.capacity.holds(capacity) and found.num_steps >= num_steps:
            return found
        if found is not None:
            capacity, num_steps = capacity.union(found.graph.capacity), max(num_steps, found.num_steps)
        # The old arrays are released first.
        self._captured = self._buffers = found = None
        self._buffers = self._allocate(capacity.rounded_up(), num_steps)
        return self._buffers

    def _allocate(self, capacity: Capacity, num_steps: int) -> _Buffers:
        options, device = self._options, self._model.device
        batch, outside = options.batch_size, options.cross_negatives

        def whole(*shape: int) -> Tensor:
            return torch.zeros(num_steps, *shape, dtype=torch.int64, device=device)

        def real(*shape: int) -> Tensor:
            return torch.zeros(num_steps, *shape, device=device)

        rows = torch.zeros(capacity.nodes, options.dim, device=device)
        draws = Draws(
            whole(batch, 2), real(batch), whole(options.negatives), real(outside, options.dim), real(outside), whole(1)
        )
        graph = PairGraph.empty(capacity, device)
        at = torch.zeros(1, dtype=torch.int64, device=device)
        return _Buffers(graph, rows, torch.zeros_like(rows), draws, real(), real(), at)


def _update_all(values: list[Tensor], squares: list[Tensor], gradients: list[Tensor], rate: Tensor) -> None:
    """One step of RMSprop on all dense parameters, in as few launches as one takes."""
    torch._foreach_mul_(squares, ALPHA)
    torch._foreach_addcmul_(squares, gradients, gradients, value=1 - ALPHA)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, EPS)
    changes = torch._foreach_div(gradients, roots)
    torch._foreach_mul_(changes, rate)
    torch._foreach_sub_(values, changes)


def fixed_loss(
    encoder: DualAMN, rows: Tensor, relation_rows: Tensor, graph: PairGraph, draws: Draws, options: TrainSettings
) -> Tensor:
    """The weighted sum of the losses of `rows` (n, d), of which the last may be padding.

    A node that is drawn twice is encoded once and mixed twice, so that its two outputs drop other numbers.
    """
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
