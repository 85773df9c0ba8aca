"""Full precision for products that are compared: what training may shorten must not decide who is nearer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

__all__ = ["full_precision"]


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """Let products of float32 and sums of float16 products be in float32 throughout, and restore what was set."""
    mkldnn: Any = torch.backends.mkldnn
    cuda: Any = torch.backends.cuda.matmul
    wanted = [
        (cuda, "fp32_precision", "ieee"),
        (mkldnn.matmul, "fp32_precision", "ieee"),
        (cuda, "allow_fp16_reduced_precision_reduction", False),
        (cuda, "allow_fp16_accumulation", False),
    ]
    before = [getattr(owner, name) for owner, name, _ in wanted]
    try:
        for owner, name, value in wanted:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(wanted, before, strict=True):
            setattr(owner, name, value)
