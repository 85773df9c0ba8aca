"""Train on the workers of a cluster: several visits to subgraphs at the same time, each given back in its turn.

In: a model, the visits of an epoch. Out: the model after all of them, and counts of what was sent.
The idea: a subgraph is the unit of training. A visit is a pure function: it takes the rows of its entities with the
state of their optimiser, takes all steps of the subgraph, and gives the rows back, so a visit whose machine is lost is
computed again by another. So many visits are under way as `Workers.visits` allows, and they are given back in the order
of the epoch: no visit misses the changes of more than those, and the same number gives the same result. One at a time
gives that of one process.
Rows that no other visit changed meanwhile are replaced. Rows that others changed (landmarks, which several subgraphs
contain) get the visit's change added to theirs; the mean squares of their gradients become the mean of both, which can
be neither negative nor zero. Dense weights get the change too, but that of a visit overtaken by v >= 4 others counts
4 / (1 + v), since many steps that do not know of each other overshoot; their mean squares are those of the last visit.
Cost: that of the steps. An epoch sends rows and state of each subgraph twice.

# Departs: the entities outside a subgraph that the cross-subgraph loss draws come from a sample drawn for the visit.
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
from largegnn.embedding.losses import OtherRows
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.stepping import Stepper, batches_of
from largegnn.machine.metering import Meter
from largegnn.machine.pieces import Workers
from largegnn.machine.precision import training_precision
from largegnn.machine.progress import Work

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["ClusterVisits", "PlannedVisit", "SharedModel", "VisitResult", "VisitState", "sample_others", "visit"]

_log = logging.getLogger(__name__)
_SAMPLES = 4  # of rows that one step draws: so many times more are taken for a visit
_FULL_CHANGES = 4  # of dense weights: changes of so many visits at the same time count in full
_ENOUGH_SUBGRAPHS = 8  # for each worker: with four, H@1 of ContEA_FR_EN's valid links falls by .02, with two by .04


@dataclass(frozen=True)
class PlannedVisit:
    """A subgraph to be visited, the learning rate of each of its steps, and the seed of all that is drawn."""

    index: int
    learning_rates: tuple[float, ...]
    seed: int


@dataclass(frozen=True, eq=False)
class VisitState:
    """What a visit changes: rows (k, d) of entities, relation rows and encoder weights, flat, and the mean squares."""

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
    """The state after a visit, the sum of its losses, its seconds, and the peak memory of its worker."""

    state: VisitState
    loss_sum: float
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


class ClusterVisits:
    """Makes the visits of a training on the workers of a cluster, and counts."""

    def __init__(self, workers: Workers, options: TrainSettings, num_relations: int) -> None:
        self._workers, self._options, self._num_relations = workers, options, num_relations
        self._is_warned = False
        self._uses: list[ClusterUse] = []

    def use(self) -> ClusterUse | None:
        """What was taken of the cluster so far."""
        return ClusterUse.joined(self._uses) if self._uses else None

    def visit_all(
        self, model: EmbeddingModel, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], work: Work
    ) -> float:
        """Make all visits of an epoch; the mean loss of their steps."""
        self._warn_of_staleness(len(planned))
        shared, num_entities = SharedModel(model), len(model.entities.values)
        under_way: deque[tuple[IntArray, VisitState, int, int]] = deque()

        def pieces() -> Iterator[tuple[Any, ...]]:
            for one in planned:
                entities = np.asarray(subgraphs.subgraph(one.index).entities, dtype=np.int64)
                others = sample_others(num_entities, self._options.cross_negatives, one.seed)
                state, number = shared.take(entities)
                other_rows = model.entities.rows(torch.from_numpy(others)).cpu().numpy()
                under_way.append((entities, state, number, other_rows.nbytes))
                yield one, state, others, other_rows

        counts = {"bytes_sent": 0, "shared_rows": 0}
        staleness, results, losses = list[int](), list[tuple[float, float, float]](), list[float]()
        made = self._workers.visits(visit, pieces(), (subgraphs, self._options, self._num_relations))
        for one, result in zip(planned, made, strict=True):
            entities, taken, number, num_bytes = under_way.popleft()
            staleness.append(shared.num_visits - number)
            counts["shared_rows"] += shared.give(entities, taken, number, result.state)
            counts["bytes_sent"] += num_bytes + taken.num_bytes + result.state.num_bytes
            results.append((result.seconds, result.cpu_seconds, result.peak_memory_mb))
            losses.append(result.loss_sum)
            work.advance(len(one.learning_rates))
        shared.load_dense()
        seconds, cpu_seconds, peaks = zip(*results, strict=True)
        self._uses.append(
            ClusterUse(
                num_nodes=self._workers.num_nodes,
                num_workers=self._workers.num_visitors,
                num_visits=len(planned),
                mean_staleness=sum(staleness) / len(planned),
                most_stale=max(staleness),
                visit_seconds=sum(seconds),
                visit_cpu_seconds=sum(cpu_seconds),
                peak_worker_mb=max(peaks),
                **counts,
            )
        )
        return sum(losses) / sum(len(one.learning_rates) for one in planned)

    def _warn_of_staleness(self, num_subgraphs: int) -> None:
        num_workers = self._workers.num_visitors
        if self._is_warned or num_workers <= 2 or num_subgraphs >= _ENOUGH_SUBGRAPHS * num_workers:
            return
        self._is_warned = True
        _log.warning(
            "train: %d workers share %d subgraphs. With fewer than %d subgraphs for each worker others change many of "
            "the rows of a visit meanwhile, which costs accuracy: make more parts (division.parts) or take fewer "
            "workers (cluster.workers)",
            num_workers,
            num_subgraphs,
            _ENOUGH_SUBGRAPHS,
        )


class SharedModel:
    """A model that several visits change at the same time."""

    def __init__(self, model: EmbeddingModel) -> None:
        self._table, self._model = model.entities, model
        self._dense = model.dense_vectors()
        self._changed = np.zeros(len(model.entities.values), dtype=np.int64)  # by the number of visits given back
        self.num_visits = 0

    def take(self, entities: IntArray) -> tuple[VisitState, int]:
        """The state of `entities` (k,) and of the dense weights, and how many visits were given back before."""
        rows, squares = (each.cpu().numpy() for each in self._table.rows_and_state(torch.from_numpy(entities)))
        return VisitState(rows, squares, *self._dense), self.num_visits

    def give(self, entities: IntArray, taken: VisitState, number: int, made: VisitState) -> int:
        """Add what a visit changed since it was taken at `number`; how many of its rows others had changed."""
        rows, squares = made.rows.copy(), made.row_squares.copy()
        touched = self._changed[entities] > number
        if touched.any():
            present = [each.cpu().numpy() for each in self._table.rows_and_state(torch.from_numpy(entities[touched]))]
            rows[touched] = present[0] + (made.rows[touched] - taken.rows[touched])
            squares[touched] = (present[1] + made.row_squares[touched]) / 2
        device = self._table.device
        self._table.write(torch.from_numpy(entities), *(torch.from_numpy(each).to(device) for each in (rows, squares)))
        overtaken = self.num_visits - number
        dense = made.dense
        if overtaken:
            # Between the sum, which overshoots, and the mean, which learns less (lab/notebook.md has both).
            dense = self._dense[0] + min(1.0, _FULL_CHANGES / (1 + overtaken)) * (made.dense - taken.dense)
        self._dense = dense, made.dense_squares
        self.num_visits += 1
        self._changed[entities] = self.num_visits
        return int(touched.sum())

    def load_dense(self) -> None:
        """Bring the dense weights into the model, where the rows are already."""
        self._model.load_dense(*self._dense)


def visit(
    planned: PlannedVisit,
    taken: VisitState,
    others: IntArray,
    other_rows: FloatArray,
    subgraphs: SubgraphSet,
    options: TrainSettings,
    num_relations: int,
    device: str,
    num_threads: int,
) -> VisitResult:
    """Take all steps of a subgraph; `others` (c,), ascending, are the entities to draw from, with their rows."""
    meter, started, cpu_started = Meter(), time.monotonic(), time.process_time()
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        chosen = torch.device(device)
        model = EmbeddingModel(0, num_relations, options.model_copy(update={"tables": "device"}), chosen, 0)
        ready = prepare_subgraph(subgraphs.subgraph(planned.index), num_relations, chosen)
        model.entities = table = _CopiedRows(ready.entities, taken)
        model.load_dense(taken.dense, taken.dense_squares)
        stepper = Stepper(model, options)
        outside = OtherRows(*(torch.tensor(each, device=chosen) for each in (others, other_rows)))
        with training_precision(options.precision):
            batches = batches_of(ready, options.batch_size, planned.seed, outside)
            losses = [stepper.step(*each) for each in zip(batches, planned.learning_rates, strict=True)]
        loss_sum = float(torch.stack(losses).double().sum()) if losses else 0.0
        rows = (table.values.cpu().numpy(), table.square_average.cpu().numpy())
        seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu_started
        state = VisitState(*rows, *model.dense_vectors())
        return VisitResult(state, loss_sum, seconds, cpu_seconds, meter.read().peak_memory_mb)
    finally:
        torch.set_num_threads(before)


class _CopiedRows(EntityTable):
    """A copy of the rows of some entities (k,), ascending, by their global ids."""

    def __init__(self, entities: Tensor, taken: VisitState) -> None:
        device = entities.device
        rows, squares = (torch.tensor(each, device=device) for each in (taken.rows, taken.row_squares))
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
