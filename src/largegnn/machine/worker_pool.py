"""Other machines' processors for pieces of a stage's work, where a run has them; without, everything happens here.

In: a function that a process elsewhere can import, and the arguments of each piece. Out: what it gives for each piece,
as it comes. The idea: whoever can cut work into pieces asks `worker_pool()`; None means one machine, and no pieces.
`cluster/` opens a pool for a run. Pieces are taken, not dealt: a slow machine gets fewer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

__all__ = ["WorkerPool", "processor_pool", "using_pool", "worker_pool"]

_Result = TypeVar("_Result")


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


@contextlib.contextmanager
def using_pool(pool: WorkerPool) -> Iterator[None]:
    """Give pieces to this pool inside the `with`."""
    before = _pool.set(pool)
    try:
        yield
    finally:
        _pool.reset(before)
