"""Make tensors over arrays that are only read, such as mapped files, without a copy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["read_only_tensor"]


def read_only_tensor(array: Any) -> Tensor:
    """A tensor over an array that is only read. Not for threads, which share the filters of warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no read-only tensors and warns of arrays that are
        return torch.from_numpy(np.asarray(array))
