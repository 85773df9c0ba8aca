"""The kinds of arrays that pass between stages, and what every artifact checks of its own when it is made."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.errors import ArtifactError

__all__ = ["FloatArray", "IntArray", "Mask", "check_offsets", "check_range", "frozen"]

IntArray = npt.NDArray[Any]  # whole numbers: ids in int32, offsets in int64
FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int | None, ...], name: str) -> IntArray:
    """A read-only, contiguous view of `array`; refuses another shape (None = any length)."""
    result = np.ascontiguousarray(array, dtype=dtype).view()
    if result.size == 0 and len(shape) == 2 and shape[1] is not None and not (shape[0] or 0) * shape[1]:
        result = result.reshape(shape[0] or 0, shape[1])
    matches = len(shape) == result.ndim and all(
        want in (None, have) for want, have in zip(shape, result.shape, strict=True)
    )
    if not matches:
        raise ArtifactError(f"{name} has shape {result.shape}, expected {shape}")
    result.flags.writeable = False
    return result


def check_range(array: IntArray, low: int, high: int, name: str) -> None:
    """Refuse values outside low <= value < high."""
    if array.size and (int(array.min()) < low or int(array.max()) >= high):
        raise ArtifactError(f"{name} holds {int(array.min())}..{int(array.max())}, allowed {low}..{high - 1}")


def check_offsets(ptr: IntArray, total: int, name: str) -> None:
    """Refuse CSR offsets that do not climb from 0 to `total`."""
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != total or bool(np.any(np.diff(ptr) < 0)):
        raise ArtifactError(f"{name} must climb from 0 to {total}")
