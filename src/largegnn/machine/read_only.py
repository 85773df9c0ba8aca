"""Make tensors that share the memory of read-only arrays, such as mapped files."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["read_only_tensor"]


def read_only_tensor(array: Any) -> Tensor:
    """A tensor that shares the memory of `array`; it must not be written. Not thread-safe: it sets warning filters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no read-only tensors and warns if an array is read-only
        return torch.from_numpy(np.asarray(array))
