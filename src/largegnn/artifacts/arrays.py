"""Check and freeze the arrays of artifacts, and look up pairs of ids in sets of pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.errors import ArtifactError

__all__ = [
    "FloatArray",
    "IntArray",
    "Mask",
    "are_among",
    "check_offsets",
    "check_range",
    "freeze_fields",
    "frozen",
    "pair_keys",
]

IntArray = npt.NDArray[Any]  # integers: ids in int32, offsets in int64
FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def frozen(array: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int | None, ...], name: str) -> IntArray:
    """A read-only, contiguous view of `array`; an `ArtifactError` if it has not this `shape` (None: any length)."""
    result = np.ascontiguousarray(array, dtype=dtype).view()
    if result.size == 0 and len(shape) == 2 and shape[1] is not None and not (shape[0] or 0) * shape[1]:
        result = result.reshape(shape[0] or 0, shape[1])
    matches = len(shape) == result.ndim and all(
        wanted in (None, actual) for wanted, actual in zip(shape, result.shape, strict=True)
    )
    if not matches:
        raise ArtifactError(f"{name} has shape {result.shape}, expected {shape}")
    result.flags.writeable = False
    return result


def freeze_fields(
    artifact: object, names: Iterable[str], dtype: npt.DTypeLike, shape: tuple[int | None, ...] = (None,)
) -> None:
    """Replace the fields `names` of a frozen dataclass by read-only arrays of this type and shape."""
    for name in names:
        object.__setattr__(artifact, name, frozen(getattr(artifact, name), dtype, shape, name))


def check_range(array: IntArray, low: int, high: int, name: str) -> None:
    """Raise an `ArtifactError` unless low <= value < high for all values."""
    if array.size and (int(array.min()) < low or int(array.max()) >= high):
        raise ArtifactError(f"{name} has values {int(array.min())}..{int(array.max())}, allowed {low}..{high - 1}")


def check_offsets(ptr: IntArray, total: int, name: str) -> None:
    """Raise an `ArtifactError` unless the CSR offsets `ptr` ascend from 0 to `total`."""
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != total or bool(np.any(np.diff(ptr) < 0)):
        raise ArtifactError(f"{name} must ascend from 0 to {total}")


def pair_keys(pairs: IntArray) -> IntArray:
    """Pack each pair (p, 2) of ids into one number; the numbers have the order of the pairs."""
    keys: IntArray = pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1].astype(np.int64)
    return keys


def are_among(pairs: IntArray, links: IntArray) -> Mask:
    """Whether each of the pairs (p, 2) is among the links (k, 2), (p,)."""
    if not len(links):
        return np.zeros(len(pairs), dtype=bool)
    # np.isin would hash the keys, and keys packed like these collide, which is a hundred times slower.
    wanted, known = pair_keys(pairs), np.sort(pair_keys(links))
    position = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    is_among: Mask = known[position] == wanted
    return is_among
