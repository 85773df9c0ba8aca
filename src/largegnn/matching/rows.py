"""Handle rows of different lengths that are stored one after the other: row i is at `ptr[i]` to `ptr[i + 1]`."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled

__all__ = ["entries_of", "lower_bound", "offsets"]


def offsets(rows: IntArray, number: int, first: int = 0) -> IntArray:
    """Compute where each row begins, and the last ends, (n + 1,), if entries are sorted by their `rows` (e,).

    Rows are numbered from `first` on. They are counted without the copy that `np.bincount` makes.
    """
    ptr = np.zeros(number + 1, dtype=np.int64)
    _count(rows, first, ptr[1:])
    return np.cumsum(ptr)


def entries_of(begins: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """List all entries of the ranges `begins` to `ends` (k,): the number of the range, and the entry."""
    sizes = ends - begins
    ranges = np.repeat(np.arange(len(sizes)), sizes)
    skipped = np.cumsum(sizes) - sizes
    return ranges, np.arange(len(ranges)) + (begins - skipped)[ranges]


@compiled
def lower_bound(row: IntArray, begin: int, end: int, wanted: int) -> int:
    """Find the first index of an ascending row, from `begin` to `end`, whose value is at least `wanted`."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if row[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _count(rows: IntArray, first: int, sizes: IntArray) -> None:
    for entry in range(len(rows)):
        sizes[rows[entry] - first] += 1
