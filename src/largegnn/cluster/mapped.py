"""Artifacts for other machines: arrays that lie in files of the run folder are named, not sent.

In: an array, or a frozen dataclass of arrays. Out: the same with a `MappedArray` in the place of each array that is
mapped from a file; `opened` and `unpacked` map it where it is needed. All machines see the run folder, so that the
bytes take the shortest way.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from largegnn.machine.mapped_file import file_behind

__all__ = ["MappedArray", "Sent", "opened", "parcel", "sent", "unpacked"]

_Artifact = TypeVar("_Artifact")


@dataclass(frozen=True)
class MappedArray:
    """Where an array lies: a file, the byte it begins at, its kind and shape."""

    file: str
    offset: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Sent:
    """An artifact on its way: its kind, and its fields, some of them named instead of sent."""

    kind: type[Any]
    fields: dict[str, Any]


def sent(artifact: Any) -> Sent:
    """The artifact as it is sent."""
    values = {field.name: getattr(artifact, field.name) for field in dataclasses.fields(artifact)}
    return Sent(type(artifact), {name: _named(value) for name, value in values.items()})


def opened(parcel: Sent) -> Any:
    """The artifact at its destination."""
    return parcel.kind(**{name: _open(value) for name, value in parcel.fields.items()})


def parcel(value: Any) -> Any:
    """A value as it is sent: an array by its name, where it has one, an artifact with its arrays by theirs."""
    if isinstance(value, np.ndarray):
        return _named(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Sent | MappedArray):
        packed = sent(value)
        return packed if any(isinstance(field, MappedArray) for field in packed.fields.values()) else value
    return value


def unpacked(value: Any) -> Any:
    """What was given to `parcel`."""
    return opened(value) if isinstance(value, Sent) else _open(value)


def _named(value: Any) -> Any:
    if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or not value.size:
        return value
    whole = file_behind(value)
    if whole is None:
        return value
    start = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return MappedArray(str(whole.filename), int(whole.offset + start), value.dtype.str, value.shape)


def _open(value: Any) -> Any:
    if not isinstance(value, MappedArray):
        return value
    return np.memmap(value.file, dtype=np.dtype(value.dtype), mode="r", offset=value.offset, shape=value.shape)
