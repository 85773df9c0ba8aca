"""Other machines' processors for pieces of a stage's work, where a run has them; without, everything happens here.

In: a function that a process elsewhere can import, and the arguments of each piece. Out: what it gives for each piece,
as it comes. The idea: whoever can cut work into pieces asks `worker_pool()`; None means one machine, and no pieces.
`cluster/` opens a pool for a run. Pieces are taken, not dealt: a slow machine gets fewer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from largegnn.machine.devices import num_processors

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


_pool: ContextVar[WorkerPool | None] = ContextVar("worker_pool", default=None)


def worker_pool() -> WorkerPool | None:
    """The pool of this run, if it has one."""
    return _pool.get()


def processor_pool() -> WorkerPool | None:
    """The pool of this run, if it has one, for work that no GPU can do."""
    pool = _pool.get()
    return None if pool is None else pool.on_processors()


def wider_pool() -> WorkerPool | None:
    """The same, if it has more processors than this machine: for work that uses all of those here."""
    pool = processor_pool()
    return pool if pool is not None and pool.num_workers > num_processors() else None


@contextlib.contextmanager
def using_pool(pool: WorkerPool) -> Iterator[None]:
    """Give pieces to this pool inside the `with`."""
    before = _pool.set(pool)
    try:
        yield
    finally:
        _pool.reset(before)


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
