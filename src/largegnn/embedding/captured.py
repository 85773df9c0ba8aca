"""Visits: all steps of one subgraph in one go, its rows on the device, each step one launch of a captured CUDA graph.

In: a subgraph, the batches of its seeds, the learning rate of each step. Out: the losses; the model is changed.
The idea. An epoch passes the subgraphs one by one, so the rows of one and the optimiser's state of these travel to the
device once per visit and back, wherever the tables are: the device never holds more than a subgraph. A step is some two
hundred kernels and takes longer to launch than to compute; captured once over arrays of a fixed size, it is launched as
one. What is drawn at random is drawn for all steps of a visit before it, from the visit's own generator; a counter on
the device tells the steps apart. Arrays grow, and the step is captured again, when a subgraph does not fit.
Where there is no GPU the same step runs without being captured, which the tests use.
Cost: a few milliseconds for a visit, besides its steps. Memory: the arrays of a subgraph and what a step makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.fixed_step import Draws, fixed_loss
from largegnn.embedding.fused_rows import rmsprop_
from largegnn.embedding.model import ALPHA, EPS, EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.pair_graph import Capacity, PairGraph

__all__ = ["CapturedVisits", "Visit"]


@dataclass(frozen=True, eq=False)
class Visit:
    """A subgraph to be trained on: its graph, entities (k,), batches of seeds, and a learning rate for each batch."""

    graph: PairGraph
    entities: Tensor
    batches: Sequence[Tensor]
    learning_rates: Sequence[float]


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
    """Makes visits on a model."""

    def __init__(self, model: EmbeddingModel, options: TrainOptions) -> None:
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
        """Bring rows, graph and draws of a visit into the arrays."""
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
        """One step over the arrays; everything it reads and writes stays where it is."""
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
        """Record a step; what the recording and the steps before it change is put back."""
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
        """The arrays, made anew if they are too small."""
        found = self._buffers
        if found is not None and found.graph.capacity.holds(capacity) and found.num_steps >= num_steps:
            return found
        if found is not None:
            capacity, num_steps = capacity.union(found.graph.capacity), max(num_steps, found.num_steps)
        # What stood there makes room first.
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
