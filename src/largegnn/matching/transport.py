"""Balance all scores between two sides by optimal transport, so that no candidate is the best of all (Sinkhorn).

In: scores, higher is closer, -inf for no candidate: of all pairs as a matrix (`transport_dense`, `dense_plan`), or of
candidate edges, ascending by row, then column (`transport_edges`, `partial_plan`). Out: the logarithm of the transport
plan, to be ranked along rows and columns like scores.
The idea: K = exp(score / temperature) is divided by its row sums and column sums in turn; only factors of rows and
columns change, so a step is two products of K with a vector. The last division is by columns.
In `partial_plan` each sum has an entry for "no counterpart", so that entities may stay unmatched: the plan is used as a
certainty from 0 to 1; the entries of an entity add up to at most 1.
Cost: linear in pairs or edges per step. A pair takes 8 bytes, an edge 12 in `partial_plan`, 40 in `transport_edges`.

# Departs: not in the paper. The entry for "no counterpart" is that of SuperGlue (Sarlin et al., 2020), at a fixed price
#     in place of a capacity, as in unbalanced transport.
# Departs: scipy's products use one thread; with ten and more a transport over a million entities is 5 times faster.
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

_MAX_ROWS = 50_000  # of either side; beyond, a transport is over candidates only
_MAX_BYTES = {"cpu": 6 << 30, "cuda": 32 << 30}  # of scores and their exponentials
_CHUNK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 28}  # of K, so that it is in the cache for the second product
_MAX_LOG_FACTOR = 20.0  # of a factor; larger factors are added to the scores, and K is computed again
_MIN_LOGIT = -85.0  # exp of less is a subnormal float32, which is slow

_MAX_PIECE_ROWS = 1 << 16  # rows that are prepared at once, partly in float64
_MAX_EXPONENT = 600.0  # so that exp stays within float64
_FIRST_PRICE_STEP = 2.0  # of the log price of no counterpart; grows by 1.2, is halved at a change of direction
_PRICE_RANGE = (-8.0, 25.0)  # bounds, since the number of links cannot be reached if all entities have one


def fits_dense(shape: tuple[int, int], device: torch.device, max_bytes: int | None = None) -> bool:
    """Whether a transport over all pairs of this shape fits a device; `max_bytes` may bound main memory further."""
    limit = _MAX_BYTES[device.type]
    if max_bytes is not None and device.type == "cpu":
        limit = min(limit, max_bytes)
    return max(shape) <= _MAX_ROWS and 8 * shape[0] * shape[1] <= limit


def cosine_matrix(left: FloatArray, right: FloatArray, device: torch.device) -> torch.Tensor:
    """Compute cosines (q, c) of rows (q, d) and (c, d) on the device."""
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
    """Compute the log-plan (q, c) of a transport over all cosines; at the `edges`, `scores` (e,) replace the cosines.

    `cosine_weight` is the weight of a cosine in these scores, to bring all pairs to the same scale.
    """
    matrix = cosine_matrix(left, right, device)
    if cosine_weight != 1.0:
        matrix *= cosine_weight
    rows, columns = (torch.from_numpy(np.array(ends, dtype=np.int64)).to(device) for ends in edges)
    matrix[rows, columns] = torch.from_numpy(np.array(scores, dtype=np.float32)).to(device)
    transport_dense(matrix, temperature, iterations)
    return matrix


def transport_dense(scores: Tensor, temperature: float = 0.02, iterations: int = 30) -> None:
    """Turn scores (q, c) float32 into the log-plan in place; rows and columns of -inf are excluded."""
    if not scores.numel():
        return
    with torch.no_grad(), full_precision():
        # The maxima of rows, then of columns, are subtracted: every row and column of K holds a 1.
        tops = scores.amax(dim=1, keepdim=True)
        _check_scores(bool((tops < torch.inf).all()))
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
    """Compute the log-plan (e,) float32 of edges given by rows, columns and scores (e,); see `transport_dense`."""
    _check_scores(bool((scores < np.inf).all()))
    ptr, logits = offsets(rows, shape[0]), scores.astype(np.float64)

    def subtract_maxima(first: int, last: int) -> None:
        edges = slice(ptr[first], ptr[last])
        part = logits[edges] / temperature
        tops = _row_tops(part, ptr[first : last + 1])
        tops[tops == -np.inf] = 0.0
        logits[edges] = part - np.repeat(tops, np.diff(ptr[first : last + 1]))

    _by_rows(subtract_maxima, shape[0])
    highest = np.full(shape[1], -np.inf)
    np.maximum.at(highest, columns, logits)
    highest[highest == -np.inf] = 0.0
    logits -= highest[columns]
    row_duals, column_duals = _balance(_Edges(rows, columns, ptr, logits, shape[1]), highest, iterations)
    logits += row_duals[rows] + column_duals[columns]
    return logits.astype(np.float32)


def _check_scores(are_valid: bool) -> None:
    if not are_valid:
        raise ArtifactError("a score to transport is NaN or infinite")


def partial_plan(
    graph: CandidateGraph,
    scores: FloatArray,
    temperature: float = 0.02,
    iterations: int = 30,
    num_links: float | None = None,
) -> FloatArray:
    """Compute the logarithm of the plan of each edge (e,); in most uses, scores are half of a CSLS.

    A pair with a score below 0 gets little mass: CSLS is 0 if the two are as near as the nearest neighbours of both
    are on average. `num_links` is the total of the plan, if known: the price of no counterpart is adjusted in each step
    to reach it.
    """
    if not len(graph):
        return np.empty(0, dtype=np.float32)
    first = int(graph.targets.min())
    num_rows = int(graph.sources[-1]) + 1
    ptr = offsets(graph.sources, num_rows)
    # `values` is first the kernel, then the plan, to save memory.
    values, tops = np.empty(len(graph), dtype=np.float32), np.zeros(num_rows)

    def prepare(begin: int, end: int) -> None:
        edges = slice(ptr[begin], ptr[end])
        part = scores[edges].astype(np.float64) / temperature
        tops[begin:end] = _row_tops(part, ptr[begin : end + 1])
        values[edges] = np.exp(part - np.repeat(tops[begin:end], np.diff(ptr[begin : end + 1])))

    _by_rows(prepare, num_rows)
    num_columns = int(graph.targets.max()) - first + 1
    kernel = EdgeKernel(values, ptr, graph.targets, num_columns, first)
    price, step = 0.0, _FIRST_PRICE_STEP
    rows, columns = np.zeros(num_rows), np.zeros(num_columns)  # logarithms
    row_factors, column_factors = np.ones(num_rows), np.ones(num_columns)
    for _ in range(iterations):
        _divide(kernel.times_columns(column_factors), price - tops, rows, row_factors)
        _divide(kernel.times_rows(row_factors), np.full(1, price), columns, column_factors)
        if num_links is not None and num_links > 0:
            total = num_columns - float(np.exp(columns + price).sum())
            # `price` is the log weight of "no counterpart": it rises if the plan holds too many links.
            is_over = total > num_links
            step = abs(step) * (1 if is_over else -1) * (1.2 if (step > 0) == is_over else 0.5)
            price = min(max(price + step, _PRICE_RANGE[0]), _PRICE_RANGE[1])

    def finish(begin: int, end: int) -> None:
        # Computed from the scores, since K in float32 is precise enough for sums, but not for the plan.
        edges, sizes = slice(ptr[begin], ptr[end]), np.diff(ptr[begin : end + 1])
        logits = scores[edges].astype(np.float64) / temperature - np.repeat(tops[begin:end], sizes)
        values[edges] = logits + np.repeat(rows[begin:end], sizes) + columns[graph.targets[edges] - first]

    _by_rows(finish, num_rows)
    return values


class _Kernel(Protocol):
    """The matrix K = exp(S) that `_balance` divides; empty rows and columns have sums of 1."""

    def step(self, factors: Vector) -> tuple[Vector, Vector]:
        """Sum rows (q,) with `factors` of columns; then sum columns (c,) with the rows divided by their sums."""
        ...

    def absorb(self, row_duals: Vector, column_duals: Vector) -> None:
        """Add the logarithms of factors to S, and compute K again."""
        ...


def _balance(kernel: _Kernel, column_duals: Vector, iterations: int) -> tuple[Vector, Vector]:
    """Divide by rows and columns in turn, from given factors of columns; return the log factors still to add to S."""
    for step in range(iterations):
        row_duals, column_duals = (-np.log(sums) for sums in kernel.step(np.exp(column_duals)))
        farthest = max(np.abs(row_duals).max(initial=0.0), np.abs(column_duals).max(initial=0.0))
        if farthest > _MAX_LOG_FACTOR and step < iterations - 1:
            kernel.absorb(row_duals, column_duals)
            row_duals, column_duals = np.zeros_like(row_duals), np.zeros_like(column_duals)
    return row_duals, column_duals


class _Dense:
    """A full matrix S (q, c) float32, changed in place, and K."""

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
        torch.threshold_(self._values.copy_(self._logits), _MIN_LOGIT, -torch.inf).exp_()


def _add_duals(logits: Tensor, row_duals: Vector, column_duals: Vector) -> None:
    rows, columns = (torch.from_numpy(duals).to(logits) for duals in (row_duals, column_duals))
    logits.add_(rows[:, None]).add_(columns)


class _Edges:
    """The values S of edges (e,) float64, changed in place, and K."""

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

    It is stored by row and by column, so that each sum of a product with a vector is made by one processor. Sums are in
    float64, whatever the values are.
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
        """Replace the values (e,) of the edges."""
        self._values = values
        next_places = self._column_ptr[:-1].copy()
        num_columns = len(next_places)

        # Every processor reads all columns, and stores the edges of its own range.
        def transpose(first: int, last: int) -> None:
            _fill_transposed(
                first, last, self._ptr, self._columns, self._first, values, next_places, self._rows, self._by_column
            )

        by_all_processors(transpose, num_columns, max(1, -(-num_columns // num_processors())))

    def times_columns(self, factors: Vector) -> Vector:
        """Sum each row (q,), every edge multiplied by the factor of its column (c,)."""
        return _sums(self._ptr, self._columns, self._first, self._values, factors)

    def times_rows(self, factors: Vector) -> Vector:
        """Sum each column (c,), every edge multiplied by the factor of its row (q,)."""
        return _sums(self._column_ptr, self._rows, 0, self._by_column, factors)


def _by_rows(work: Callable[[int, int], None], number: int) -> None:
    by_all_processors(work, number, min(piece_size(number), _MAX_PIECE_ROWS))


def _row_tops(values: Vector, ptr: IntArray) -> Vector:
    """Find the largest value of each row, 0 for empty rows."""
    starts, sizes = ptr[:-1] - ptr[0], np.diff(ptr)
    tops = np.zeros(len(sizes))
    if len(values):
        tops[sizes > 0] = np.maximum.reduceat(values, starts[sizes > 0])
    return tops


def _divide(sums: Vector, none: Vector, logarithms: Vector, factors: Vector) -> None:
    """Fill in the factors (q,) that divide by the sums (q,) plus exp(`none`), (q,) or (1,), and their logarithms."""

    def divide(begin: int, end: int) -> None:
        part = none if len(none) == 1 else none[begin:end]
        np.log(sums[begin:end] + np.exp(np.minimum(part, _MAX_EXPONENT)), out=logarithms[begin:end])
        np.negative(logarithms[begin:end], out=logarithms[begin:end])
        np.exp(logarithms[begin:end], out=factors[begin:end])

    by_all_processors(divide, len(sums), piece_size(len(sums)))


def _sums(ptr: IntArray, indices: IntArray, first_index: int, values: Values, factors: Vector) -> Vector:
    result = np.empty(len(ptr) - 1)
    by_all_processors(
        lambda first, last: _add_up(first, last, ptr, indices, first_index, values, factors, result),
        len(result),
        piece_size(len(result)),
    )
    return result


@compiled
def _fill_transposed(
    first: int,
    last: int,
    ptr: IntArray,
    columns: IntArray,
    first_column: int,
    values: Values,
    next_places: IntArray,
    rows: IntArray,
    by_column: Values,
) -> None:
    """List the edges of the columns from `first` to `last`, ascending by row."""
    for row in range(len(ptr) - 1):
        for edge in range(ptr[row], ptr[row + 1]):
            column = columns[edge] - first_column
            if first <= column < last:
                rows[next_places[column]] = row
                by_column[next_places[column]] = values[edge]
                next_places[column] += 1


@compiled
def _add_up(
    first: int,
    last: int,
    ptr: IntArray,
    indices: IntArray,
    first_index: int,
    values: Values,
    factors: Vector,
    sums: Vector,
) -> None:
    for row in range(first, last):
        total = 0.0
        for edge in range(ptr[row], ptr[row + 1]):
            total += values[edge] * factors[indices[edge] - first_index]
        sums[row] = total
