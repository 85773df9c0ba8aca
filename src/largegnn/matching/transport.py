"""Balance all scores between two sides by optimal transport, so that no candidate is the best of all (Sinkhorn).

In: scores, higher is closer, -inf is "no candidate"; of all pairs as a matrix (`transport_dense`, `dense_plan`), or of
candidate edges ascending by row, then column (`transport_edges`, `partial_plan`). Out: the logarithm of the transport
plan, to be ranked along rows and columns like scores.
The idea: K = exp(score / temperature) is divided by its row sums and column sums in turn; only the factors of rows and
columns change, so a step is two products of K with a vector. The largest of each row, then of each column, is taken off
first: every row and column of K holds a 1. Factors that grow large become a part of the scores, and K is computed anew;
after a division row sums are at most the number of columns, and so on, so one step cannot leave the range of numbers.
With different numbers of rows and columns not both can sum to 1: the last division is by columns.
In `partial_plan` each sum also holds one entry for "no counterpart", the same for all entities, so that each may also
stay alone: the plan lies between 0 and 1 and is read as a certainty, and those of one entity add up to at most 1.
Cost: for each step linear in the pairs or edges, by all processors. A pair takes 8 bytes, an edge 12 in `partial_plan`
and 40 in `transport_edges`. K of edges is kept twice, by row and by column, so that every sum is made by one processor.

# Departs: not in the paper. The entry for "no counterpart" is that of SuperGlue (Sarlin et al., 2020), at a fixed price
#     in place of a capacity, as in unbalanced transport.
# Departs: scipy's products are of one thread; with ten and more a transport over a million entities is 5 times faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.machine.precision import full_precision
from largegnn.matching.rows import offsets

__all__ = [
    "EdgeKernel",
    "cosine_matrix",
    "dense_plan",
    "fits_dense",
    "partial_plan",
    "transport_dense",
    "transport_edges",
]

Vector = npt.NDArray[np.float64]
Values = npt.NDArray[np.floating[Any]]

_MOST_ROWS = 50_000  # of either side; beyond, transport is left to the candidates
_MOST_BYTES = {"cpu": 6 << 30, "cuda": 32 << 30}  # of scores and their exponentials
_CHUNK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 28}  # of K, so that the second product finds it in the cache
_FARTHEST = 20.0  # of the logarithm of a factor, before it becomes a part of the scores
_LOWEST = -85.0  # of a logarithm: exp of less is no normal number of float32, and slow

_PIECE = 1 << 16  # rows that are prepared at once, some of their numbers in float64
_LARGEST = 600.0  # of an exponent, for exp to stay in float64
_FIRST_MOVE = 2.0  # of the price of no counterpart, as a logarithm: longer while it goes on, halved at a turn
_FARTHEST_PRICE = (-8.0, 25.0)  # where all are linked the number of links is never reached


def fits_dense(shape: tuple[int, int], device: torch.device, max_bytes: int | None = None) -> bool:
    """Whether a transport of so many rows and columns fits a device; main memory may be bounded further."""
    most = _MOST_BYTES[device.type]
    if max_bytes is not None and device.type == "cpu":
        most = min(most, max_bytes)
    return max(shape) <= _MOST_ROWS and 8 * shape[0] * shape[1] <= most


def cosine_matrix(left: FloatArray, right: FloatArray, device: torch.device) -> torch.Tensor:
    """Cosines (q, c) of rows (q, d) and (c, d), on the device."""
    with torch.no_grad(), full_precision():
        rows, columns = (
            torch.nn.functional.normalize(torch.from_numpy(np.array(side)).to(device), dim=1) for side in (left, right)
        )
        return rows @ columns.T


def dense_plan(
    left: FloatArray,
    right: FloatArray,
    edges: tuple[IntArray, IntArray],
    scores: FloatArray,
    temperature: float,
    iterations: int,
    device: torch.device,
    cosine_weight: float = 1.0,
) -> torch.Tensor:
    """The log-plan (q, c) of a transport over all cosines, with `scores` (e,) in place of those of the `edges`.

    `cosine_weight` is what a cosine counts in these scores: with it candidates and all others are on one scale.
    """
    matrix = cosine_matrix(left, right, device)
    if cosine_weight != 1.0:
        matrix *= cosine_weight
    rows, columns = (torch.from_numpy(np.array(ends, dtype=np.int64)).to(device) for ends in edges)
    matrix[rows, columns] = torch.from_numpy(np.array(scores, dtype=np.float32)).to(device)
    transport_dense(matrix, temperature, iterations)
    return matrix


def transport_dense(scores: Tensor, temperature: float = 0.02, iterations: int = 30) -> None:
    """Turn scores (q, c) float32 into the log-plan in place; a row or column of -inf takes part in nothing."""
    if not scores.numel():
        return
    with torch.no_grad(), full_precision():
        tops = scores.amax(dim=1, keepdim=True)
        _refuse(not bool((tops < torch.inf).all()))
        scores.sub_(tops.masked_fill_(tops == -torch.inf, 0.0)).div_(temperature)
        highest = scores.amax(dim=0)
        scores.sub_(highest.masked_fill_(highest == -torch.inf, 0.0))
        row_duals, column_duals = _balance(_Dense(scores), highest.double().cpu().numpy(), iterations)
        _add_duals(scores, row_duals, column_duals)


def transport_edges(
    rows: IntArray,
    columns: IntArray,
    scores: npt.NDArray[Any],
    shape: tuple[int, int],
    temperature: float = 0.02,
    iterations: int = 30,
) -> FloatArray:
    """The log-plan (e,) float32 of edges given by their rows, columns and scores (e,); see `transport_dense`."""
    _refuse(not bool((scores < np.inf).all()))
    ptr, logits = offsets(rows, shape[0]), scores.astype(np.float64)

    def lower(first: int, last: int) -> None:
        here = slice(ptr[first], ptr[last])
        part = logits[here] / temperature
        tops = _row_tops(part, ptr[first : last + 1])
        tops[tops == -np.inf] = 0.0
        logits[here] = part - np.repeat(tops, np.diff(ptr[first : last + 1]))

    _by_rows(lower, shape[0])
    highest = np.full(shape[1], -np.inf)
    np.maximum.at(highest, columns, logits)
    highest[highest == -np.inf] = 0.0
    logits -= highest[columns]
    row_duals, column_duals = _balance(_Edges(rows, columns, ptr, logits, shape[1]), highest, iterations)
    logits += row_duals[rows] + column_duals[columns]
    return logits.astype(np.float32)


def _refuse(is_wrong: bool) -> None:
    if is_wrong:
        raise ArtifactError("a score to transport is NaN or infinite")


def partial_plan(
    graph: CandidateGraph,
    scores: FloatArray,
    temperature: float = 0.02,
    iterations: int = 30,
    num_links: float | None = None,
) -> FloatArray:
    """The logarithm of the plan of each edge (e,), by scores that are half of a CSLS in most uses.

    A pair whose score is below 0 gets little mass: CSLS is 0 where an entity is no nearer than the nearest neighbours
    of both ends are on average. `num_links` is how much the plan should hold in all, if that is known: then the price
    of no counterpart moves in each step until it does.
    """
    if not len(graph):
        return np.empty(0, dtype=np.float32)
    first = int(graph.targets.min())
    num_rows = int(graph.sources[-1]) + 1
    ptr = offsets(graph.sources, num_rows)
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
    price, move = 0.0, _FIRST_MOVE
    rows, columns = np.zeros(num_rows), np.zeros(num_columns)  # logarithms
    row_factors, column_factors = np.ones(num_rows), np.ones(num_columns)
    for _ in range(iterations):
        _divide(kernel.times_columns(column_factors), price - tops, rows, row_factors)
        _divide(kernel.times_rows(row_factors), np.full(1, price), columns, column_factors)
        if num_links is not None and num_links > 0:
            held = num_columns - float(np.exp(columns + price).sum())
            # More than there are: to have no counterpart must cost less.
            move = abs(move) * (1 if held > num_links else -1) * (1.2 if (move > 0) == (held > num_links) else 0.5)
            price = min(max(price + move, _FARTHEST_PRICE[0]), _FARTHEST_PRICE[1])

    def finish(begin: int, end: int) -> None:
        # From the scores: sums of K in float32 are precise enough, the plan is not.
        here, sizes = slice(ptr[begin], ptr[end]), np.diff(ptr[begin : end + 1])
        logits = scores[here].astype(np.float64) / temperature - np.repeat(tops[begin:end], sizes)
        values[here] = logits + np.repeat(rows[begin:end], sizes) + columns[graph.targets[here] - first]

    _by_rows(finish, num_rows)
    return values


class _Kernel(Protocol):
    """K = exp(S), by which `_balance` divides; empty rows and columns have sums of 1."""

    def step(self, factors: Vector) -> tuple[Vector, Vector]:
        """The sums of the rows (q,), the columns counted by their `factors`; and those of the columns (c,) after."""
        ...

    def absorb(self, row_duals: Vector, column_duals: Vector) -> None:
        """Add the logarithms of factors to S, and compute K anew."""
        ...


def _balance(kernel: _Kernel, column_duals: Vector, iterations: int) -> tuple[Vector, Vector]:
    """Divide by rows and columns in turn; what is left to add to S. The columns have factors at first."""
    for step in range(iterations):
        row_duals, column_duals = (-np.log(sums) for sums in kernel.step(np.exp(column_duals)))
        farthest = max(np.abs(row_duals).max(initial=0.0), np.abs(column_duals).max(initial=0.0))
        if farthest > _FARTHEST and step < iterations - 1:
            kernel.absorb(row_duals, column_duals)
            row_duals, column_duals = np.zeros_like(row_duals), np.zeros_like(column_duals)
    return row_duals, column_duals


class _Dense:
    """A full matrix S (q, c) float32, changed in place, and K beside it."""

    def __init__(self, logits: Tensor) -> None:
        self._logits, self._values = logits, torch.empty_like(logits)
        size = max(1, _CHUNK_BYTES[logits.device.type] // (4 * logits.shape[1]))
        self._pieces = torch.split(self._values, size)
        self._exponentiate()

    def step(self, factors: Vector) -> tuple[Vector, Vector]:
        by_column = torch.from_numpy(factors).to(self._logits)
        row_sums, column_sums = [], torch.zeros_like(by_column)
        for piece in self._pieces:
            sums = torch.mv(piece, by_column)
            row_sums.append(sums.masked_fill_(sums == 0, 1.0))
            column_sums.addmv_(piece.T, sums.reciprocal())
        column_sums.masked_fill_(column_sums == 0, 1.0)
        return torch.cat(row_sums).double().cpu().numpy(), column_sums.double().cpu().numpy()

    def absorb(self, row_duals: Vector, column_duals: Vector) -> None:
        _add_duals(self._logits, row_duals, column_duals)
        self._exponentiate()

    def _exponentiate(self) -> None:
        torch.threshold_(self._values.copy_(self._logits), _LOWEST, -torch.inf).exp_()


def _add_duals(logits: Tensor, row_duals: Vector, column_duals: Vector) -> None:
    rows, columns = (torch.from_numpy(duals).to(logits) for duals in (row_duals, column_duals))
    logits.add_(rows[:, None]).add_(columns)


class _Edges:
    """S of edges (e,) float64, changed in place, and K beside it."""

    def __init__(self, rows: IntArray, columns: IntArray, ptr: IntArray, logits: Vector, num_columns: int) -> None:
        self._rows, self._columns, self._logits = rows, columns, logits
        self._kernel = EdgeKernel(np.exp(logits), ptr, columns, num_columns)

    def step(self, factors: Vector) -> tuple[Vector, Vector]:
        row_sums = self._kernel.times_columns(factors)
        row_sums[row_sums == 0] = 1.0
        column_sums = self._kernel.times_rows(1 / row_sums)
        column_sums[column_sums == 0] = 1.0
        return row_sums, column_sums

    def absorb(self, row_duals: Vector, column_duals: Vector) -> None:
        self._logits += row_duals[self._rows] + column_duals[self._columns]
        self._kernel.set_values(np.exp(self._logits))


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
        self._column_ptr = offsets(self._columns, num_columns, first_column)
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


def _by_rows(work: Callable[[int, int], None], number: int) -> None:
    by_all_processors(work, number, min(piece_size(number), _PIECE))


def _row_tops(values: Vector, ptr: IntArray) -> Vector:
    """The largest value of each row, 0 for rows without any."""
    starts, sizes = ptr[:-1] - ptr[0], np.diff(ptr)
    tops = np.zeros(len(sizes))
    if len(values):
        tops[sizes > 0] = np.maximum.reduceat(values, starts[sizes > 0])
    return tops


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
