"""Partial transport: all entities compete for each other, and each may also have no counterpart.

In: candidate edges with scores, half of a CSLS where nothing else is said. Out: the logarithm of the plan for each
edge; the plan itself lies between 0 and 1 and is read as a certainty: those of one entity add up to at most 1.
The idea: exp(score / temperature) is divided by its row sums and column sums in turn (Sinkhorn), where each sum also
holds one entry for "no counterpart", the same for all: exp(none / 2 / temperature), half of `none` at either end. A
pair whose score is below `none` has little to win. CSLS is 0 where an entity is no nearer than the nearest neighbours
of both ends are on average, hence `none` = 0. Where the number of links is known about, `none` moves in each step until
the plan holds as many.
Written with the largest of each row taken off, so that nothing overflows: K = exp((S - top) / T), a = 1 / (K v + e /
exp(top / T)), v = 1 / (K' a + e), e = exp(none / 2 T); the plan is a K v. K in float32 is enough: sums are of float64,
and the plan is made from the scores.
Cost: linear in the edges for each step, by all processors; 12 bytes an edge, those of the result among them.

# Departs: not in the paper. The entry for "no counterpart" is that of SuperGlue (Sarlin et al., 2020), at a fixed price
#     in place of a capacity, as in unbalanced transport.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.matching.edge_kernel import EdgeKernel, offsets_of

__all__ = ["partial_plan"]

Vector = npt.NDArray[np.float64]

_PIECE = 1 << 16  # rows that are prepared at once, some of their numbers in float64
_LARGEST = 600.0  # of an exponent, for exp to stay in float64
_FIRST_MOVE = 2.0  # of `none` towards the number of links, in temperatures: longer while it goes on, halved at a turn
_FARTHEST = (-8.0, 25.0)  # that `none` may go from its start: where all are linked the number is never reached


def partial_plan(
    graph: CandidateGraph,
    scores: FloatArray,
    temperature: float = 0.02,
    iterations: int = 30,
    none: float = 0.0,
    num_links: float | None = None,
) -> FloatArray:
    """The logarithm of the plan of each edge (e,); `num_links` is how much the plan should hold in all, if known."""
    if not len(graph):
        return np.empty(0, dtype=np.float32)
    first = int(graph.targets.min())
    num_rows = int(graph.sources[-1]) + 1
    ptr = offsets_of(graph.sources, num_rows)
    # Both the kernel and, in the end, the plan: at a billion edges every array counts.
    values, tops = np.empty(len(graph), dtype=np.float32), np.zeros(num_rows)

    def prepare(begin: int, end: int) -> None:
        here, offsets = slice(ptr[begin], ptr[end]), ptr[begin : end + 1] - ptr[begin]
        sizes = np.diff(offsets)
        part = scores[here].astype(np.float64) / temperature
        tops[begin:end][sizes > 0] = np.maximum.reduceat(part, offsets[:-1][sizes > 0]) if len(part) else 0.0
        values[here] = np.exp(part - np.repeat(tops[begin:end], sizes))

    in_pieces = num_rows, min(piece_size(num_rows), _PIECE)
    by_all_processors(prepare, *in_pieces)
    num_columns = int(graph.targets.max()) - first + 1
    kernel = EdgeKernel(values, ptr, graph.targets, num_columns, first)
    price = start = none / temperature / 2
    move = _FIRST_MOVE
    rows, columns = np.zeros(num_rows), np.zeros(num_columns)  # logarithms
    row_factors, column_factors = np.ones(num_rows), np.ones(num_columns)
    for _ in range(iterations):
        _divide(kernel.times_columns(column_factors), price - tops, rows, row_factors)
        _divide(kernel.times_rows(row_factors), np.full(1, price), columns, column_factors)
        if num_links is not None and num_links > 0:
            held = num_columns - float(np.exp(columns + price).sum())
            # More than there are: no counterpart must cost less.
            move = abs(move) * (1 if held > num_links else -1) * (1.2 if (move > 0) == (held > num_links) else 0.5)
            price = min(max(price + move, start + _FARTHEST[0]), start + _FARTHEST[1])

    def finish(begin: int, end: int) -> None:
        here, sizes = slice(ptr[begin], ptr[end]), np.diff(ptr[begin : end + 1])
        logits = scores[here].astype(np.float64) / temperature - np.repeat(tops[begin:end], sizes)
        values[here] = logits + np.repeat(rows[begin:end], sizes) + columns[graph.targets[here] - first]

    by_all_processors(finish, *in_pieces)
    return values


def _divide(sums: Vector, none: Vector, logarithms: Vector, factors: Vector) -> None:
    """What undoes the sums (q,) with the entry for none, (q,) or (1,) as a logarithm: in logarithms and in factors."""

    def divide(begin: int, end: int) -> None:
        own = none if len(none) == 1 else none[begin:end]
        np.log(sums[begin:end] + _exp(own), out=logarithms[begin:end])
        np.negative(logarithms[begin:end], out=logarithms[begin:end])
        np.exp(logarithms[begin:end], out=factors[begin:end])

    by_all_processors(divide, len(sums), piece_size(len(sums)))


def _exp(exponents: Vector) -> Vector:
    result: Vector = np.exp(np.minimum(exponents, _LARGEST))
    return result
