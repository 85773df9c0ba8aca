"""A sparse matrix over candidate edges that is multiplied by vectors from both sides, many times, by all processors.

In: the edges in the order of their rows, a number for each. Out: products with a vector of columns, or of rows.
The idea: the numbers are kept twice, by row and by column, so that every sum is made by one processor alone, in one
order: the result has the same bits however many there are.
Cost: linear in the edges for each product. Building it, every processor reads all columns and keeps its own range.
Memory: 24 bytes an edge.

# Departs: scipy's products are of one thread; with ten and more a transport over a million entities is 5 times faster.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors, piece_size

__all__ = ["EdgeKernel"]

Vector = npt.NDArray[np.float64]


class EdgeKernel:
    """Values (e,) at the edges of rows `ptr` (q + 1,) and `columns` (e,), of which there are `num_columns`."""

    def __init__(self, values: Vector, ptr: IntArray, columns: IntArray, num_columns: int) -> None:
        self._ptr = np.asarray(ptr, dtype=np.int64)
        self._columns = np.asarray(columns, dtype=np.int32)
        sizes = np.bincount(self._columns, minlength=num_columns)
        self._column_ptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        self._rows = np.empty(len(columns), dtype=np.int32)
        self._edges = np.empty(len(columns), dtype=np.int32 if len(columns) < 2**31 else np.int64)
        free = self._column_ptr[:-1].copy()

        def turn(first: int, last: int) -> None:
            _turn(first, last, self._ptr, self._columns, free, self._rows, self._edges)

        by_all_processors(turn, num_columns, max(1, -(-num_columns // num_processors())))
        self.set_values(values)

    def set_values(self, values: Vector) -> None:
        """Other values (e,) at the same edges."""
        self._values, self._by_column = values, np.empty(len(values))
        by_all_processors(
            lambda first, last: _take(first, last, values, self._edges, self._by_column),
            len(values),
            piece_size(len(values)),
        )

    def times_columns(self, factors: Vector) -> Vector:
        """The sum of each row (q,), each edge counted by the factor of its column (c,)."""
        return _sums(self._ptr, self._columns, self._values, factors)

    def times_rows(self, factors: Vector) -> Vector:
        """The sum of each column (c,), each edge counted by the factor of its row (q,)."""
        return _sums(self._column_ptr, self._rows, self._by_column, factors)


def _sums(ptr: IntArray, others: IntArray, values: Vector, factors: Vector) -> Vector:
    result = np.empty(len(ptr) - 1)
    by_all_processors(
        lambda first, last: _add_up(first, last, ptr, others, values, factors, result),
        len(result),
        piece_size(len(result)),
    )
    return result


@compiled
def _turn(
    first: int, last: int, ptr: IntArray, columns: IntArray, free: IntArray, rows: IntArray, edges: IntArray
) -> None:
    """List the edges of the columns from `first` to `last`, ascending by row."""
    for row in range(len(ptr) - 1):
        for edge in range(ptr[row], ptr[row + 1]):
            column = columns[edge]
            if first <= column < last:
                rows[free[column]] = row
                edges[free[column]] = edge
                free[column] += 1


@compiled
def _take(first: int, last: int, values: Vector, edges: IntArray, taken: Vector) -> None:
    for index in range(first, last):
        taken[index] = values[edges[index]]


@compiled
def _add_up(
    first: int, last: int, ptr: IntArray, others: IntArray, values: Vector, factors: Vector, sums: Vector
) -> None:
    for row in range(first, last):
        total = 0.0
        for edge in range(ptr[row], ptr[row + 1]):
            total += values[edge] * factors[others[edge]]
        sums[row] = total
