"""Train on one subgraph with rows that are kept elsewhere: the work of a worker for a training on many machines.

In: a subgraph, the rows of its entities with the state of their optimiser, relations and encoder, some rows of other
entities. Out: the same rows, state and weights after all steps of the subgraph; the caller's arrays are not changed.
The idea: a subgraph is the unit of training. All its batches are taken one after another, so its rows travel once to
the worker and once back (`shards`). A visit is the loop of the trainer over one subgraph: with one worker, and all rows
in memory, the result is that of a training in one process.
Cost: that of the steps, and one copy of the rows.

# Departs: the entities outside a subgraph that the cross-subgraph loss draws come from a sample drawn for the visit.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray, SubgraphSet
from largegnn.embedding.entity_table import RowRMSprop
from largegnn.embedding.feeding import SubgraphFeed
from largegnn.embedding.losses import OtherRows
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.shards import DenseState, RowState
from largegnn.embedding.stepping import Stepper, batches_of
from largegnn.machine.precision import training_precision
from largegnn.machine.progress import Work

__all__ = ["PlannedVisit", "VisitResult", "VisitWorkers", "Visitor", "sample_others"]

_SAMPLES = 4  # of rows that one step draws: so many times more are taken for a visit


@dataclass(frozen=True)
class PlannedVisit:
    """A subgraph to be visited, the learning rate of each of its steps, and the seed of all that is drawn."""

    index: int
    learning_rates: tuple[float, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class VisitResult:
    """The result of a visit: rows with their state, dense weights with theirs, sum of losses, seconds."""

    rows: RowState
    dense: DenseState
    loss_sum: float
    seconds: float
    cpu_seconds: float


class VisitWorkers(Protocol):
    """Makes the visits of an epoch, on a cluster."""

    def visit_all(
        self, model: EmbeddingModel, number: int, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], work: Work
    ) -> float:
        """Make all visits to the division `number` and load the result into the model; the mean loss of steps."""
        ...


class Visitor:
    """Visits subgraphs with a model of its own, which has only the rows of the subgraph."""

    def __init__(self, options: TrainOptions, num_relations: int, device: torch.device) -> None:
        options = dataclasses.replace(options, tables="device")
        self._options, self._num_relations, self._device = options, num_relations, device
        self._model = EmbeddingModel(0, num_relations, options, device, 0)
        self._stepper = Stepper(self._model, options)
        self._feed: tuple[int, SubgraphFeed] | None = None

    def visit(
        self,
        number: int,
        subgraphs: SubgraphSet,
        planned: PlannedVisit,
        taken: RowState,
        dense: DenseState,
        others: tuple[IntArray, FloatArray],
    ) -> VisitResult:
        """Visit a subgraph of the division `number`; `others` are ids (c,), ascending, and rows (c, d)."""
        started, cpu_started = time.monotonic(), time.process_time()
        if self._feed is None or self._feed[0] != number:
            feed = SubgraphFeed(subgraphs, self._num_relations, self._device, self._options.cache_bytes)
            self._feed = number, feed
        ready = next(self._feed[1].in_order([planned.index]))
        self._model.entities = table = _CopiedRows(ready.entities, taken)
        self._model.load_dense(dense.values, dense.squares)
        outside = OtherRows(*(torch.tensor(each, device=self._device) for each in others))
        losses = []
        with training_precision(self._options.precision):
            batches = batches_of(ready, self._options.batch_size, planned.seed, outside)
            for batch, rate in zip(batches, planned.learning_rates, strict=True):
                losses.append(self._stepper.step(batch, rate))
        return VisitResult(
            RowState(table.values.cpu().numpy(), table.square_average.cpu().numpy()),
            DenseState(*self._model.dense_vectors()),
            float(torch.stack(losses).double().sum()),
            time.monotonic() - started,
            time.process_time() - cpu_started,
        )


class _CopiedRows(RowRMSprop):
    """A copy of the rows of some entities (k,), ascending, by their global ids."""

    def __init__(self, entities: Tensor, taken: RowState) -> None:
        device = entities.device
        rows, squares = (torch.tensor(each, device=device) for each in (taken.rows, taken.squares))
        super().__init__(rows, squares)
        self._entities = entities

    def _indices(self, ids: Tensor) -> Tensor:
        return torch.searchsorted(self._entities, ids)


def sample_others(num_entities: int, cross_negatives: int, seed: int) -> IntArray:
    """Entities (c,), ascending, whose rows a visit takes to draw from: all if they are few, else a sample."""
    count = _SAMPLES * cross_negatives
    if num_entities <= count:
        return np.arange(num_entities, dtype=np.int64)
    return np.unique(np.random.default_rng([seed, 1]).integers(0, num_entities, count))
