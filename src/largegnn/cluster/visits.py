"""Training by visits on a cluster: who visits which subgraph when, and what happens when a machine is lost.

In: a model, the visits of an epoch. Out: the model after all of them. Rows go from shards to workers and back; this
process hands out references and never sees them, but for the end of an epoch, when it takes a copy of the table.
The idea: whoever is free takes the next visit, preferably to a subgraph it has seen, whose structure it keeps. A worker
that is lost costs its visit, which is made again by another. A shard that is lost costs the epoch: all shards begin
again with the copy of the last one. Machines that join later get workers. How stale rows may be is bounded: no visit
begins by which more visits than that could be given back between another's taking rows and giving them back.
Cost: an epoch sends rows and state of each subgraph twice, and the table once to this process.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from largegnn.artifacts import IntArray, SubgraphSet
from largegnn.cluster.mapped import sent
from largegnn.cluster.pool import RayPool
from largegnn.cluster.tables import ShardedTable, ShardLostError
from largegnn.cluster.tally import Tally
from largegnn.cluster.worker import VisitFacts, VisitWorker
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.shards import DenseCenter, DenseState
from largegnn.embedding.visits import PlannedVisit, sample_others
from largegnn.errors import StorageError
from largegnn.machine.progress import Work

__all__ = ["RayVisits"]

_log = logging.getLogger(__name__)
_REPEATS = 50  # of one epoch, before one gives up
_TRIES = 10  # of one visit: a subgraph too large for any machine is lost each time
_STALENESS = 4  # visits a worker may make while the slowest makes one, unless the settings say otherwise
_ENOUGH_SUBGRAPHS = 8  # for each worker: with four, H@1 of ContEA_FR_EN's valid links falls by .02, with two by .04
_LOOK_SECONDS = 2.0  # between looks for machines that joined
_PATIENCE_SECONDS = 120.0  # without any worker


@dataclass(eq=False)
class _Worker:
    """A worker: its actor, the answer that says it is ready, what it is doing, and the subgraphs it has seen."""

    actor: Any
    starting: Any
    name: int
    process: int = 0
    is_ready: bool = False
    is_busy: bool = False
    seen: set[tuple[int, int]] = field(default_factory=set)
    num_visits: int = 0
    seconds: float = 0.0
    peak_memory_mb: float = 0.0


@dataclass(frozen=True, eq=False)
class _Flight:
    """A visit under way."""

    visit: int
    planned: PlannedVisit
    worker: _Worker
    parts: tuple[Any, ...]
    version: int
    dense: DenseState
    given_before: int


class RayVisits:
    """Makes the visits of a training on the workers of a cluster; close it when the training is done."""

    def __init__(self, pool: RayPool, options: TrainOptions, num_relations: int) -> None:
        self._pool, self._ray, self._options, self._num_relations = pool, pool.ray, options, num_relations
        self._workers: list[_Worker] = []
        self._table: ShardedTable | None = None
        self._division: tuple[int, Any] | None = None
        self._center: DenseCenter | None = None
        self._num_started = self._num_visits = self._num_given = 0
        self._looked = 0.0
        self.tally = Tally(len(pool.nodes))

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
        """Make all visits of an epoch; the mean loss of their steps."""
        if self._division is None:
            _warn_of_staleness(self._pool.num_visitors, len(planned))
        if self._division is None or self._division[0] != number:
            self._division = number, self._pool.share(sent(subgraphs))
        for _ in range(_REPEATS):
            done = work.done
            try:
                if self._table is None:
                    self._table = ShardedTable(self._pool, model)
                    self._table.fill_from(model)
                self._center = DenseCenter(DenseState(*model.dense_vectors()))
                loss = self._epoch(subgraphs, planned, len(model.entities.values), work)
                self._table.read_into(model)
                model.load_dense(self._center.state.values, self._center.state.squares)
            except ShardLostError as error:
                _log.warning("train: %s; the epoch is repeated from the end of the one before", error)
                self.tally.epochs_repeated += 1
                work.advance(done - work.done)
                self._ground()
            else:
                self._log_rates()
                return loss
        raise StorageError(
            f"the cluster lost a part of the table {_REPEATS} times in one epoch; the checkpoints before it are kept, "
            "look at the nodes with `largegnn cluster check` and run again with --resume"
        )

    def _epoch(self, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], num_entities: int, work: Work) -> float:
        pending, flying = deque(planned), dict[Any, _Flight]()
        lost = Counter[int]()
        loss_sum, waited_since = 0.0, time.monotonic()
        while pending or flying:
            self._find_workers()
            while pending and (worker := self._free(flying)) is not None:
                flight = self._launch(worker, self._next_for(worker, pending), subgraphs, num_entities)
                flying[flight.parts[0]] = flight
            starting = [worker.starting for worker in self._workers if not worker.is_ready]
            if any(worker.is_ready for worker in self._workers):
                waited_since = time.monotonic()
            elif time.monotonic() - waited_since > _PATIENCE_SECONDS:
                raise StorageError(
                    f"no worker of the cluster is ready after {_PATIENCE_SECONDS:.0f} s; look at the nodes with "
                    "`largegnn cluster check`, free some processors, and run again with --resume"
                )
            ended = self._ray.wait([*flying, *starting], num_returns=1, timeout=_LOOK_SECONDS)[0]
            for reference in ended:
                flight_ended = flying.pop(reference, None)
                if flight_ended is None:
                    self._welcome(reference)
                elif (facts := self._facts(flight_ended)) is None:
                    lost[flight_ended.planned.index] += 1
                    _refuse_endless(lost[flight_ended.planned.index])
                    pending.appendleft(flight_ended.planned)
                else:
                    loss_sum += facts.loss_sum
                    self._give(flight_ended, facts)
                    work.advance(len(flight_ended.planned.learning_rates))
        assert self._table is not None
        self.tally.shared_rows += self._table.settle()
        return loss_sum / sum(len(each.learning_rates) for each in planned)

    def _free(self, flying: dict[Any, _Flight]) -> _Worker | None:
        """A worker that may begin a visit now: it is idle, and nobody's rows become staler than allowed by it."""
        bound = self._pool.cluster.staleness
        most = _STALENESS * self._pool.num_visitors if bound == "auto" else bound
        # All others under way, and the one to begin, may be given back before a visit is.
        if any(self._num_given - each.given_before + len(flying) > most for each in flying.values()):
            return None
        return next((worker for worker in self._workers if worker.is_ready and not worker.is_busy), None)

    def _next_for(self, worker: _Worker, pending: deque[PlannedVisit]) -> PlannedVisit:
        """The first visit to a subgraph this worker has seen, else to one nobody has, else the first."""
        assert self._division is not None
        if len(self._workers) == 1:
            return pending.popleft()  # in the order of one process, and to the same result
        number = self._division[0]
        anybody = set().union(*(each.seen for each in self._workers))
        chosen = next((each for each in pending if (number, each.index) in worker.seen), None)
        chosen = chosen or next((each for each in pending if (number, each.index) not in anybody), pending[0])
        pending.remove(chosen)
        return chosen

    def _launch(self, worker: _Worker, planned: PlannedVisit, subgraphs: SubgraphSet, num_entities: int) -> _Flight:
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
        worker.seen = {each for each in worker.seen if each[0] == number} | {(number, planned.index)}
        row_bytes = 4 * self._options.dim
        self.tally.bytes_sent += row_bytes * (4 * len(entities) + len(others)) + 2 * dense.num_bytes
        return _Flight(self._num_visits, planned, worker, parts, version, dense, self._num_given)

    def _facts(self, flight: _Flight) -> VisitFacts | None:
        """What a visit was like; None if its worker was lost, which is then forgotten."""
        assert self._table is not None
        errors = self._ray.exceptions
        try:
            facts: VisitFacts = self._ray.get(flight.parts[0])
        except errors.RayError as error:
            if isinstance(error, errors.RayTaskError) and not isinstance(error.cause, errors.RayError):
                raise error.cause from None  # the visit itself went wrong, and would again
            self._table.refuse_loss()
            kind, name = type(error).__name__, flight.worker.name
            _log.warning("train: worker %d was lost (%s); its visit is made again", name, kind)
            self.tally.visits_repeated += 1
            self._table.drop(flight.visit)
            self._forget(flight.worker)
            return None
        worker = flight.worker
        worker.is_busy = False
        worker.num_visits += 1
        worker.seconds += facts.seconds
        worker.peak_memory_mb = max(worker.peak_memory_mb, facts.peak_memory_mb)
        return facts

    def _give(self, flight: _Flight, facts: VisitFacts) -> None:
        assert self._table is not None
        assert self._center is not None
        self._table.give(flight.visit, flight.parts[1:])
        self._center.give(flight.version, flight.dense, facts.dense)
        self.tally.note_visit(
            self._num_given - flight.given_before, facts.seconds, facts.cpu_seconds, facts.peak_memory_mb
        )
        self._num_given += 1

    def _find_workers(self) -> None:
        """Start as many workers as there is room for; machines may have joined since."""
        if time.monotonic() - self._looked < _LOOK_SECONDS and self._workers:
            return
        self._looked = time.monotonic()
        wanted = self._pool.num_visitors
        for _ in range(wanted - len(self._workers)):
            resources = self._pool.resources(wanted)
            remote = self._ray.remote(VisitWorker).options(scheduling_strategy="SPREAD", **resources)
            arguments = (self._options, self._num_relations, self._pool.device, int(resources["num_cpus"]))
            actor = remote.remote(*arguments)
            self._num_started += 1
            self._workers.append(_Worker(actor, actor.process.remote(), self._num_started))

    def _welcome(self, reference: Any) -> None:
        """A worker that was starting is ready, or is lost."""
        worker = next(each for each in self._workers if each.starting == reference)
        try:
            worker.process = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError:
            self._forget(worker)
            return
        worker.is_ready = True
        self.tally.num_workers = max(self.tally.num_workers, sum(each.is_ready for each in self._workers))

    def _forget(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._ray.kill(worker.actor)
        self._looked = 0.0

    def _ground(self) -> None:
        """After a shard was lost: the shards begin anew, and workers are ready again when their visits have ended."""
        assert self._table is not None
        self._table.close()
        self._table = None
        for worker in [each for each in self._workers if each.is_busy]:
            worker.is_busy = worker.is_ready = False
            worker.starting = worker.actor.process.remote()  # answered after what the worker is doing

    def _log_rates(self) -> None:
        use, nodes = self.tally, sum(entry["Alive"] for entry in self._ray.nodes())
        use.num_nodes = max(use.num_nodes, nodes)
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
            nodes,
        )


def _warn_of_staleness(num_workers: int, num_subgraphs: int) -> None:
    if num_workers > 2 and num_subgraphs < _ENOUGH_SUBGRAPHS * num_workers:
        _log.warning(
            "train: %d workers share %d subgraphs. With fewer than %d subgraphs for each worker much of what a visit "
            "takes is changed by others meanwhile, which costs accuracy: make more parts (division.parts) or take "
            "fewer workers (cluster.workers)",
            num_workers,
            num_subgraphs,
            _ENOUGH_SUBGRAPHS,
        )


def _refuse_endless(num_lost: int) -> None:
    if num_lost >= _TRIES:
        raise StorageError(
            f"a visit to one subgraph was lost {num_lost} times, each time with its worker; it may not fit into "
            "the memory of a node: make more parts or fewer workers, or look at the nodes with `largegnn cluster check`"
        )
