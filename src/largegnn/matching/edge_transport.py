"""Balance the scores of candidate edges against each other by optimal transport (Sinkhorn), without a full matrix.

In: edges ascending by row, then column, with a score each, higher is closer. Out: the logarithm of the plan of each.
The idea: K = exp(score / temperature) is divided by its row sums and column sums in turn. `transport_edges` does what
`transport.py` does, where a full matrix would be too large. In `partial_plan` each sum also holds one entry for "no
counterpart", the same for all entities, so that each may also stay alone: the plan lies between 0 and 1 and is read as
a certainty, and those of one entity add up to at most 1.
The largest score of each row is taken off first, so that nothing overflows. K is kept twice, by row and by column
(`EdgeKernel`): every sum is made by one processor, in one order, and has the same bits however many there are.
Cost: linear in the edges for each step, by all processors; `partial_plan` takes 12 bytes an edge, `transport_edges` 40.

# Departs: not in the paper. The entry for "no counterpart" is that of SuperGlue (Sarlin et al., 2020), at a fixed price
#     in place of a capacity, as in unbalanced transport.
# Departs: scipy's products are of one thread; with ten and more a transport over a million entities is 5 times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.matching.transport import check_settings

__all__ = ["EdgeKernel", "offsets_of", "partial_plan", "transport_edges"]

Vector = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating[Any]]

_PIECE = 1 << 16  # rows that are prepared at once, some of their numbers in float64
_FARTHEST = 100.0  # of a dual, before it becomes a part of K
_LARGEST = 600.0  # of an exponent, for exp to stay in float64
_FIRST_MOVE = 2.0  # of `none` towards the number of links, in temperatures: longer while it goes on, halved at a turn
_FARTHEST_MOVE = (-8.0, 25.0)  # of `none` from its start: where all are linked the number is never reached


def transport_edges(
    rows: IntArray,
    columns: IntArray,
    scores: npt.NDArray[Any],
    shape: tuple[int, int],
    temperature: float = 0.02,
    iterations: int = 30,
) -> FloatArray:
    """The log-plan (e,) float32 of edges given by their rows, columns and scores (e,); -inf is "no candidate".

    Rows and columns without an edge, or with edges of -inf only, take part in nothing.
    """
    check_settings(temperature, iterations)
    _check_edges(rows, columns, scores, shape)
    ptr, logits = offsets_of(rows, shape[0]), scores.astype(np.float64)
    if not bool((logits < np.inf).all()):
        raise ArtifactError("a score to transport is NaN or infinite")

    def lower(first: int, last: int) -> None:
        here = slice(ptr[first], ptr[last])
        part = logits[here] / temperature
        tops = _row_tops(part, ptr[first : last + 1])
        tops[tops == -np.inf] = 0.0
        logits[here] = part - np.repeat(tops, np.diff(ptr[first : last + 1]))

    _by_rows(lower, shape[0])
    has_row, has_column = np.zeros(shape[0], dtype=bool), np.zeros(shape[1], dtype=bool)
    used = logits > -np.inf
    has_row[rows[used]] = has_column[columns[used]] = True
    # With the largest of each column taken off as well, every row and every column holds a 1. The first division is by
    # the sums of the rows alone, hence by columns with these factors.
    column_duals = np.full(shape[1], -np.inf)
    np.maximum.at(column_duals, columns, logits)
    column_duals[~has_column] = 0.0
    row_duals = np.zeros(shape[0])
    logits -= column_duals[columns]
    kernel = EdgeKernel(_exp_of(logits), ptr, columns, shape[1])
    for step in range(iterations):
        row_duals = _minus_log(kernel.times_columns(np.exp(column_duals)), has_row)
        column_duals = _minus_log(kernel.times_rows(np.exp(row_duals)), has_column)
        farthest = max(np.abs(row_duals).max(initial=0.0), np.abs(column_duals).max(initial=0.0))
        if farthest > _FARTHEST and step < iterations - 1:
            logits += row_duals[rows] + column_duals[columns]
            kernel.set_values(_exp_of(logits))
            row_duals[:], column_duals[:] = 0.0, 0.0
    logits += row_duals[rows] + column_duals[columns]
    return logits.astype(np.float32)


def partial_plan(
    graph: CandidateGraph,
    scores: FloatArray,
    temperature: float = 0.02,
    iterations: int = 30,
    none: float = 0.0,
    num_links: float | None = None,
) -> FloatArray:
    """The logarithm of the plan of each edge (e,), by scores that are half of a CSLS in most uses.

    A pair whose score is below `none` gets little mass: CSLS is 0 where an entity is no nearer than the nearest
    neighbours of both ends are on average. `num_links` is how much the plan should hold in all, if that is known: then
    `none` moves in each step until it does.
    """
    if not len(graph):
        return np.empty(0, dtype=np.float32)
    first = int(graph.targets.min())
    num_rows = int(graph.sources[-1]) + 1
    ptr = offsets_of(graph.sources, num_rows)
    # Both the kernel and, in the end, the plan: at a billion edges every array counts.
    values, tops = np.empty(len(graph), dtype=np.float32), np.zeros(num_rows)

    def prepare(begin: int, end: int) -> None:
        here = slice(ptr[begin], ptr[end])
        part = scores[here].astype(np.float64) / temperature
        tops[begin:end] = _row_tops(part, ptr[begin : end + 1])
        values[here] = np.exp(part - np.repeat(tops[begin:end], np.diff(ptr[begin : end + 1])))

    _by_rows(prepare, num_rows)
    num_columns = int(graph.targets.max()) - first + 1
    kernel = EdgeKernel(values, ptr, graph.targets, num_columns, first)
    price = start = none / temperature / 2  # half of `none` at either end
    move = _FIRST_MOVE
    rows, columns = np.zeros(num_rows), np.zeros(num_columns)  # logarithms
    row_factors, column_factors = np.ones(num_rows), np.ones(num_columns)
    for _ in range(iterations):
        _divide(kernel.times_columns(column_factors), price - tops, rows, row_factors)
        _divide(kernel.times_rows(row_factors), np.full(1, price), columns, column_factors)
        if num_links is not None and num_links > 0:
            held = num_columns - float(np.exp(columns + price).sum())
            # More than there are: to have no counterpart must cost less.
            move = abs(move) * (1 if held > num_links else -1) * (1.2 if (move > 0) == (held > num_links) else 0.5)
            price = min(max(price + move, start + _FARTHEST_MOVE[0]), start + _FARTHEST_MOVE[1])

    def finish(begin: int, end: int) -> None:
        # From the scores: sums of K in float32 are precise enough, the plan is not.
        here, sizes = slice(ptr[begin], ptr[end]), np.diff(ptr[begin : end + 1])
        logits = scores[here].astype(np.float64) / temperature - np.repeat(tops[begin:end], sizes)
        values[here] = logits + np.repeat(rows[begin:end], sizes) + columns[graph.targets[here] - first]

    _by_rows(finish, num_rows)
    return values


class EdgeKernel:
    """A sparse matrix: values (e,) at the edges of rows `ptr` (q + 1,) and `columns` (e,), from `first_column` on.

    It is multiplied by vectors from both sides, many times. Sums are of float64, whatever the values are. Turning it,
    every processor reads all columns and keeps its own range.
    """

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


def _check_edges(rows: IntArray, columns: IntArray, scores: npt.NDArray[Any], shape: tuple[int, int]) -> None:
    if rows.ndim != 1 or not rows.shape == columns.shape == scores.shape:
        raise ArtifactError(f"edges need (e,) rows, columns, scores, not {rows.shape}, {columns.shape}, {scores.shape}")
    for ends, size in zip((rows, columns), shape, strict=True):
        if len(ends) and not 0 <= ends.min() <= ends.max() < size:
            raise ArtifactError(f"an edge between {ends.min()} and {ends.max()} leaves a side of {size}")
    steps = np.diff(rows)
    if bool((steps < 0).any()) or bool((np.diff(columns)[steps == 0] <= 0).any()):
        raise ArtifactError("edges to transport must be strictly ascending by row, then column")


def _by_rows(work: Callable[[int, int], None], number: int) -> None:
    by_all_processors(work, number, min(piece_size(number), _PIECE))


def _row_tops(values: Vector, ptr: IntArray) -> Vector:
    """The largest value of each row, 0 for rows without any."""
    starts, sizes = ptr[:-1] - ptr[0], np.diff(ptr)
    tops = np.zeros(len(sizes))
    if len(values):
        tops[sizes > 0] = np.maximum.reduceat(values, starts[sizes > 0])
    return tops


def _exp_of(logits: Vector) -> Vector:
    found = np.empty(len(logits))
    by_all_processors(
        lambda first, last: np.exp(logits[first:last], out=found[first:last]), len(logits), piece_size(len(logits))
    )
    return found


def _minus_log(sums: Vector, used: npt.NDArray[np.bool_]) -> Vector:
    """The duals that undo sums (n,): 0 where a node is not used."""
    duals: Vector = -np.log(sums, out=np.zeros_like(sums), where=used)
    return duals


def _divide(sums: Vector, none: Vector, logarithms: Vector, factors: Vector) -> None:
    """Divide by the sums (q,) and the entry for none, (q,) or (1,) as a logarithm: fill in logarithms and factors."""

    def divide(begin: int, end: int) -> None:
        own = none if len(none) == 1 else none[begin:end]
        np.log(sums[begin:end] + np.exp(np.minimum(own, _LARGEST)), out=logarithms[begin:end])
        np.negative(logarithms[begin:end], out=logarithms[begin:end])
        np.exp(logarithms[begin:end], out=factors[begin:end])

    by_all_processors(divide, len(sums), piece_size(len(sums)))


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
