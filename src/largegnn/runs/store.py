"""A run folder: artifacts in numbered files, and a manifest that says what each one is and whether it may be trusted.

    manifest.json      stages done: fingerprint, files with checksums, seconds, peak memory, facts
    config.toml        the resolved settings
    01-task.npz ...    arrays, uncompressed, so that they can be mapped into memory

A file is written beside its place, flushed to disk and renamed; the manifest follows the same way, so a kill at any
moment leaves the last good state. A file is only read after its checksum was compared. No pickle anywhere.
Needs numpy alone: a run folder made on one machine continues on another that has little installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import typing
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from largegnn.errors import InputError, StorageError
from largegnn.machine.locks import hold

__all__ = ["FORMAT_VERSION", "RunStore", "StageRecord", "file_checksum", "fingerprint"]

FORMAT_VERSION = 1
_log = logging.getLogger(__name__)
_Artifact = TypeVar("_Artifact")
_MANIFEST, _LOCK = "manifest.json", ".lock"
_ALIGNMENT = 64  # bytes; arrays mapped from a file start at such a multiple


@dataclasses.dataclass(frozen=True)
class StageRecord:
    """What the manifest says of one finished stage."""

    fingerprint: str
    files: dict[str, dict[str, Any]]
    scalars: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    facts: dict[str, Any]
    seconds: float
    peak_memory_mb: float
    finished: str
    peak_gpu_mb: float | None = None


class RunStore:
    """Saves and loads the artifacts of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: set[str] = set()
        self.manifest = self._read_manifest()

    @property
    def stages(self) -> dict[str, StageRecord]:
        """The finished stages, in the order they were finished."""
        return {name: StageRecord(**record) for name, record in self.manifest.get("stages", {}).items()}

    def save_stage(self, name: str, number: int, artifacts: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Write a stage's artifacts, then say in the manifest that they are there."""
        files, scalars = {}, {}
        for key, artifact in artifacts.items():
            arrays, scalars[key] = _pack(artifact)
            file = f"{number:02d}-{key}.npz"
            self._write(file, lambda path, arrays=arrays: _save_arrays(path, arrays))  # type: ignore[misc]
            path = self.folder / file
            files[key] = {"file": file, "bytes": path.stat().st_size, "sha256": file_checksum(path)}
            self._verified.add(file)
        stages = dict(self.manifest.get("stages", {}))
        stages[name] = dataclasses.asdict(StageRecord(files=files, scalars=scalars, **record))
        self.update_manifest(stages=stages)

    def load(self, stage: str, key: str, kind: type[_Artifact]) -> _Artifact:
        """Load one artifact, its arrays mapped from the file; the checksum is compared on first use."""
        record = self.stages[stage]
        if not self.is_intact(stage, key):
            raise StorageError(f"{self.folder / record.files[key]['file']} is damaged or missing")
        arrays = _load_arrays(self.folder / record.files[key]["file"])
        return typing.cast(_Artifact, _unpack(kind, arrays, record.scalars[key]))

    def save_scratch(self, file: str, artifact: Any) -> None:
        """Write an artifact that can be made again at any time and is in no manifest."""
        (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
        self._write(file, lambda path: _save_arrays(path, _pack(artifact)[0]))

    def load_scratch(
        self, file: str, kind: type[_Artifact], scalars: Mapping[str, Any] | None = None
    ) -> _Artifact | None:
        """Map what `save_scratch` wrote, if it is there; the rename says that it is whole.

        Only arrays were written: plain values must be known to the caller.
        """
        path = self.folder / file
        return typing.cast(_Artifact, _unpack(kind, _load_arrays(path), scalars or {})) if path.is_file() else None

    def is_intact(self, stage: str, key: str | None = None) -> bool:
        """Whether the files of a stage are there and are the ones that were written."""
        record = self.stages.get(stage)
        if record is None:
            return False
        for entry in record.files.values() if key is None else [record.files[key]]:
            file, path = entry["file"], self.folder / entry["file"]
            if file in self._verified:
                continue
            if not path.is_file() or path.stat().st_size != entry["bytes"] or file_checksum(path) != entry["sha256"]:
                _log.warning("%s is missing or not what was written", path)
                return False
            self._verified.add(file)
        return True

    def forget(self, stages: list[str]) -> None:
        """Take stages out of the manifest before they are computed anew, so that a kill leaves no half-truth."""
        kept = {name: record for name, record in self.manifest.get("stages", {}).items() if name not in stages}
        if len(kept) != len(self.manifest.get("stages", {})):
            for name in stages:
                record = self.manifest["stages"].get(name)
                self._verified -= {entry["file"] for entry in (record["files"].values() if record else ())}
            self.update_manifest(stages=kept)

    def update_manifest(self, **entries: Any) -> None:
        """Change entries of the manifest and write it."""
        self.manifest = {**self.manifest, "format_version": FORMAT_VERSION, **entries}
        self.write_text(_MANIFEST, json.dumps(self.manifest, indent=1) + "\n")

    def write_text(self, file: str, text: str) -> None:
        """Write a small text file, beside and renamed."""
        self._write(file, lambda path: path.write_text(text, encoding="utf-8"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one writer, and sweep away what an interrupted one left."""
        with contextlib.ExitStack() as stack:
            try:
                held = stack.enter_context(hold(self.folder / _LOCK, wait=False))
            except OSError as error:
                raise InputError(
                    "the output folder cannot be written", where=str(self.folder), found=error.strerror or str(error)
                ) from None
            if not held:
                raise StorageError(f"another process is working in {self.folder}; wait for it or use another folder")
            for leftover in self.folder.glob("*.partial"):
                leftover.unlink(missing_ok=True)
            yield

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST
        if not path.exists():
            return {}
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            version = manifest["format_version"]
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                "the run folder's manifest cannot be read",
                where=str(path),
                fix="use another folder, or remove this one",
            ) from None
        if version != FORMAT_VERSION:
            raise InputError(
                "the run folder was made by another version",
                where=str(path),
                expected=f"format {FORMAT_VERSION}",
                found=f"format {version}, made by largegnn {manifest.get('made_by', 'unknown')}",
                fix="use that version, or another folder",
            )
        return typing.cast(dict[str, Any], manifest)

    def _write(self, file: str, write: Callable[[Path], Any]) -> None:
        """Write beside, flush to disk, rename; leave nothing behind if that fails."""
        partial = self.folder / f"{file}.partial"
        try:
            write(partial)
            with partial.open("rb+") as handle:
                os.fsync(handle.fileno())
            partial.replace(self.folder / file)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise StorageError(
                f"cannot write {self.folder / file}: {error.strerror or error}; "
                "what was finished before is intact, free some space and run again with --resume"
            ) from error


def fingerprint(parts: Mapping[str, Any]) -> str:
    """A short name for exactly these values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _pack(artifact: Any) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """A dataclass as arrays and plain values, nested ones under dotted keys."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    scalars: dict[str, Any] = {}
    for field in dataclasses.fields(artifact):
        value = getattr(artifact, field.name)
        if dataclasses.is_dataclass(value):
            inner_arrays, inner_scalars = _pack(value)
            arrays |= {f"{field.name}.{key}": array for key, array in inner_arrays.items()}
            scalars |= {f"{field.name}.{key}": scalar for key, scalar in inner_scalars.items()}
        elif isinstance(value, np.ndarray):
            arrays[field.name] = value
        else:
            scalars[field.name] = value
    return arrays, scalars


def _unpack(kind: Any, arrays: Mapping[str, Any], scalars: Mapping[str, Any]) -> Any:
    """The inverse of `_pack`; the dataclass checks itself as it is made."""
    values: dict[str, Any] = {}
    types = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        prefix = f"{field.name}."
        if dataclasses.is_dataclass(types[field.name]):
            inner_arrays = {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}
            inner_scalars = {
                key.removeprefix(prefix): value for key, value in scalars.items() if key.startswith(prefix)
            }
            values[field.name] = _unpack(types[field.name], inner_arrays, inner_scalars)
        elif field.name in arrays:
            values[field.name] = arrays[field.name]
        else:
            value = scalars[field.name]
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _save_arrays(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """An uncompressed .npz whose arrays start at aligned offsets, so that they can be mapped."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            assert archive.fp is not None
            # 30 bytes of header, the name, 20 bytes of 64-bit sizes, 4 bytes before our padding.
            before = archive.fp.tell() + 30 + len(entry.filename) + 20 + 4
            padding = -before % _ALIGNMENT
            entry.extra = b"\x35\xd9" + padding.to_bytes(2, "little") + b"\0" * padding
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _load_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz made by `_save_arrays`, mapped read-only."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            file.seek(entry.header_offset + 26)
            name_size, extra_size = np.frombuffer(file.read(4), dtype="<u2").tolist()
            file.seek(entry.header_offset + 30 + name_size + extra_size)
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(file)
            order: typing.Literal["F", "C"] = "F" if fortran else "C"
            name = entry.filename.removesuffix(".npy")
            if 0 in shape:
                arrays[name] = np.empty(shape, dtype, order)
            else:
                arrays[name] = np.memmap(path, dtype, "r", file.tell(), shape, order)
    return arrays
