"""Train by visits on a Ray cluster: schedule them on workers, and repeat what is lost with a machine.

In: a model, the visits of an epoch. Out: the model after all of them. Rows travel from shards to workers and back; this
process only passes references to them, until it copies the table at the end of an epoch.
The idea: an idle worker takes the next visit, preferably to a subgraph it visited before, whose structure it keeps.
The visit of a lost worker is repeated by another. If a shard is lost, the epoch is repeated from the last copy.
Machines that join later get workers. Staleness is bounded: a visit only begins if no visit under way can then be
overtaken by more visits than the bound.
Cost: an epoch sends rows and state of each subgraph twice, and the table once to this process.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from largegnn.artifacts import ClusterUse, FloatArray, IntArray, SubgraphSet
from largegnn.cluster.entity_table import ShardedTable, ShardLostError
from largegnn.cluster.workers import RayWorkers, pack, unpack
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.shards import DenseCenter, DenseState, RowState
from largegnn.embedding.visits import PlannedVisit, Visitor, sample_others
from largegnn.errors import StorageError
from largegnn.machine.metering import Meter
from largegnn.machine.progress import Work

__all__ = ["RayVisits", "Tally", "VisitFacts", "VisitWorker"]

_log = logging.getLogger(__name__)
_EPOCH_TRIES = 50  # before the run fails
_VISIT_TRIES = 10  # a subgraph too large for any machine is lost each time
_STALENESS = 4  # visits a worker may make while the slowest makes one, unless the settings have another bound
_ENOUGH_SUBGRAPHS = 8  # for each worker: with four, H@1 of ContEA_FR_EN's valid links falls by .02, with two by .04
_REFRESH_SECONDS = 2.0  # between searches for machines that joined
_PATIENCE_SECONDS = 120.0  # without any worker


@dataclass(frozen=True, eq=False)
class VisitFacts:
    """Measurements of a visit: the dense weights after it, sum of losses, seconds, peak memory of its worker."""

    dense: DenseState
    loss_sum: float
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


class VisitWorker:
    """A process of the cluster that makes visits one after another; it keeps the structures of their subgraphs."""

    def __init__(self, options: TrainOptions, num_relations: int, device: str, num_threads: int) -> None:
        import torch

        torch.set_num_threads(num_threads)
        self._visitor = Visitor(options, num_relations, torch.device(device))
        self._meter = Meter()

    def process(self) -> int:
        """The id of this process on its machine; an answer means that the worker is ready."""
        return os.getpid()

    def visit(
        self,
        number: int,
        subgraphs: Any,
        planned: PlannedVisit,
        dense: DenseState,
        others: IntArray,
        *taken: tuple[RowState, FloatArray],
    ) -> tuple[Any, ...]:
        """Visit a subgraph of a division with the rows of each shard; returns the facts, then the rows for each shard.

        `others` (c,) are the entities whose rows come second from each shard.
        """
        joined = RowState(
            *(np.concatenate([getattr(state, name) for state, _ in taken]) for name in ("rows", "squares"))
        )
        drawn = others, np.concatenate([rows for _, rows in taken])
        made = self._visitor.visit(number, unpack(subgraphs), planned, joined, dense, drawn)
        ends = np.cumsum([len(state.rows) for state, _ in taken])[:-1]
        parts = zip(np.split(made.rows.rows, ends), np.split(made.rows.squares, ends), strict=True)
        peak = self._meter.read().peak_memory_mb
        facts = VisitFacts(made.dense, made.loss_sum, made.seconds, made.cpu_seconds, peak)
        return facts, *(RowState(np.ascontiguousarray(rows), np.ascontiguousarray(squares)) for rows, squares in parts)


@dataclass
class Tally:
    """Counts of a training so far; `ClusterUse` explains each."""

    num_nodes: int
    num_workers: int = 0
    num_visits: int = 0
    visits_repeated: int = 0
    epochs_repeated: int = 0
    bytes_sent: int = 0
    staleness_sum: int = 0
    most_stale: int = 0
    shared_rows: int = 0
    visit_seconds: float = 0.0
    visit_cpu_seconds: float = 0.0
    peak_worker_mb: float = 0.0

    def add_visit(self, staleness: int, facts: VisitFacts) -> None:
        """Count a visit that was given back."""
        self.num_visits += 1
        self.staleness_sum += staleness
        self.most_stale = max(self.most_stale, staleness)
        self.visit_seconds += facts.seconds
        self.visit_cpu_seconds += facts.cpu_seconds
        self.peak_worker_mb = max(self.peak_worker_mb, facts.peak_memory_mb)

    def use(self) -> ClusterUse:
        """The counts so far, with the mean staleness."""
        counts = dataclasses.asdict(self)
        mean_staleness = counts.pop("staleness_sum") / max(self.num_visits, 1)
        return ClusterUse(**counts, mean_staleness=mean_staleness)


@dataclass(eq=False)
class _Worker:
    """An actor, the reference that is done when it is ready, and the subgraphs visited, each with its division."""

    actor: Any
    starting: Any
    number: int
    process: int = 0
    is_ready: bool = False
    is_busy: bool = False
    visited: set[tuple[int, int]] = field(default_factory=set)
    num_visits: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class _Visit:
    """A visit under way; `parts` are references to its facts and to the rows for each shard."""

    number: int
    planned: PlannedVisit
    worker: _Worker
    parts: tuple[Any, ...]
    version: int
    dense: DenseState
    given_before: int


class RayVisits:
    """Makes the visits of a training on the workers of a cluster; close it when the training is done."""

    def __init__(self, cluster: RayWorkers, options: TrainOptions, num_relations: int) -> None:
        self._cluster, self._ray, self._options, self._num_relations = cluster, cluster.ray, options, num_relations
        self._workers: list[_Worker] = []
        self._table: ShardedTable | None = None
        self._division: tuple[int, Any] | None = None
        self._center: DenseCenter | None = None
        self._num_started = self._num_visits = self._num_given = 0
        self._refreshed = 0.0
        self.tally = Tally(len(cluster.nodes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self._ray.kill(worker.actor)
        self._workers.clear()
        if self._table is not None:
            self._table.close()

    def visit_all(
        self, model: EmbeddingModel, number: int, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], work: Work
    ) -> float:
        """Make all visits of an epoch; returns the mean loss of their steps."""
        if self._division is None:
            _warn_of_staleness(self._cluster.num_visitors, len(planned))
        if self._division is None or self._division[0] != number:
            self._division = number, self._ray.put(pack(subgraphs))
        for _ in range(_EPOCH_TRIES):
            done = work.done
            try:
                if self._table is None:
                    self._table = ShardedTable(self._cluster, model)
                    self._table.fill_from(model)
                self._center = DenseCenter(DenseState(*model.dense_vectors()))
                loss = self._epoch(subgraphs, planned, len(model.entities.values), work)
                self._table.read_into(model)
                model.load_dense(self._center.state.values, self._center.state.squares)
            except ShardLostError as error:
                _log.warning("train: %s; the epoch is repeated from the end of the one before", error)
                self.tally.epochs_repeated += 1
                work.advance(done - work.done)
                self._drop_table()
            else:
                self._log_rates()
                return loss
        raise StorageError(
            f"the cluster lost a part of the table {_EPOCH_TRIES} times in one epoch; the checkpoints before it are "
            "kept, check the nodes with `largegnn cluster check` and run again with --resume"
        )

    def _epoch(self, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], num_entities: int, work: Work) -> float:
        pending, running = deque(planned), dict[Any, _Visit]()
        lost = Counter[int]()
        loss_sum, waited_since = 0.0, time.monotonic()
        while pending or running:
            self._start_workers()
            while pending and (worker := self._idle_worker(running)) is not None:
                visit = self._begin(worker, self._choose(worker, pending), subgraphs, num_entities)
                running[visit.parts[0]] = visit
            starting = [worker.starting for worker in self._workers if not worker.is_ready]
            if any(worker.is_ready for worker in self._workers):
                waited_since = time.monotonic()
            elif time.monotonic() - waited_since > _PATIENCE_SECONDS:
                raise StorageError(
                    f"no worker of the cluster is ready after {_PATIENCE_SECONDS:.0f} s; check the nodes with "
                    "`largegnn cluster check`, free some processors, and run again with --resume"
                )
            for reference in self._ray.wait([*running, *starting], num_returns=1, timeout=_REFRESH_SECONDS)[0]:
                ended = running.pop(reference, None)
                if ended is None:
                    self._finish_start(reference)
                elif (facts := self._facts(ended)) is None:
                    lost[ended.planned.index] += 1
                    _refuse_endless(lost[ended.planned.index])
                    pending.appendleft(ended.planned)
                else:
                    loss_sum += facts.loss_sum
                    self._give(ended, facts)
                    work.advance(len(ended.planned.learning_rates))
        assert self._table is not None
        self.tally.shared_rows += self._table.settle()
        return loss_sum / sum(len(each.learning_rates) for each in planned)

    def _idle_worker(self, running: dict[Any, _Visit]) -> _Worker | None:
        """A worker that may begin a visit now: it is idle, and no visit under way exceeds its staleness by it."""
        bound = self._cluster.settings.staleness
        most = _STALENESS * self._cluster.num_visitors if bound == "auto" else bound
        # All others under way, and the one to begin, may be given back before a visit is.
        if any(self._num_given - each.given_before + len(running) > most for each in running.values()):
            return None
        return next((worker for worker in self._workers if worker.is_ready and not worker.is_busy), None)

    def _choose(self, worker: _Worker, pending: deque[PlannedVisit]) -> PlannedVisit:
        """The first visit to a subgraph this worker has visited, else to one that no worker has, else the first."""
        assert self._division is not None
        if len(self._workers) == 1:
            return pending.popleft()  # in the order of one process, and to the same result
        number = self._division[0]
        by_any = set().union(*(each.visited for each in self._workers))
        chosen = next((each for each in pending if (number, each.index) in worker.visited), None)
        chosen = chosen or next((each for each in pending if (number, each.index) not in by_any), pending[0])
        pending.remove(chosen)
        return chosen

    def _begin(self, worker: _Worker, planned: PlannedVisit, subgraphs: SubgraphSet, num_entities: int) -> _Visit:
        assert self._table is not None
        assert self._division is not None
        assert self._center is not None
        number, shared = self._division
        self._num_visits += 1
        entities: IntArray = np.asarray(subgraphs.subgraph(planned.index).entities, dtype=np.int64)
        others = sample_others(num_entities, self._options.cross_negatives, planned.seed)
        taken = self._table.take(self._num_visits, entities, others)
        version, dense = self._center.take()
        call = worker.actor.visit.options(num_returns=1 + len(taken))
        parts = tuple(call.remote(number, shared, planned, dense, others, *taken))
        worker.is_busy = True
        worker.visited = {each for each in worker.visited if each[0] == number} | {(number, planned.index)}
        row_bytes = 4 * self._options.dim
        self.tally.bytes_sent += row_bytes * (4 * len(entities) + len(others)) + 2 * dense.num_bytes
        return _Visit(self._num_visits, planned, worker, parts, version, dense, self._num_given)

    def _facts(self, visit: _Visit) -> VisitFacts | None:
        """The facts of a visit that ended; None if its worker was lost, which is then removed."""
        assert self._table is not None
        errors, worker = self._ray.exceptions, visit.worker
        try:
            facts: VisitFacts = self._ray.get(visit.parts[0])
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError) and not isinstance(error.cause, errors.RayError):
                raise error.cause from None  # the visit itself failed, and would again
            self._table.check_shards()
            _log.warning("train: worker %d was lost (%s); its visit is repeated", worker.number, type(error).__name__)
            self.tally.visits_repeated += 1
            self._table.drop(visit.number)
            self._remove(worker)
            return None
        worker.is_busy = False
        worker.num_visits += 1
        worker.seconds += facts.seconds
        return facts

    def _give(self, visit: _Visit, facts: VisitFacts) -> None:
        assert self._table is not None
        assert self._center is not None
        self._table.give(visit.number, visit.parts[1:])
        self._center.give(visit.version, visit.dense, facts.dense)
        self.tally.add_visit(self._num_given - visit.given_before, facts)
        self._num_given += 1

    def _start_workers(self) -> None:
        """Start the workers that are missing; machines may have joined since, and others may be lost."""
        if time.monotonic() - self._refreshed < _REFRESH_SECONDS and self._workers:
            return
        self._refreshed = time.monotonic()
        wanted = self._cluster.num_visitors
        for _ in range(wanted - len(self._workers)):
            resources = self._cluster.resources(wanted)
            remote = self._ray.remote(VisitWorker).options(scheduling_strategy="SPREAD", **resources)
            arguments = (self._options, self._num_relations, self._cluster.device, int(resources["num_cpus"]))
            actor = remote.remote(*arguments)
            self._num_started += 1
            self._workers.append(_Worker(actor, actor.process.remote(), self._num_started))

    def _finish_start(self, reference: Any) -> None:
        """Mark a worker that was starting as ready, or remove it where it is lost."""
        worker = next(each for each in self._workers if each.starting == reference)
        try:
            worker.process = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError:
            self._remove(worker)
            return
        worker.is_ready = True
        self.tally.num_workers = max(self.tally.num_workers, sum(each.is_ready for each in self._workers))

    def _remove(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._ray.kill(worker.actor)
        self._refreshed = 0.0

    def _drop_table(self) -> None:
        """After a shard was lost: end the others too; busy workers are ready again when their visits have ended."""
        assert self._table is not None
        self._table.close()
        self._table = None
        for worker in [each for each in self._workers if each.is_busy]:
            worker.is_busy = worker.is_ready = False
            worker.starting = worker.actor.process.remote()  # answered after the visit

    def _log_rates(self) -> None:
        num_nodes = sum(entry["Alive"] for entry in self._ray.nodes())
        self.tally.num_nodes = max(self.tally.num_nodes, num_nodes)
        use = self.tally.use()
        rates = ", ".join(
            f"{60 * worker.num_visits / worker.seconds:.1f}" for worker in self._workers if worker.seconds > 0
        )
        _log.info(
            "train: %s visits so far, a minute by each worker: %s; %.0f MB sent, %.1f visits stale (most %d), %d nodes",
            f"{use.num_visits:,}",
            rates,
            use.bytes_sent / 1e6,
            use.mean_staleness,
            use.most_stale,
            num_nodes,
        )


def _warn_of_staleness(num_workers: int, num_subgraphs: int) -> None:
    if num_workers > 2 and num_subgraphs < _ENOUGH_SUBGRAPHS * num_workers:
        _log.warning(
            "train: %d workers share %d subgraphs. With fewer than %d subgraphs for each worker others change many of "
            "the rows of a visit meanwhile, which costs accuracy: make more parts (division.parts) or take fewer "
            "workers (cluster.workers)",
            num_workers,
            num_subgraphs,
            _ENOUGH_SUBGRAPHS,
        )


def _refuse_endless(num_lost: int) -> None:
    if num_lost >= _VISIT_TRIES:
        raise StorageError(
            f"a visit to one subgraph was lost {num_lost} times, each time with its worker; it may not fit into "
            "the memory of a node: make more parts or fewer workers, or check the nodes with `largegnn cluster check`"
        )
