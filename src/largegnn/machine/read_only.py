"""Tensors over arrays that nobody writes to, such as mapped files; nothing is copied."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["read_only_tensor"]


def read_only_tensor(array: Any) -> Tensor:
    """A tensor over an array that nobody writes to. Not for threads: what is warned of is the same for all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has no read-only tensors and warns of arrays that are
        return torch.from_numpy(np.asarray(array))
