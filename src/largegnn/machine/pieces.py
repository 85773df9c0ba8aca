"""Map a function over pieces of work: by the processors of this machine, or by the workers of a cluster.

In: a function, the arguments of each piece, and those that all pieces share. Out: the results, in the order of the
pieces. The one hook behind which a cluster works: no caller knows where its pieces are computed. Threads suit functions
that run without the interpreter's lock (numpy, PyTorch, compiled loops). Pieces are taken, not dealt, so that a slow
worker gets fewer; they are made when their turn comes, so that the arguments of a few are in memory, not of all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, TypeVar

from largegnn.machine.devices import num_processors
from largegnn.machine.worker_pool import WorkerPool, worker_pool

__all__ = ["by_all_processors", "map_pieces", "num_workers", "piece_device", "piece_size", "pieces"]

_PIECES_EACH = 4  # so that a worker that was given little is given more
_SMALL = 1 << 14  # rows that are not worth cutting

_Result = TypeVar("_Result")


def map_pieces(
    function: Callable[..., _Result],
    pieces: Iterable[tuple[Any, ...]],
    *shared: Any,
    send: bool = True,
    gpus: bool = False,
    own_threads: bool = False,
) -> Iterator[_Result]:
    """What `function(*piece, *shared)` gives for each piece, in their order.

    `function` is one that another process can import. With `send=False` the pieces stay on this machine: they are too
    small to be worth the way. `gpus` says that a GPU does the work faster: workers with one are preferred. With
    `own_threads` the function uses all processors of a machine by itself: here its pieces come one after the other.
    """
    workers = _workers(gpus) if send else None
    if workers is None and own_threads:
        yield from (function(*piece, *shared) for piece in pieces)
        return
    if workers is None:
        yield from _by_threads(function, pieces, shared)
        return
    handles = [workers.share(value) for value in shared]
    results: dict[int, _Result] = {}
    following = 0
    for number, result in workers.run(function, ((*piece, *handles) for piece in pieces)):
        results[number] = result
        while following in results:
            yield results.pop(following)
            following += 1


def num_workers(send: bool = True, gpus: bool = False, own_threads: bool = False) -> int:
    """How many pieces `map_pieces` computes at the same time."""
    workers = _workers(gpus) if send else None
    if workers is None:
        return 1 if own_threads else num_processors()
    return workers.num_workers


def piece_device(device: str, send: bool = True) -> str:
    """Where `map_pieces(gpus=True)` computes: on this `device`, or on that of the workers."""
    workers = _workers(gpus=True) if send else None
    return device if workers is None else workers.device


def pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each piece of at most `size` rows begins and ends."""
    return ((start, min(start + size, count)) for start in range(0, count, size))


def piece_size(count: int, send: bool = False) -> int:
    """Rows in a piece such that each worker takes a few, for work that needs tables of its own for every piece."""
    return max(_SMALL, -(-count // (_PIECES_EACH * num_workers(send))))


def by_all_processors(work: Callable[[int, int], _Result], count: int, size: int) -> list[_Result]:
    """What `work` gives for each piece of a range of rows, on this machine; it may be a closure."""
    return list(_by_threads(work, pieces(count, size), ()))


def _workers(gpus: bool) -> WorkerPool | None:
    """The workers of a cluster, if the run has one that is faster than this machine."""
    pool = worker_pool()
    if pool is None or (gpus and pool.device == "cuda"):
        return pool
    pool = pool.on_processors()
    return pool if pool.num_workers > num_processors() else None


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
