"""Optimal transport over candidate edges: what `transport.py` does, where a full matrix would be too large.

In: edges with a score each, higher is closer; -inf is "no candidate". Out: the logarithm of the transport plan of each.

The idea: S = scores / temperature, less the largest of each row, then of each column, so that nothing lies above 0.
K = exp(S) is held beside S in float64, whose range is wide enough for edges; a step is two products of K with a vector.
Duals beyond 100 are moved into S and K made anew.

Cost: O(edges) a step, by all processors, each piece of rows by one alone: the result has the same bits however many
there are. Memory: some 40 bytes an edge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import FloatArray, IntArray
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.matching.edge_kernel import EdgeKernel, offsets_of
from largegnn.matching.transport import check_settings

__all__ = ["transport_sparse"]

_FARTHEST = 100.0  # of a dual
_ASCENDING, _UNSORTED, _TWICE = 0, 1, 2
_Vector = npt.NDArray[np.float64]


def transport_sparse(
    rows: IntArray,
    cols: IntArray,
    scores: npt.NDArray[Any],
    shape: tuple[int, int],
    temperature: float = 0.02,
    iterations: int = 30,
) -> FloatArray:
    """The log-plan of each edge (e,) float32, from the edges' rows, columns and scores (e,), each edge given once.

    Nodes without an edge, or with edges of -inf only, are left out.
    """
    check_settings(temperature, iterations)
    order, indices, row_ptr = _row_order(rows, cols, shape)
    if len(scores) != len(rows) or scores.ndim != 1:
        raise ArtifactError(f"{len(rows)} edges need as many scores, not {scores.shape}")
    edges: FloatArray = scores[order].astype(np.float32)  # S, in the order of rows
    row_tops = np.empty(shape[0], dtype=np.float32)
    _of_rows(lambda first, last: _subtract_row_tops(first, last, row_ptr, edges, temperature, row_tops), shape[0])
    if not bool((row_tops < np.inf).all()):
        raise ArtifactError("a score to transport is NaN or infinite")
    has_row = row_tops > -np.inf
    # Summed before the column maxima are gone: the first division by rows knows no columns.
    kernel = EdgeKernel(_exp(edges), row_ptr, indices, shape[1])
    row_duals = _minus_log(kernel.times_columns(np.ones(shape[1])), has_row)
    column_tops = np.full(shape[1], -np.inf, dtype=np.float32)
    _find_column_tops(indices, edges, column_tops)
    has_column = column_tops > -np.inf
    column_tops[~has_column] = 0.0
    _add_duals(edges, np.zeros(shape[0], dtype=np.float32), -column_tops, row_ptr, indices)

    kernel.set_values(_exp(edges))
    column_duals = _minus_log(kernel.times_rows(np.exp(row_duals)), has_column)
    for _ in range(iterations - 1):
        farthest = max(np.abs(row_duals).max(initial=0.0), np.abs(column_duals).max(initial=0.0))
        if farthest > _FARTHEST:
            _add_duals(edges, row_duals, column_duals, row_ptr, indices)
            kernel.set_values(_exp(edges))
            row_duals[:], column_duals[:] = 0.0, 0.0
        row_duals = _minus_log(kernel.times_columns(np.exp(column_duals)), has_row)
        column_duals = _minus_log(kernel.times_rows(np.exp(row_duals)), has_column)
    _add_duals(edges, row_duals, column_duals, row_ptr, indices)
    if isinstance(order, slice):
        return edges
    plan = np.empty_like(edges)
    plan[order] = edges
    return plan


def _row_order(rows: IntArray, cols: IntArray, shape: tuple[int, int]) -> tuple[IntArray | slice, IntArray, IntArray]:
    """The order that sorts edges by row and column, the columns so sorted (e,), where each row starts (q + 1,)."""
    if rows.ndim != 1 or rows.shape != cols.shape:
        raise ArtifactError(f"edges need rows and columns (e,), not {rows.shape} and {cols.shape}")
    for ends, size in zip((rows, cols), shape, strict=True):
        if len(ends) and not 0 <= ends.min() <= ends.max() < size:
            raise ArtifactError(f"an edge between {ends.min()} and {ends.max()} leaves a side of {size}")
    order: IntArray | slice = slice(None)
    found = _order_of(rows, cols)  # candidates come in order, and there are many of them
    if found == _UNSORTED:
        order = np.lexsort((cols, rows))
        found = _order_of(rows[order], cols[order])
    if found == _TWICE:
        raise ArtifactError("an edge to transport is there twice")
    index_type = np.int32 if max(*shape, len(rows)) < 2**31 else np.int64
    return order, cols[order].astype(index_type), offsets_of(rows, shape[0])


def _order_of(rows: IntArray, cols: IntArray) -> int:
    """Whether edges ascend by row and column, are in no order, or are in order with one of them twice."""

    def look(first: int, last: int) -> int:
        return _look(rows[max(first - 1, 0) : last], cols[max(first - 1, 0) : last])

    found = by_all_processors(look, len(rows), piece_size(len(rows)))
    return next((each for each in (_UNSORTED, _TWICE) if each in found), _ASCENDING)


def _of_rows(work: Callable[[int, int], None], number: int) -> None:
    by_all_processors(work, number, piece_size(number))


def _exp(edges: FloatArray) -> _Vector:
    """The exponentials of S (e,) in float64."""
    found = np.empty(len(edges))

    def fill(first: int, last: int) -> None:
        np.exp(edges[first:last], out=found[first:last], dtype=np.float64)

    by_all_processors(fill, len(edges), piece_size(len(edges)))
    return found


def _add_duals(
    edges: FloatArray, row_duals: npt.NDArray[Any], column_duals: npt.NDArray[Any], row_ptr: IntArray, indices: IntArray
) -> None:
    """Move the duals into S (e,), in place."""
    of_rows, of_columns = row_duals.astype(np.float32), column_duals.astype(np.float32)
    _of_rows(lambda first, last: _add(first, last, row_ptr, indices, of_rows, of_columns, edges), len(of_rows))


def _minus_log(sums: _Vector, used: npt.NDArray[np.bool_]) -> _Vector:
    """The duals that undo sums (n,): 0 where a node is not used."""
    duals: _Vector = -np.log(sums, out=np.zeros_like(sums), where=used)
    return duals


@compiled
def _look(rows: IntArray, cols: IntArray) -> int:
    found = _ASCENDING
    for edge in range(1, len(rows)):
        if rows[edge] < rows[edge - 1] or (rows[edge] == rows[edge - 1] and cols[edge] < cols[edge - 1]):
            return _UNSORTED
        if rows[edge] == rows[edge - 1] and cols[edge] == cols[edge - 1]:
            found = _TWICE
    return found


@compiled
def _subtract_row_tops(
    first: int, last: int, row_ptr: IntArray, edges: FloatArray, temperature: float, tops: FloatArray
) -> None:
    """Make S of the scores (e,) of some rows, and note the largest score of each (q,); infinite where one is NaN."""
    for row in range(first, last):
        top = np.float32(-np.inf)
        for edge in range(row_ptr[row], row_ptr[row + 1]):
            if edges[edge] > top:
                top = edges[edge]
            elif np.isnan(edges[edge]):
                top = np.float32(np.inf)
        tops[row] = top
        if np.isfinite(top):
            for edge in range(row_ptr[row], row_ptr[row + 1]):
                edges[edge] = (edges[edge] - top) / np.float32(temperature)


@compiled
def _find_column_tops(indices: IntArray, edges: FloatArray, tops: FloatArray) -> None:
    for edge in range(len(edges)):
        tops[indices[edge]] = max(tops[indices[edge]], edges[edge])


@compiled
def _add(
    first: int,
    last: int,
    row_ptr: IntArray,
    indices: IntArray,
    row_duals: FloatArray,
    column_duals: FloatArray,
    edges: FloatArray,
) -> None:
    for row in range(first, last):
        for edge in range(row_ptr[row], row_ptr[row + 1]):
            edges[edge] = (edges[edge] + row_duals[row]) + column_duals[indices[edge]]
