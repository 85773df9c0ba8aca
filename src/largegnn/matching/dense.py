"""All cosines between two sides at once, where memory allows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from largegnn.matching.torch_search import full_precision

__all__ = ["cosine_matrix", "dense_bytes_allowed"]


def dense_bytes_allowed(device: torch.device) -> int:
    """What a matrix of all scores may take on a device."""
    return 6 << 30 if device.type == "cpu" else 16 << 30


def cosine_matrix(left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], device: torch.device) -> torch.Tensor:
    """Cosines (q, c) of rows (q, d) and (c, d), on the device."""
    with torch.no_grad(), full_precision():
        rows, columns = (
            torch.nn.functional.normalize(torch.from_numpy(np.array(side)).to(device), dim=1) for side in (left, right)
        )
        return rows @ columns.T
