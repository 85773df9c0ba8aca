"""Set the precision of float32 products: full where they are compared, shortened in training if a setting says so.

Shortened products must not decide which vector is nearer. Both functions restore what was set before.
The switches are those of torch 2.9 and later, the oldest torch that `pyproject.toml` allows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch

__all__ = ["Precision", "full_precision", "training_precision"]

Precision = Literal["float32", "tf32"]
_Switch = tuple[Any, str, object]  # an object of torch's, the name of its attribute, and the value wanted


def full_precision() -> contextlib.AbstractContextManager[None]:
    """Let products of float32 and sums of float16 products be in float32 throughout."""
    cuda: Any = torch.backends.cuda.matmul
    mkldnn: Any = torch.backends.mkldnn
    return _switched(
        [
            (cuda, "fp32_precision", "ieee"),
            (mkldnn.matmul, "fp32_precision", "ieee"),
            (cuda, "allow_fp16_reduced_precision_reduction", False),
            (cuda, "allow_fp16_accumulation", False),
        ]
    )


def training_precision(precision: Precision) -> contextlib.AbstractContextManager[None]:
    """Let a GPU shorten the factors of float32 products to 19 bits (`tf32`), or not."""
    return _switched([(torch.backends.cuda.matmul, "fp32_precision", "tf32" if precision == "tf32" else "ieee")])


@contextlib.contextmanager
def _switched(switches: Sequence[_Switch]) -> Iterator[None]:
    before = [getattr(owner, name) for owner, name, _ in switches]
    try:
        for owner, name, value in switches:
            setattr(owner, name, value)
        yield
    finally:
        for (owner, name, _), value in zip(switches, before, strict=True):
            setattr(owner, name, value)
