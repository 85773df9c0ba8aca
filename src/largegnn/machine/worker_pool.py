"""Other machines' processors for pieces of a stage's work, where a run has them; without, everything happens here.

In: a function that a process elsewhere can import, and the arguments of each piece. Out: what it gives for each piece,
as it comes. The idea: whoever can cut work into pieces asks `worker_pool()`; None means one machine, and no pieces.
`cluster/` opens a pool for a run. Pieces are taken, not dealt: a slow machine gets fewer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import current_workers, use_workers

__all__ = ["WorkerPool", "by_all_workers", "processor_pool", "ranges_for", "using_pool", "wider_pool", "worker_pool"]

_Result = TypeVar("_Result")
_PIECES_EACH = 4  # so that nobody waits long for the last one


class WorkerPool(Protocol):
    """Processors elsewhere."""

    @property
    def num_workers(self) -> int:
        """Pieces that can be worked on at the same time."""
        ...

    @property
    def device(self) -> str:
        """The device of a worker: cpu or cuda."""
        ...

    def on_processors(self) -> WorkerPool:
        """The same machines, a worker for each processor, whatever GPUs there are."""
        ...

    def share(self, value: object) -> Any:
        """A value that many pieces need, sent to each machine once; handed over in its place as an argument."""
        ...

    def run(self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, _Result]]:
        """The number of each piece and what `function` gives for its arguments, in the order they are done."""
        ...


class _AsWorkers:
    """A pool behind the hook of `pieces`."""

    def __init__(self, pool: WorkerPool) -> None:
        self.pool, self.num_workers, self.device = pool, pool.num_workers, pool.device

    def on_processors(self) -> _AsWorkers:
        return _AsWorkers(self.pool.on_processors())

    def map(self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]], shared: Any) -> Iterator[Any]:
        handles = [self.pool.share(value) for value in shared]
        found = dict(self.pool.run(function, ((*piece, *handles) for piece in pieces)))
        return (found[number] for number in range(len(found)))

    def training(self, options: Any, num_relations: int) -> Any:
        raise NotImplementedError


def worker_pool() -> WorkerPool | None:
    """The pool of this run, if it has one."""
    workers: Any = current_workers()
    pool: WorkerPool | None = getattr(workers, "pool", workers)
    return pool


def processor_pool() -> WorkerPool | None:
    """The pool of this run, if it has one, for work that no GPU can do."""
    pool = worker_pool()
    return None if pool is None else pool.on_processors()


def wider_pool() -> WorkerPool | None:
    """The same, if it has more processors than this machine: for work that uses all of those here."""
    pool = processor_pool()
    return pool if pool is not None and pool.num_workers > num_processors() else None


@contextlib.contextmanager
def using_pool(pool: WorkerPool) -> Iterator[None]:
    """Give pieces to this pool inside the `with`."""
    workers: Any = pool if hasattr(pool, "map") else _AsWorkers(pool)
    with use_workers(workers):
        yield


def ranges_for(pool: WorkerPool, count: int) -> list[tuple[int, int]]:
    """Where each of some ranges of rows begins and ends, a few for each worker."""
    size = max(1, -(-count // (_PIECES_EACH * pool.num_workers)))
    return [(start, min(start + size, count)) for start in range(0, count, size)]


def by_all_workers(
    pool: WorkerPool, function: Callable[..., _Result], pieces: Sequence[tuple[Any, ...]], *shared: Any
) -> list[_Result]:
    """What `function` gives for the arguments of each piece and those that all have, in the order of the pieces."""
    found = dict(pool.run(function, ((*piece, *shared) for piece in pieces)))
    return [found[number] for number in range(len(pieces))]
