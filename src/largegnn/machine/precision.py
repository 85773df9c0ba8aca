"""Set the precision of float32 products: full where vectors are compared, optionally reduced (TF32) in training.

Reduced precision must not decide which vector is nearer. Both context managers restore the flags on exit. The flags are
those of torch 2.9 and later, the oldest version that `pyproject.toml` allows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch

__all__ = ["Precision", "full_precision", "training_precision"]

Precision = Literal["float32", "tf32"]
_Flag = tuple[Any, str, object]  # an object of torch, the name of its attribute, and the wanted value


def full_precision() -> contextlib.AbstractContextManager[None]:
    """Compute products of float32 numbers and sums of float16 products in float32."""
    cuda: Any = torch.backends.cuda.matmul
    mkldnn: Any = torch.backends.mkldnn
    return _with_flags(
        [
            (cuda, "fp32_precision", "ieee"),
            (mkldnn.matmul, "fp32_precision", "ieee"),
            (cuda, "allow_fp16_reduced_precision_reduction", False),
            (cuda, "allow_fp16_accumulation", False),
        ]
    )


def training_precision(precision: Precision) -> contextlib.AbstractContextManager[None]:
    """Let a GPU round the factors of float32 products to 19 bits (`tf32`), or compute in full precision."""
    return _with_flags([(torch.backends.cuda.matmul, "fp32_precision", "tf32" if precision == "tf32" else "ieee")])


@contextlib.contextmanager
def _with_flags(flags: Sequence[_Flag]) -> Iterator[None]:
    before = [getattr(owner, name) for owner, name, _ in flags]
    try:
        for owner, name, value in flags:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(flags, before, strict=True):
            setattr(owner, name, value)
