"""All scores between two sides at once, where memory allows: cosines, and the transport plan over them.

In: rows of vectors, and scores of candidate edges that take the place of their cosines. Out: matrices (q, c) on the
device. Cost: one product, or the steps of the transport, over q c numbers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray
from largegnn.machine.precision import full_precision
from largegnn.matching.transport import transport_dense

__all__ = ["cosine_matrix", "dense_plan", "fits_dense"]

_MOST_ROWS = 50_000  # of either side; beyond, transport is left to the candidates
_MOST_BYTES = {"cpu": 6 << 30, "cuda": 16 << 30}
_Vectors = npt.NDArray[np.float32]


def fits_dense(shape: tuple[int, int], device: torch.device, max_bytes: int | None = None) -> bool:
    """Whether all scores of so many rows and columns may be held on a device; main memory may be bounded further."""
    most = _MOST_BYTES[device.type]
    if max_bytes is not None and device.type == "cpu":
        most = min(most, max_bytes)
    return max(shape) <= _MOST_ROWS and 4 * shape[0] * shape[1] <= most


def cosine_matrix(left: _Vectors, right: _Vectors, device: torch.device) -> torch.Tensor:
    """Cosines (q, c) of rows (q, d) and (c, d), on the device."""
    with torch.no_grad(), full_precision():
        rows, columns = (
            torch.nn.functional.normalize(torch.from_numpy(np.array(side)).to(device), dim=1) for side in (left, right)
        )
        return rows @ columns.T


def dense_plan(
    left: _Vectors,
    right: _Vectors,
    edges: tuple[IntArray, IntArray],
    scores: npt.NDArray[np.float32],
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
    return transport_dense(matrix, temperature, iterations)
