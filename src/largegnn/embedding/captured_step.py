"""Train on one subgraph with a captured CUDA graph: one launch per step instead of some two hundred.

In: a subgraph, the batches of its seeds, the learning rate of each step. Out: the losses; the model is changed.
The idea: the rows of a subgraph and their optimiser state are copied to the device once per visit and written back
after the last step. A step launches about 200 kernels, which takes longer than computing them, so it is captured once
over buffers of a fixed size and replayed; padding has weight 0. Random draws are made beforehand for all steps of a
visit, and `step_index` on the device selects the draws of the current step. If a subgraph does not fit, the buffers
grow and the step is captured again. On a CPU the same step runs without capture, which the tests use.
Only Dual-AMN and three losses of the paper are supported.
Cost: a few milliseconds per visit besides its steps. Memory: the buffers of one subgraph, and of the draws of a visit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.entity_table import ALPHA, EPS
from largegnn.embedding.fused import hide, rmsprop_
from largegnn.embedding.fused_encoder import hidden_layers, outputs_of
from largegnn.embedding.losses import FixedShape, HardNegatives, cross_negative_loss, fixed_shape_alignment_loss
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import Capacity, PairGraph

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["CapturedVisits", "Draws", "Visit", "can_be_captured", "fixed_shape_loss"]

_LOSSES = {"alignment", "reconstruction", "cross_subgraph"}


def can_be_captured(encoder: object, options: TrainSettings) -> bool:
    """Whether steps with this encoder and these losses can be captured: both have a version of a fixed shape."""
    used = {name for name, weight in options.losses.items() if weight}
    return type(encoder) is DualAMN and used <= _LOSSES and "alignment" in used and options.negatives > 0


@dataclass(frozen=True, eq=False)
class Visit:
    """A subgraph to train on: its graph, entities (k,) ascending, batches of seeds, a learning rate for each batch."""

    graph: PairGraph
    entities: Tensor
    batches: Sequence[Tensor]
    learning_rates: Sequence[float]


@dataclass(frozen=True, eq=False)
class Draws:
    """The random draws of one step, or of all steps of a visit with the step as the first dimension.

    - `seeds` (b, 2) with their weights `shares` (b,), distinct `negatives` (m,): local ids
    - `outside` (c, d): input rows of sampled entities; `is_outside` (c,) is 1 where the entity is not in the subgraph
    - `noise` (1,) int64: the seed of dropout
    """

    seeds: Tensor
    shares: Tensor
    negatives: Tensor
    outside: Tensor
    is_outside: Tensor
    noise: Tensor

    def at(self, step_index: Tensor) -> Draws:
        """The draws of one step; `step_index` (1,) is on the device."""
        return Draws(*(getattr(self, field.name).index_select(0, step_index)[0] for field in fields(self)))


@dataclass(eq=False)
class _Buffers:
    """Arrays of a fixed size: the subgraph with rows and optimiser state, and the draws of all steps of a visit."""

    graph: PairGraph
    rows: Tensor
    squares: Tensor
    draws: Draws  # with the step as the first dimension
    learning_rates: Tensor
    losses: Tensor
    step_index: Tensor

    @property
    def num_steps(self) -> int:
        return len(self.losses)


class CapturedVisits:
    """Trains a model on one subgraph at a time, with a captured step on a GPU."""

    def __init__(self, model: EmbeddingModel, options: TrainSettings) -> None:
        assert isinstance(model.encoder, DualAMN)
        self._model, self._options, self._encoder = model, options, model.encoder
        self._generator = torch.Generator(model.device)
        self._buffers: _Buffers | None = None
        self._cuda_graph: torch.cuda.CUDAGraph | None = None
        self._use_cuda_graph = model.device.type == "cuda"

    def visit(self, visit: Visit, seed: int) -> Tensor:
        """Take all steps of a visit; returns their losses (steps,), on the device. All draws follow from the seed."""
        self._generator.manual_seed(seed)
        buffers = self._load(visit)
        if self._use_cuda_graph and self._cuda_graph is None:
            self._capture(buffers)
        for _ in visit.batches:
            if self._cuda_graph is None:
                self._step(buffers)
            else:
                self._cuda_graph.replay()
        num_nodes = len(visit.entities)
        self._model.entities.write(visit.entities, buffers.rows[:num_nodes], buffers.squares[:num_nodes])
        return buffers.losses[: len(visit.batches)].clone()

    def _load(self, visit: Visit) -> _Buffers:
        """Copy rows, graph and draws of a visit into the buffers."""
        buffers = self._buffers_for(visit.graph.capacity, len(visit.batches))
        num_nodes, num_steps = len(visit.entities), len(visit.batches)
        buffers.graph.put(visit.graph)
        rows, squares = self._model.entities.rows_and_state(visit.entities)
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
        buffers.learning_rates[:num_steps].copy_(torch.tensor(visit.learning_rates, dtype=torch.float32))
        buffers.step_index.zero_()
        return buffers

    def _draw_negatives(self, negatives: Tensor, num_nodes: int) -> None:
        """Draw distinct nodes for each step into `negatives` (steps, m)."""
        keys = torch.rand(len(negatives), num_nodes, generator=self._generator, device=negatives.device)
        negatives.copy_(keys.argsort(dim=1)[:, : negatives.shape[1]])

    def _draw_outside(self, draws: Draws, entities: Tensor, num_steps: int) -> None:
        """Sample entities of both graphs, copy their rows, and mark the entities that are not in the subgraph."""
        table = self._model.entities
        shape = (num_steps, draws.is_outside.shape[1])
        drawn = torch.randint(len(table.values), shape, generator=self._generator, device=entities.device)
        index = torch.searchsorted(entities, drawn).clamp_(max=len(entities) - 1)
        draws.noise[:num_steps].random_(0, 2**31 - 2, generator=self._generator)
        draws.is_outside[:num_steps].copy_(entities[index] != drawn)
        draws.outside[:num_steps].copy_(table.rows(drawn.flatten()).view(*shape, -1))

    def _step(self, buffers: _Buffers) -> None:
        """Take one step over the buffers; all it reads and writes keeps its address, as a captured graph requires."""
        model, options, step_index = self._model, self._options, buffers.step_index
        rows = buffers.rows.detach().requires_grad_()
        step_draws = buffers.draws.at(step_index)
        loss = fixed_shape_loss(self._encoder, rows, model.relations, buffers.graph, step_draws, options)
        gradients = torch.autograd.grad(loss, [rows, *model.dense])
        with torch.no_grad():
            rate = buffers.learning_rates.index_select(0, step_index)
            rmsprop_(buffers.rows, buffers.squares, gradients[0], rate, ALPHA, EPS)
            _update_all(list(model.dense), model.dense_squares(), list(gradients[1:]), rate[0])
            buffers.losses.index_copy_(0, step_index, loss.detach().reshape(1))
            step_index += 1

    def _capture(self, buffers: _Buffers) -> None:
        """Capture a step as a CUDA graph, then restore everything that the warm-up steps changed."""
        state = [buffers.rows, buffers.squares, *self._model.dense, *self._model.dense_squares(), buffers.step_index]
        saved_state = [tensor.detach().clone() for tensor in state]
        stream, current = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(current)
        # The first steps compile kernels and create library handles, which must not be captured.
        with torch.cuda.stream(stream):
            for _ in range(2):
                self._step(buffers)
                buffers.step_index.zero_()
        current.wait_stream(stream)
        cuda_graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(cuda_graph):
            self._step(buffers)
        with torch.no_grad():
            for tensor, values in zip(state, saved_state, strict=True):
                tensor.copy_(values)
        self._cuda_graph = cuda_graph

    def _buffers_for(self, capacity: Capacity, num_steps: int) -> _Buffers:
        """Buffers for this capacity and number of steps: the present buffers, or larger ones if they are too small."""
        buffers = self._buffers
        if buffers is not None and buffers.graph.capacity.holds(capacity) and buffers.num_steps >= num_steps:
            return buffers
        if buffers is not None:
            capacity = capacity.union(buffers.graph.capacity)
            num_steps = max(num_steps, buffers.num_steps)
        # The old buffers are released before larger ones are allocated.
        self._cuda_graph = self._buffers = buffers = None
        self._buffers = self._allocate(capacity.rounded_up(), num_steps)
        return self._buffers

    def _allocate(self, capacity: Capacity, num_steps: int) -> _Buffers:
        """Buffers of zeros for graphs up to `capacity` and visits of up to `num_steps` steps."""
        options, device = self._options, self._model.device
        batch, outside = options.batch_size, options.cross_negatives

        def int_zeros(*shape: int) -> Tensor:
            return torch.zeros(num_steps, *shape, dtype=torch.int64, device=device)

        def float_zeros(*shape: int) -> Tensor:
            return torch.zeros(num_steps, *shape, device=device)

        rows = torch.zeros(capacity.nodes, options.dim, device=device)
        draws = Draws(
            seeds=int_zeros(batch, 2),
            shares=float_zeros(batch),
            negatives=int_zeros(options.negatives),
            outside=float_zeros(outside, options.dim),
            is_outside=float_zeros(outside),
            noise=int_zeros(1),
        )
        graph = PairGraph.empty(capacity, device)
        step_index = torch.zeros(1, dtype=torch.int64, device=device)
        return _Buffers(graph, rows, torch.zeros_like(rows), draws, float_zeros(), float_zeros(), step_index)


def _update_all(values: list[Tensor], squares: list[Tensor], gradients: list[Tensor], rate: Tensor) -> None:
    """Take one step of RMSprop on all dense parameters, in as many launches as for one parameter."""
    torch._foreach_mul_(squares, ALPHA)
    torch._foreach_addcmul_(squares, gradients, gradients, value=1 - ALPHA)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, EPS)
    changes = torch._foreach_div(gradients, roots)
    torch._foreach_mul_(changes, rate)
    torch._foreach_sub_(values, changes)


def fixed_shape_loss(
    encoder: DualAMN, rows: Tensor, relation_rows: Tensor, graph: PairGraph, draws: Draws, options: TrainSettings
) -> Tensor:
    """The weighted sum of the losses for `rows` (n, d), the last of which may be padding.

    A node that occurs twice is encoded once but has two outputs, to which dropout is applied independently.
    """
    weights = options.losses
    layers, rebuilt = hidden_layers(encoder, rows, relation_rows, graph, options.reconstruction_dropout, draws.noise)
    ends = draws.seeds.t().flatten()
    outputs = outputs_of(encoder, layers, graph, torch.cat([ends, draws.negatives]))
    outputs = hide(outputs, options.dropout, draws.noise)
    indices = _indices_among(draws.negatives, ends, len(rows)).view(2, -1)
    total = weights["alignment"] * fixed_shape_alignment_loss(
        outputs, indices, FixedShape(draws.shares), HardNegatives.of(options, options.gamma)
    )
    if weights.get("reconstruction"):
        total = total + weights["reconstruction"] * rebuilt
    if weights.get("cross_subgraph"):
        seed_rows = rows.index_select(0, draws.seeds.flatten()).view(len(draws.seeds), 2, -1)
        fixed = FixedShape(draws.shares, draws.is_outside)
        pushed = cross_negative_loss(seed_rows, draws.outside, HardNegatives.of(options, options.cross_gamma), fixed)
        total = total + weights["cross_subgraph"] * pushed
    return total


def _indices_among(negatives: Tensor, nodes: Tensor, num_nodes: int) -> Tensor:
    """The index among the negatives of each node in `nodes` (k,), or -1."""
    index_of = torch.full((num_nodes,), -1, dtype=torch.int64, device=nodes.device)
    index_of[negatives] = torch.arange(len(negatives), device=nodes.device)
    return index_of.index_select(0, nodes)
