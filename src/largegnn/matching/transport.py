"""Balance all scores between two sides by optimal transport, so that no candidate is the best of all (Sinkhorn).

In: a matrix of scores (q, c) of queries and candidates, higher is closer, -inf is "no candidate"; or vectors, and the
scores of candidate edges that replace their cosines. Out: the logarithm of the transport plan, to be ranked along rows
and columns like scores. Over candidate edges alone: `edge_transport.py`.

The idea: exp(score / temperature) is divided by its row sums, then by its column sums, and so on. Written with
logarithms, S = scores / temperature, that is r = -logsumexp(S + c, rows), c = -logsumexp(S + r, columns), at last
S + r + c, c being 0 at first; done that way each step takes two exponentials and some ten passes over the matrix.
Here the largest of each row, then of each column, is subtracted first: nothing lies above 0, and every row and column
holds a 0. Then K = exp(S) replaces S, and a step is two products of K with a vector, a piece of rows at a time so that
the second finds the piece in the cache. K loses nothing while S stays above -106 (always so for cosines at 0.02) and
the column duals within 30 of their middle; else S stays or comes back, and a step takes exp(S + r + c) of each piece.
That cannot fail: after a division by column sums entries are at most 1, so row sums are at most c and the next column
sums at least 1 / c; likewise for rows. What lies below e^-80 is lost in such a sum, so it need not be there.

With different numbers of rows and columns not both can sum to 1. The last division is by columns; a plan of total mass
1 differs by a constant. With many more columns than rows a row owns several columns outright: their plan is 1, its
logarithm 0, and their order along the row below the rounding of float32 (some 1e-5).

Cost: O(q c) a step; nothing but the matrix given, vectors, and pieces of 8 MB (256 MB on a GPU). Some 2 s for
10,500 x 10,500, 30 steps, one thread; 6 s where S must stay.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray
from largegnn.errors import ArtifactError
from largegnn.machine.precision import full_precision

__all__ = ["check_settings", "cosine_matrix", "dense_plan", "fits_dense", "transport_dense"]

_MOST_ROWS = 50_000  # of either side; beyond, transport is left to the candidates
_MOST_BYTES = {"cpu": 6 << 30, "cuda": 16 << 30}

_CHUNK_BYTES = {"cpu": 1 << 23, "cuda": 1 << 28}
_LIFT = 20.0  # K = exp(S + lift), from e^-86 to e^20: more of float32's range; the row duals take it back
_LOWEST = -86.0 - _LIFT  # of S, for K to hold it
_FARTHEST = 30.0  # of a dual: sums of K then stay within e^-46 and e^66 for a million rows
_NOTHING = -80.0  # exp of it adds nothing to a sum of at least 1 / c, and is no denormal number


def fits_dense(shape: tuple[int, int], device: torch.device, max_bytes: int | None = None) -> bool:
    """Whether all scores of so many rows and columns may be held on a device; main memory may be bounded further."""
    most = _MOST_BYTES[device.type]
    if max_bytes is not None and device.type == "cpu":
        most = min(most, max_bytes)
    return max(shape) <= _MOST_ROWS and 4 * shape[0] * shape[1] <= most


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
    _balance(matrix, temperature, iterations)
    return matrix


def transport_dense(scores: Tensor, temperature: float = 0.02, iterations: int = 30) -> Tensor:
    """The log-plan (q, c) of scores (q, c) float32; a row or column of -inf stays so and takes part in nothing."""
    if scores.ndim != 2 or scores.dtype != torch.float32:
        raise ArtifactError(f"transport needs a float32 matrix of scores, not {scores.dtype} {tuple(scores.shape)}")
    plan = scores.clone()
    _balance(plan, temperature, iterations)
    return plan


def _balance(scores: Tensor, temperature: float, iterations: int) -> None:
    """Turn scores (q, c) float32 into the log-plan in place; NaN or +inf raise, and leave the matrix half done."""
    check_settings(temperature, iterations)
    if not scores.numel():
        return
    with torch.no_grad(), full_precision():
        row_bytes = 4 * scores.shape[1]
        pieces = torch.split(scores, max(1, _CHUNK_BYTES[scores.device.type] // row_bytes))
        row_duals, empty_rows, highest, lowest = _first_row_duals(pieces, temperature)
        empty_columns = highest == -torch.inf
        if bool(empty_columns.all()):
            return
        as_kernel = lowest > _LOWEST
        highest.masked_fill_(empty_columns, 0.0)
        column_duals = _first_column_duals(pieces, row_duals, highest, empty_columns, as_kernel)
        for _ in range(iterations - 1):
            # A constant may move between the duals. With unequal numbers of rows and columns one does, every step.
            low, high = column_duals[~empty_columns].aminmax()
            middle = (low + high) / 2
            column_duals = (column_duals - middle).masked_fill_(empty_columns, 0.0)
            row_duals += middle
            if as_kernel and float(high - low) > 2 * _FARTHEST:
                as_kernel = False
                for piece in pieces:
                    piece.log_()
            step = _step_with_kernel if as_kernel else _step_with_logarithms
            column_duals = step(pieces, row_duals, column_duals, empty_rows, empty_columns)
        for piece, duals in zip(pieces, torch.split(row_duals, len(pieces[0])), strict=True):
            if as_kernel:
                piece.log_()
            piece.add_(duals[:, None]).add_(column_duals)


def _first_row_duals(pieces: tuple[Tensor, ...], temperature: float) -> tuple[Tensor, Tensor, Tensor, float]:
    """Make S of the scores, less its row maxima: row duals, which rows are empty (q,), column maxima (c,), lowest."""
    highest = pieces[0].new_full((pieces[0].shape[1],), -torch.inf)
    room = torch.empty_like(pieces[0])
    duals, empty, lowest = [], [], 0.0
    for piece in pieces:
        top = piece.amax(dim=1)
        if not bool((top < torch.inf).all()):
            raise ArtifactError("a score to transport is NaN or infinite")
        empty.append(top == -torch.inf)
        piece.sub_(top.masked_fill_(empty[-1], 0.0)[:, None]).div_(temperature)
        torch.maximum(highest, piece.amax(dim=0), out=highest)
        low = float(piece.amin())
        if low == -math.inf:
            low = float(piece.masked_fill(piece == -torch.inf, 0.0).amin())
        lowest = min(lowest, low)
        plan = torch.clamp(piece, min=_NOTHING, out=room[: len(piece)]).exp_()
        duals.append(plan.sum(dim=1).masked_fill_(empty[-1], 1.0).log_().neg_())
    return torch.cat(duals), torch.cat(empty), highest, lowest


def _first_column_duals(
    pieces: tuple[Tensor, ...], row_duals: Tensor, highest: Tensor, empty_columns: Tensor, as_kernel: bool
) -> Tensor:
    """Subtract the column maxima (c,) from S, make K of it if so wanted, and give the first column duals (c,)."""
    column_sums = torch.zeros_like(highest)
    room = torch.empty_like(pieces[0][:0] if as_kernel else pieces[0])
    for piece, duals in zip(pieces, torch.split(row_duals, len(pieces[0])), strict=True):
        if as_kernel:
            column_sums.addmv_(piece.sub_(highest - _LIFT).exp_().T, duals.exp())
        else:
            plan = torch.add(piece.sub_(highest), duals[:, None], out=room[: len(piece)])
            column_sums += plan.clamp_(min=_NOTHING).exp_().sum(dim=0)
    return column_sums.masked_fill_(empty_columns, 1.0).log_().neg_()


def _step_with_kernel(
    pieces: tuple[Tensor, ...], row_duals: Tensor, column_duals: Tensor, empty_rows: Tensor, empty_columns: Tensor
) -> Tensor:
    """Divide K by row sums, then by column sums: the new column duals (c,), and new `row_duals` (q,) in place."""
    factors = column_duals.exp()
    column_sums = torch.zeros_like(factors)
    size = len(pieces[0])
    for piece, duals, empty in zip(pieces, torch.split(row_duals, size), torch.split(empty_rows, size), strict=True):
        sums = torch.mv(piece, factors).masked_fill_(empty, 1.0)
        column_sums.addmv_(piece.T, sums.reciprocal())
        torch.neg(sums.log_(), out=duals)
    return column_sums.masked_fill_(empty_columns, 1.0).log_().neg_()


def _step_with_logarithms(
    pieces: tuple[Tensor, ...], row_duals: Tensor, column_duals: Tensor, empty_rows: Tensor, empty_columns: Tensor
) -> Tensor:
    """The same from S, whatever its range."""
    column_sums = torch.zeros_like(column_duals)
    size = len(pieces[0])
    room = torch.empty_like(pieces[0])
    for piece, duals, empty in zip(pieces, torch.split(row_duals, size), torch.split(empty_rows, size), strict=True):
        plan = torch.add(piece, column_duals, out=room[: len(piece)])
        plan.add_(duals[:, None]).clamp_(min=_NOTHING).exp_()
        sums = plan.sum(dim=1).masked_fill_(empty, 1.0)
        column_sums.addmv_(plan.T, sums.reciprocal())
        duals -= sums.log_()
    return column_duals - column_sums.masked_fill_(empty_columns, 1.0).log_()


def check_settings(temperature: float, iterations: int) -> None:
    """Refuse a temperature that is no positive number, and no iterations at all."""
    if not 0 < temperature < math.inf or iterations < 1:
        raise ArtifactError(f"no transport at temperature {temperature} in {iterations} iterations")
