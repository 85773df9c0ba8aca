"""A sparse matrix over candidate edges that is multiplied by vectors from both sides, many times, by all processors.

In: the edges in the order of their rows, a number for each. Out: products with a vector of columns, or of rows.
The idea: the numbers are kept twice, by row and by column, so that every sum is made by one processor alone, in one
order: the result has the same bits however many there are. Sums are of float64, whatever the numbers are.
Cost: linear in the edges for each product. Turning it, every processor reads all columns and keeps its own range.
Memory: for each edge the number once more and 4 bytes, beside what is given.

# Departs: scipy's products are of one thread; with ten and more a transport over a million entities is 5 times faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors, piece_size

__all__ = ["EdgeKernel", "offsets_of"]

Vector = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating[Any]]


class EdgeKernel:
    """Values (e,) at the edges of rows `ptr` (q + 1,) and `columns` (e,), numbered from `first_column` on."""

    def __init__(
        self, values: Values, ptr: IntArray, columns: IntArray, num_columns: int, first_column: int = 0
    ) -> None:
        self._ptr = np.asarray(ptr, dtype=np.int64)
        self._columns, self._first = np.asarray(columns, dtype=np.int32), first_column
        self._column_ptr = offsets_of(self._columns, num_columns, first_column)
        self._rows = np.empty(len(columns), dtype=np.int32)
        self._by_column = np.empty(len(columns), dtype=values.dtype)
        self.set_values(values)

    def set_values(self, values: Values) -> None:
        """Other values (e,) at the same edges."""
        self._values = values
        free, num_columns = self._column_ptr[:-1].copy(), len(self._column_ptr) - 1

        def turn(first: int, last: int) -> None:
            _turn(first, last, self._ptr, self._columns, self._first, values, free, self._rows, self._by_column)

        by_all_processors(turn, num_columns, max(1, -(-num_columns // num_processors())))

    def times_columns(self, factors: Vector) -> Vector:
        """The sum of each row (q,), each edge counted by the factor of its column (c,)."""
        return _sums(self._ptr, self._columns, self._first, self._values, factors)

    def times_rows(self, factors: Vector) -> Vector:
        """The sum of each column (c,), each edge counted by the factor of its row (q,)."""
        return _sums(self._column_ptr, self._rows, 0, self._by_column, factors)


def offsets_of(ends: IntArray, number: int, first: int = 0) -> IntArray:
    """Where the edges of each end would begin, were they in order of their `ends` (e,), and the last ends (n + 1,).

    Ends are numbered from `first` on. Counted without a copy of them, which `np.bincount` makes.
    """
    offsets = np.zeros(number + 1, dtype=np.int64)
    _count(ends, first, offsets[1:])
    return np.cumsum(offsets)


def _sums(ptr: IntArray, others: IntArray, first_other: int, values: Values, factors: Vector) -> Vector:
    result = np.empty(len(ptr) - 1)
    by_all_processors(
        lambda first, last: _add_up(first, last, ptr, others, first_other, values, factors, result),
        len(result),
        piece_size(len(result)),
    )
    return result


@compiled
def _count(ends: IntArray, first: int, sizes: IntArray) -> None:
    for edge in range(len(ends)):
        sizes[ends[edge] - first] += 1


@compiled
def _turn(
    first: int,
    last: int,
    ptr: IntArray,
    columns: IntArray,
    first_column: int,
    values: Values,
    free: IntArray,
    rows: IntArray,
    by_column: Values,
) -> None:
    """Note the edges of the columns from `first` to `last`, ascending by row."""
    for row in range(len(ptr) - 1):
        for edge in range(ptr[row], ptr[row + 1]):
            column = columns[edge] - first_column
            if first <= column < last:
                rows[free[column]] = row
                by_column[free[column]] = values[edge]
                free[column] += 1


@compiled
def _add_up(
    first: int,
    last: int,
    ptr: IntArray,
    others: IntArray,
    first_other: int,
    values: Values,
    factors: Vector,
    sums: Vector,
) -> None:
    for row in range(first, last):
        total = 0.0
        for edge in range(ptr[row], ptr[row + 1]):
            total += values[edge] * factors[others[edge] - first_other]
        sums[row] = total
