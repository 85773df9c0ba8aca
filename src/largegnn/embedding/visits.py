"""Train on the workers of a cluster: several workers visit subgraphs at the same time, results are merged in order.

In: a model, the visits of an epoch. Out: the model after all visits, and counts of what was sent.
The idea: a visit is a pure function from the rows and optimiser state of a subgraph's entities to their values after
all its steps, so a visit whose machine is lost is computed again elsewhere. `Workers.visits` limits how many are under
way. Results are merged in the order of the epoch, so the same limit gives the same result; a limit of one visit gives
the result of one process. How a visit that others overtook is merged: see `SharedModel.merge`.
Cost: the cost of the steps. An epoch sends rows and state of each subgraph twice.

# Departs: the cross-subgraph loss draws entities from a sample that is drawn once for the visit, not from all entities.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import ClusterUse, FloatArray, IntArray, SubgraphSet
from largegnn.embedding.entity_table import EntityTable
from largegnn.embedding.feeding import prepare_subgraph
from largegnn.embedding.losses import SampledRows
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.stepping import Stepper, batches_of
from largegnn.machine.metering import Meter
from largegnn.machine.pieces import Workers
from largegnn.machine.precision import training_precision
from largegnn.machine.progress import Work

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["ClusterVisits", "PlannedVisit", "SharedModel", "VisitResult", "VisitState", "sample_entities", "visit"]

_log = logging.getLogger(__name__)
_SAMPLE_FACTOR = 4  # entities sampled for a visit, as a multiple of the entities that one step draws from them
_MAX_FULL_CHANGES = 4  # changes of dense weights by up to this many simultaneous visits count in full
_MIN_SUBGRAPHS_PER_WORKER = 8  # with 4, H@1 on ContEA_FR_EN's valid links falls by .02, with 2 by .04


@dataclass(frozen=True)
class PlannedVisit:
    """A visit to be made: the subgraph's index, the learning rate of every step, and the seed of all random draws."""

    index: int
    learning_rates: tuple[float, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class VisitState:
    """The parameters that a visit changes, with their mean squared gradients.

    `rows` (k, d) are entity rows; `dense` is the flat vector of relation rows and encoder weights.
    """

    rows: FloatArray
    row_squares: FloatArray
    dense: FloatArray
    dense_squares: FloatArray

    @property
    def num_bytes(self) -> int:
        """Bytes to send."""
        return sum(getattr(self, field.name).nbytes for field in fields(self))


@dataclass(frozen=True, eq=False)
class VisitResult:
    """The state after a visit, the sum of its losses, its wall-clock and CPU seconds, its worker's peak memory."""

    state: VisitState
    loss_sum: float
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


class ClusterVisits:
    """Makes the visits of a training on the workers of a cluster, and records the use of the cluster."""

    def __init__(self, workers: Workers, options: TrainSettings, num_relations: int) -> None:
        self._workers, self._options, self._num_relations = workers, options, num_relations
        self._has_warned = False
        self._uses: list[ClusterUse] = []

    def use(self) -> ClusterUse | None:
        """The use of the cluster so far; None before the first epoch."""
        return ClusterUse.joined(self._uses) if self._uses else None

    def visit_all(
        self, model: EmbeddingModel, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], work: Work
    ) -> float:
        """Make all visits of an epoch; returns the mean loss of their steps."""
        self._warn_of_staleness(len(planned))
        shared, num_entities = SharedModel(model), len(model.entities.values)
        # Entities, state sent, number of visits merged before, and bytes of sampled rows.
        under_way: deque[tuple[IntArray, VisitState, int, int]] = deque()

        def pieces() -> Iterator[tuple[Any, ...]]:
            for planned_visit in planned:
                entities = np.asarray(subgraphs.subgraph(planned_visit.index).entities, dtype=np.int64)
                sampled = sample_entities(num_entities, self._options.cross_negatives, planned_visit.seed)
                state, number = shared.read(entities)
                sampled_rows = model.entities.rows(torch.from_numpy(sampled)).cpu().numpy()
                under_way.append((entities, state, number, sampled_rows.nbytes))
                yield planned_visit, state, sampled, sampled_rows

        bytes_sent = shared_rows = 0
        staleness: list[int] = []
        losses: list[float] = []
        seconds: list[float] = []
        cpu_seconds: list[float] = []
        peaks_mb: list[float] = []
        visited = self._workers.visits(visit, pieces(), (subgraphs, self._options, self._num_relations))
        for planned_visit, result in zip(planned, visited, strict=True):
            entities, before, number, num_bytes = under_way.popleft()
            staleness.append(shared.num_visits - number)
            shared_rows += shared.merge(entities, before, number, result.state)
            bytes_sent += num_bytes + before.num_bytes + result.state.num_bytes
            losses.append(result.loss_sum)
            seconds.append(result.seconds)
            cpu_seconds.append(result.cpu_seconds)
            peaks_mb.append(result.peak_memory_mb)
            work.advance(len(planned_visit.learning_rates))
        shared.load_dense()
        self._uses.append(
            ClusterUse(
                num_nodes=self._workers.num_nodes,
                num_workers=self._workers.num_visitors,
                num_visits=len(planned),
                mean_staleness=sum(staleness) / len(planned),
                most_stale=max(staleness),
                visit_seconds=sum(seconds),
                visit_cpu_seconds=sum(cpu_seconds),
                peak_worker_mb=max(peaks_mb),
                bytes_sent=bytes_sent,
                shared_rows=shared_rows,
            )
        )
        return sum(losses) / sum(len(planned_visit.learning_rates) for planned_visit in planned)

    def _warn_of_staleness(self, num_subgraphs: int) -> None:
        """Warn once if there are so few subgraphs that simultaneous visits share many rows."""
        num_workers = self._workers.num_visitors
        if self._has_warned or num_workers <= 2 or num_subgraphs >= _MIN_SUBGRAPHS_PER_WORKER * num_workers:
            return
        self._has_warned = True
        _log.warning(
            "train: %d workers share %d subgraphs. With fewer than %d subgraphs per worker, other workers change many "
            "of the rows that a visit works on, which costs accuracy: make more parts (division.parts) or use fewer "
            "workers (cluster.workers)",
            num_workers,
            num_subgraphs,
            _MIN_SUBGRAPHS_PER_WORKER,
        )


