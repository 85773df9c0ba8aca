"""Map a function over pieces of work: by threads of this machine, or by the workers of a cluster.

In: a function, the arguments of each piece, and those that all pieces share. Out: the results, in the order of the
pieces. This is the one hook for clusters: `cluster/` installs its workers with `use_workers`, and no caller of
`map_pieces` knows where its pieces are computed. Threads suit functions that run without the interpreter's lock (numpy,
PyTorch, compiled loops). An idle worker takes the next piece, so a slow one gets fewer. Pieces are made when their turn
comes: the arguments and results of a few are in memory, not of all.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol, TypeVar

from largegnn.machine.devices import num_processors

__all__ = [
    "Workers",
    "by_all_processors",
    "current_workers",
    "in_background",
    "map_pieces",
    "num_workers",
    "piece_device",
    "piece_size",
    "pieces",
    "use_workers",
]

_PIECES_EACH = 4  # so that a worker that was given little is given more
_SMALL = 1 << 14  # rows that are not worth cutting
_MANY_PROCESSORS = 8

_Result = TypeVar("_Result")


class Workers(Protocol):
    """The workers of a cluster."""

    @property
    def num_workers(self) -> int:
        """How many pieces are computed at the same time."""
        ...

    @property
    def device(self) -> str:
        """The device of each worker: cpu or cuda."""
        ...

    def on_processors(self) -> Workers:
        """The same machines with one worker for each processor, whatever GPUs they have."""
        ...

    def map(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """`function(*piece, *shared)` for each piece, in their order, a bounded number of them under way."""
        ...

    @property
    def num_nodes(self) -> int:
        """How many machines there are."""
        ...

    @property
    def num_visitors(self) -> int:
        """How many workers a training has."""
        ...

    def visits(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """As `map`, with the device and the number of threads as last arguments, and few pieces under way.

        A piece is made when its turn comes, so that it may depend on the results before.
        """
        ...


_current: contextvars.ContextVar[Workers | None] = contextvars.ContextVar("workers", default=None)


@contextlib.contextmanager
def use_workers(workers: Workers) -> Iterator[None]:
    """Compute pieces by these workers inside the `with`."""
    before = _current.set(workers)
    try:
        yield
    finally:
        _current.reset(before)


def current_workers() -> Workers | None:
    """The workers in use, if any."""
    return _current.get()


def map_pieces(
    function: Callable[..., _Result],
    pieces: Iterable[tuple[Any, ...]],
    *shared: Any,
    send: bool = True,
    gpus: bool = False,
    own_threads: bool = False,
) -> Iterator[_Result]:
    """Compute `function(*piece, *shared)` for each piece, and give the results in the order of the pieces.

    `function` is one that another process can import. With `send=False` the pieces stay on this machine, for work too
    small to be worth sending. `gpus` means that a GPU does the work faster: workers with one are preferred. With
    `own_threads` the function uses all processors by itself: the pieces of this machine are computed one by one.
    """
    workers = _workers(gpus) if send else None
    if workers is not None:
        return workers.map(function, pieces, shared)
    if own_threads:
        return (function(*piece, *shared) for piece in pieces)
    return _by_threads(function, pieces, shared)


def num_workers(send: bool = True, gpus: bool = False, own_threads: bool = False) -> int:
    """How many pieces `map_pieces` computes at the same time."""
    workers = _workers(gpus) if send else None
    if workers is not None:
        return workers.num_workers
    return 1 if own_threads else num_processors()


def piece_device(device: str, send: bool = True) -> str:
    """The device on which `map_pieces(gpus=True)` computes: that of the workers, or `device` on this machine."""
    workers = _workers(gpus=True) if send else None
    return device if workers is None else workers.device


def pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each piece of at most `size` rows begins and ends."""
    return ((start, min(start + size, count)) for start in range(0, count, size))


def piece_size(count: int, send: bool = False) -> int:
    """Rows in a piece such that each worker takes a few, for work that needs tables of its own for every piece."""
    return max(_SMALL, -(-count // (_PIECES_EACH * num_workers(send))))


def by_all_processors(work: Callable[[int, int], _Result], count: int, size: int) -> list[_Result]:
    """The results of `work` for each piece of a range of rows, on this machine; it may be a closure."""
    return list(_by_threads(work, pieces(count, size), ()))


def in_background(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Start `work` in a thread, and return a function that waits for its result.

    Where processors are few, two things at once gain nothing and hold the memory of both: then the work is done when
    its result is wanted.
    """
    if num_processors() < _MANY_PROCESSORS:
        return work
    thread = ThreadPoolExecutor(1)
    started = thread.submit(contextvars.copy_context().run, work)
    thread.shutdown(wait=False)
    return started.result


def _workers(gpus: bool) -> Workers | None:
    """The workers in use, if they are faster than this machine."""
    workers = _current.get()
    if workers is None or (gpus and workers.device == "cuda"):
        return workers
    workers = workers.on_processors()
    return workers if workers.num_workers > num_processors() else None


def _by_threads(
    function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
) -> Iterator[_Result]:
    numbered = iter(pieces)
    first = list(islice(numbered, 2))
    if len(first) < 2:  # no thread is started for one piece
        yield from (function(*piece, *shared) for piece in first)
        return
    with ThreadPoolExecutor(num_processors()) as pool:
        started: deque[Future[_Result]] = deque(pool.submit(function, *piece, *shared) for piece in first)
        try:
            while started:
                for piece in islice(numbered, _PIECES_EACH * num_processors() - len(started)):
                    started.append(pool.submit(function, *piece, *shared))
                yield started.popleft().result()
        finally:
            for each in started:
                each.cancel()
