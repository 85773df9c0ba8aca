"""An artifact as a folder of files: one plain `.npy` for each array, which any numpy can read or map.

In: a frozen dataclass of arrays, mappings of arrays, plain values, and dataclasses of the same (under dotted names).
Out: the files with their sizes and checksums, and the plain values; and back, with the arrays mapped from the files.
Whatever a file holds that is not the array that was written is a `DamagedError`; the caller decides what to do.
No pickle anywhere. Cost: one pass to write and hash; reading costs one pass to hash, and pages on use.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tokenize
import types
import typing
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

__all__ = [
    "DamagedError",
    "FileFacts",
    "check_file",
    "file_checksum",
    "load_artifact",
    "pack",
    "read_sealed",
    "save_arrays",
    "sealed",
]

Array = np.ndarray[Any, Any]
_Artifact = TypeVar("_Artifact")
_SUFFIX = ".npy"
_SEAL = "sha256"


class DamagedError(Exception):
    """A file that is not, or not wholly, what was written."""


class FileFacts(typing.TypedDict):
    """What is noted of a file when it is written."""

    bytes: int
    sha256: str


def pack(artifact: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """A dataclass as arrays and plain values; those of nested dataclasses and named arrays under dotted keys."""
    arrays: dict[str, Array] = {}
    scalars: dict[str, Any] = {}
    for field in dataclasses.fields(artifact):
        value = getattr(artifact, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif dataclasses.is_dataclass(value):
            inner_arrays, inner_scalars = pack(value)
            arrays |= {f"{field.name}.{key}": array for key, array in inner_arrays.items()}
            scalars |= {f"{field.name}.{key}": scalar for key, scalar in inner_scalars.items()}
        elif isinstance(value, Mapping) and all(isinstance(array, np.ndarray) for array in value.values()):
            arrays |= {f"{field.name}.{key}": array for key, array in value.items()}
        else:
            scalars[field.name] = value
    return arrays, scalars


def save_arrays(arrays: Mapping[str, Array], folder: Path) -> dict[str, FileFacts]:
    """Write each array to a file of a folder that is there; returns the facts of each file by its name."""
    return {f"{name}{_SUFFIX}": _save_array(folder / f"{name}{_SUFFIX}", array) for name, array in arrays.items()}


def load_artifact(kind: type[_Artifact], files: Iterable[Path], scalars: Mapping[str, Any]) -> _Artifact:
    """The artifact whose arrays are in these files, mapped read-only; it checks itself as it is made."""
    arrays = {path.name.removesuffix(_SUFFIX): _map_array(path) for path in files}
    return typing.cast(_Artifact, _unpack(kind, arrays, scalars))


def check_file(path: Path, facts: FileFacts) -> None:
    """Refuse a file that is missing or not the one of which these facts were noted."""
    try:
        if path.stat().st_size != facts["bytes"] or file_checksum(path) != facts["sha256"]:
            raise DamagedError(f"{path} is not what was written")
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}") from error


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sealed(content: Mapping[str, Any]) -> str:
    """JSON text of an object that carries its own checksum."""
    return json.dumps({**content, _SEAL: _digest(content)}, indent=1) + "\n"


def read_sealed(path: Path) -> dict[str, Any]:
    """What `sealed` was given, if the file holds just that."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict) or content.pop(_SEAL, None) != _digest(content):
        raise DamagedError(f"{path} is not what was written")
    return content


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


class _HashedFile:
    """A file to write to that hashes what goes by; given a real one, numpy does not say that the disk is full.

    A piece is hashed by the `hasher` while it is written, which takes as long.
    """

    def __init__(self, file: IO[bytes], hasher: Executor) -> None:
        self._file, self._hash, self._hasher = file, hashlib.sha256(), hasher

    def write(self, data: bytes, /) -> int:
        hashed = self._hasher.submit(self._hash.update, data)
        written = self._file.write(data)
        hashed.result()
        return written

    def facts(self) -> FileFacts:
        return {"bytes": self._file.tell(), "sha256": self._hash.hexdigest()}


def _save_array(path: Path, array: Array) -> FileFacts:
    with path.open("xb") as file, ThreadPoolExecutor(1) as hasher:
        hashed = _HashedFile(file, hasher)
        np.lib.format.write_array(hashed, np.asarray(array, order="C"), allow_pickle=False)
        return hashed.facts()


def _map_array(path: Path) -> Array:
    try:
        return np.lib.format.open_memmap(path, mode="r")
    # What numpy makes of a header that is none; the last two of a shape no memory has room for.
    except (OSError, ValueError, TypeError, SyntaxError, tokenize.TokenError, MemoryError, OverflowError) as error:
        raise DamagedError(f"{path} is no array: {error}") from error


def _unpack(kind: Any, arrays: Mapping[str, Any], scalars: Mapping[str, Any]) -> Any:
    """The inverse of `pack`."""
    values: dict[str, Any] = {}
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name = field.name
        if name in arrays:
            values[name] = arrays[name]
        elif name in scalars:
            value = scalars[name]
            values[name] = tuple(value) if isinstance(value, list) else value
        else:
            inner, inside = [_below(f"{name}.", group) for group in (arrays, scalars)], _alternatives(hints[name])
            nested = [type_ for type_ in inside if dataclasses.is_dataclass(type_)]
            defaults = {field.default, field.default_factory} - {dataclasses.MISSING}
            if not nested and defaults:
                continue  # a folder that was written before there was such a thing
            if not nested and not any(typing.get_origin(type_) is Mapping for type_ in inside):
                raise KeyError(name)
            values[name] = _unpack(nested[0], *inner) if nested else inner[0]
    return kind(**values)


def _alternatives(type_: Any) -> tuple[Any, ...]:
    """The types a value may have: those of `X | None`, or the one."""
    is_union = typing.get_origin(type_) in (typing.Union, types.UnionType)
    return typing.get_args(type_) if is_union else (type_,)


def _below(prefix: str, group: Mapping[str, Any]) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in group.items() if key.startswith(prefix)}