class SharedModel:
    """A model whose parameters several visits read and change at the same time."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._table, self._model = model.entities, model
        self._dense = model.dense_vectors()
        self._changed_by = np.zeros(len(model.entities.values), dtype=np.int64)  # number of the last visit, from 1
        self.num_visits = 0

    def read(self, entities: IntArray) -> tuple[VisitState, int]:
        """The state of `entities` (k,) and of the dense weights, and how many visits were merged before."""
        return VisitState(*self._rows_and_squares(entities), *self._dense), self.num_visits

    def _rows_and_squares(self, entities: IntArray) -> tuple[FloatArray, FloatArray]:
        rows, squares = self._table.rows_and_state(torch.from_numpy(entities))
        return rows.cpu().numpy(), squares.cpu().numpy()

    def merge(self, entities: IntArray, before: VisitState, number: int, after: VisitState) -> int:
        """Merge the result of a visit that read its state after `number` visits; returns the number of shared rows.

        Shared rows are rows that other visits changed meanwhile, such as landmarks. The visit's change is added to
        them, and their mean squares become the mean of both, which stays positive. All other rows are replaced. The
        change of the dense weights is added too; if v >= 4 other visits were merged meanwhile it is scaled by
        4 / (1 + v), because many steps that do not know of each other overshoot. Their mean squares are replaced.
        """
        rows, squares = after.rows.copy(), after.row_squares.copy()
        is_shared = self._changed_by[entities] > number
        if is_shared.any():
            present_rows, present_squares = self._rows_and_squares(entities[is_shared])
            rows[is_shared] = present_rows + (after.rows[is_shared] - before.rows[is_shared])
            squares[is_shared] = (present_squares + after.row_squares[is_shared]) / 2
        device = self._table.device
        self._table.write(
            torch.from_numpy(entities), torch.from_numpy(rows).to(device), torch.from_numpy(squares).to(device)
        )
        overtaken = self.num_visits - number
        dense = after.dense
        if overtaken:
            # Between the sum, which overshoots, and the mean, which learns less (lab/notebook.md has both).
            dense = self._dense[0] + min(1.0, _MAX_FULL_CHANGES / (1 + overtaken)) * (after.dense - before.dense)
        self._dense = dense, after.dense_squares
        self.num_visits += 1
        self._changed_by[entities] = self.num_visits
        return int(is_shared.sum())

    def load_dense(self) -> None:
        """Copy the dense weights into the model, whose table already has the rows."""
        self._model.load_dense(*self._dense)


def visit(
    planned: PlannedVisit,
    before: VisitState,
    sampled: IntArray,
    sampled_rows: FloatArray,
    subgraphs: SubgraphSet,
    options: TrainSettings,
    num_relations: int,
    device: str,
    num_threads: int,
) -> VisitResult:
    """Take all steps of a subgraph, on a worker.

    The cross-subgraph loss draws from the entities `sampled` (c,), ascending, whose input rows are `sampled_rows`.
    """
    meter, started, cpu_started = Meter(), time.monotonic(), time.process_time()
    threads_before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        chosen = torch.device(device)
        model = EmbeddingModel(0, num_relations, options.model_copy(update={"tables": "device"}), chosen, 0)
        ready = prepare_subgraph(subgraphs.subgraph(planned.index), num_relations, chosen)
        model.entities = table = _CopiedRows(ready.entities, before)
        model.load_dense(before.dense, before.dense_squares)
        stepper = Stepper(model, options)
        sample = SampledRows(torch.tensor(sampled, device=chosen), torch.tensor(sampled_rows, device=chosen))
        with training_precision(options.precision):
            batches = batches_of(ready, options.batch_size, planned.seed, sample)
            losses = [stepper.step(batch, rate) for batch, rate in zip(batches, planned.learning_rates, strict=True)]
        loss_sum = float(torch.stack(losses).double().sum()) if losses else 0.0
        seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu_started
        state = VisitState(table.values.cpu().numpy(), table.square_average.cpu().numpy(), *model.dense_vectors())
        return VisitResult(state, loss_sum, seconds, cpu_seconds, meter.read().peak_memory_mb)
    finally:
        torch.set_num_threads(threads_before)


class _CopiedRows(EntityTable):
    """A table of copied rows, for some entities (k,), ascending, that is indexed by their global ids."""

    def __init__(self, entities: Tensor, state: VisitState) -> None:
        device = entities.device
        super().__init__(torch.tensor(state.rows, device=device), torch.tensor(state.row_squares, device=device))
        self._entities = entities

    def _indices(self, ids: Tensor) -> Tensor:
        return torch.searchsorted(self._entities, ids)


def sample_entities(num_entities: int, cross_negatives: int, seed: int) -> IntArray:
    """Sample the entities (c,), ascending, whose rows are sent with a visit; all entities if there are few."""
    count = _SAMPLE_FACTOR * cross_negatives
    if num_entities <= count:
        return np.arange(num_entities, dtype=np.int64)
    return np.unique(np.random.default_rng([seed, 1]).integers(0, num_entities, count))
