"""A range of rows in pieces, by all processors: for loops that are compiled and run without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from largegnn.machine.devices import num_processors

__all__ = ["by_all_processors", "piece_size", "pieces"]

_PIECES_EACH = 4  # so that a processor that was given little is given more
_SMALL = 1 << 14  # rows that are not worth cutting

_Result = TypeVar("_Result")


def pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Where each piece of at most `size` rows begins and ends."""
    return ((start, min(start + size, count)) for start in range(0, count, size))


def piece_size(count: int) -> int:
    """Rows in a piece such that each processor takes a few, for work that needs tables of its own for every piece."""
    return max(_SMALL, -(-count // (_PIECES_EACH * num_processors())))


def by_all_processors(work: Callable[[int, int], _Result], count: int, size: int) -> list[_Result]:
    """What `work` gives for each piece, in their order; pieces are taken, not dealt."""
    if count <= size:  # no thread is started for one piece
        return [work(0, count)] if count else []
    with ThreadPoolExecutor(num_processors()) as pool:
        return list(pool.map(lambda piece: work(*piece), pieces(count, size)))
