"""Map a function over pieces of work, in parallel: by threads of this machine, or by the workers of a cluster.

In: a function, the arguments of each piece, and arguments that all pieces share. Out: the results, in the order of the
pieces. This is the only interface to clusters: `cluster/` installs its workers with `use_workers`, and no caller of
`map_pieces` knows where its pieces are computed. Threads suit functions that release the GIL (numpy, PyTorch, compiled
loops). An idle worker takes the next piece, so that slow workers get fewer pieces. Pieces are made when their turn
comes, so that only the arguments and results of a few pieces are in memory.
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

_PIECES_PER_WORKER = 4  # several, so that fast workers take more of them
_MIN_ROWS = 1 << 14  # of a piece; fewer are not worth dividing
_MIN_BACKGROUND_PROCESSORS = 8  # for work in the background

_Result = TypeVar("_Result")


class Workers(Protocol):
    """The workers of a cluster."""

    @property
    def num_workers(self) -> int:
        """The number of pieces that are computed at the same time."""
        ...

    @property
    def device(self) -> str:
        """The device of each worker: cpu or cuda."""
        ...

    def on_processors(self) -> Workers:
        """Workers of the same machines, one for each processor; GPUs are not used."""
        ...

    def map(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """Compute `function(*piece, *shared)` for each piece, in order; a bounded number of pieces is in progress."""
        ...

    @property
    def num_nodes(self) -> int:
        """The number of machines."""
        ...

    @property
    def num_visitors(self) -> int:
        """The number of workers that train visits of subgraphs."""
        ...

    def visits(
        self, function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
    ) -> Iterator[_Result]:
        """Compute pieces as `map` does, with the device and the number of threads as last arguments of `function`.

        Few pieces are in progress. A piece is made when its turn comes, so that it may depend on earlier results.
        """
        ...


_current: contextvars.ContextVar[Workers | None] = contextvars.ContextVar("workers", default=None)


@contextlib.contextmanager
def use_workers(workers: Workers) -> Iterator[None]:
    """Let `map_pieces` use these workers inside the `with` block."""
    token = _current.set(workers)
    try:
        yield
    finally:
        _current.reset(token)


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

    Another process must be able to import `function`. With `send=False` the pieces stay on this machine, for work that
    is too small to be worth sending. `gpus` says that a GPU computes the pieces faster, so that workers with a GPU are
    preferred. `own_threads` says that `function` itself uses all processors, so that this machine computes one piece at
    a time.
    """
    workers = _workers(gpus) if send else None
    if workers is not None:
        return workers.map(function, pieces, shared)
    if own_threads:
        return (function(*piece, *shared) for piece in pieces)
    return _by_threads(function, pieces, shared)


def num_workers(send: bool = True, gpus: bool = False, own_threads: bool = False) -> int:
    """The number of pieces that `map_pieces` computes at the same time, by its arguments."""
    workers = _workers(gpus) if send else None
    if workers is not None:
        return workers.num_workers
    return 1 if own_threads else num_processors()


def piece_device(device: str, send: bool = True) -> str:
    """The device on which `map_pieces(gpus=True)` computes: the device of the workers, or `device` on this machine."""
    workers = _workers(gpus=True) if send else None
    return device if workers is None else workers.device


def pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Split `count` rows into pieces (start, end) of at most `size` rows."""
    return ((start, min(start + size, count)) for start in range(0, count, size))


def piece_size(count: int, send: bool = False) -> int:
    """The number of rows in a piece such that each worker takes a few, for functions with a set-up cost per piece."""
    return max(_MIN_ROWS, -(-count // (_PIECES_PER_WORKER * num_workers(send))))


def by_all_processors(work: Callable[[int, int], _Result], count: int, size: int) -> list[_Result]:
    """Compute `work(start, end)` for each piece of `count` rows, on this machine; `work` may be a closure."""
    return list(_by_threads(work, pieces(count, size), ()))


def in_background(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Start `work` in a thread, and return a function that waits for its result.

    With few processors nothing is gained by two computations at the same time, which need the memory of both; then the
    returned function does the work itself.
    """
    if num_processors() < _MIN_BACKGROUND_PROCESSORS:
        return work
    thread = ThreadPoolExecutor(1)
    started = thread.submit(contextvars.copy_context().run, work)
    thread.shutdown(wait=False)
    return started.result


def _workers(gpus: bool) -> Workers | None:
    """The workers in use if they are faster than this machine, else None."""
    workers = _current.get()
    if workers is None or (gpus and workers.device == "cuda"):
        return workers
    workers = workers.on_processors()
    return workers if workers.num_workers > num_processors() else None


def _by_threads(
    function: Callable[..., _Result], pieces: Iterable[tuple[Any, ...]], shared: tuple[Any, ...]
) -> Iterator[_Result]:
    """Compute the pieces by threads, some pieces for each thread in advance."""
    remaining = iter(pieces)
    first = list(islice(remaining, 2))
    if len(first) < 2:  # a single piece needs no thread
        yield from (function(*piece, *shared) for piece in first)
        return
    with ThreadPoolExecutor(num_processors()) as pool:
        started: deque[Future[_Result]] = deque(pool.submit(function, *piece, *shared) for piece in first)
        try:
            while started:
                for piece in islice(remaining, _PIECES_PER_WORKER * num_processors() - len(started)):
                    started.append(pool.submit(function, *piece, *shared))
                yield started.popleft().result()
        finally:
            for future in started:
                future.cancel()
