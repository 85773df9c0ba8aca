"""A run folder: artifacts in numbered folders, and a manifest that says what each one is and whether it may be trusted.

    manifest.json         stages done: fingerprint, files with checksums, seconds, peak memory, facts
    config.toml           the resolved settings
    01-task/triples.npy   one folder for each artifact, one file for each array, mapped when read
    01-load.json          the record of a stage, from which a manifest that was deleted is made again

A folder is written beside its place, flushed to disk and renamed; the manifest follows the same way, so a kill at any
moment leaves the last good state. A file is only read after its checksum was compared. No pickle anywhere.
Needs numpy alone: a run folder made on one machine continues on another that has little installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import shutil
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import sweep_partials, write_folder, write_text
from largegnn.machine.locks import hold_folder
from largegnn.runs.artifact_files import (
    DamagedError,
    FileFacts,
    check_file,
    file_checksum,
    load_artifact,
    pack,
    read_sealed,
    save_arrays,
    sealed,
)
from largegnn.runs.manifest import (
    FORMAT_VERSION,
    StageRecord,
    read_manifest,
    rebuild_manifest,
    stage_file,
    stage_text,
)

__all__ = ["FORMAT_VERSION", "RunStore", "StageRecord", "file_checksum", "fingerprint"]

_log = logging.getLogger(__name__)
_Artifact = TypeVar("_Artifact")
_MANIFEST, _SCRATCH = "manifest.json", "artifact.json"
_FIX = "what was finished before is intact, free some space and run again with --resume"


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
        """Write a stage's artifacts, then say in its record and in the manifest that they are there."""
        files: dict[str, dict[str, FileFacts]] = {}
        scalars: dict[str, dict[str, Any]] = {}
        for key, artifact in artifacts.items():
            arrays, scalars[key] = pack(artifact)
            place = f"{number:02d}-{key}"
            found = write_folder(self.folder / place, partial(save_arrays, arrays), fix=_FIX)
            files[key] = {f"{place}/{file}": facts for file, facts in found.items()}
            self._verified |= set(files[key])
        stages = dict(self.manifest.get("stages", {}))
        stages[name] = dataclasses.asdict(StageRecord(files=files, scalars=scalars, **record))
        manifest = {**self.manifest, "format_version": FORMAT_VERSION, "stages": stages}
        self.write_text(stage_file(number, name), stage_text(name, manifest))
        self.update_manifest(stages=stages)

    def load(self, stage: str, key: str, kind: type[_Artifact]) -> _Artifact:
        """Load one artifact, its arrays mapped from the files; the checksums are compared on first use."""
        record = self.stages[stage]
        try:
            self._verify(record, key)
            return load_artifact(kind, [self.folder / file for file in record.files[key]], record.scalars[key])
        except DamagedError as damage:
            raise StorageError(f"{damage}: it is damaged or missing; --resume makes it again") from damage

    def save_scratch(self, file: str, artifact: Any) -> None:
        """Write an artifact that can be made again at any time and is in no manifest; `file` becomes a folder."""
        arrays, scalars = pack(artifact)

        def fill(folder: Path) -> None:
            content = {"kind": type(artifact).__name__, "scalars": scalars, "files": save_arrays(arrays, folder)}
            (folder / _SCRATCH).write_text(sealed(content), encoding="utf-8")

        write_folder(self.folder / file, fill, fix=_FIX)

    def load_scratch(self, file: str, kind: type[_Artifact]) -> _Artifact | None:
        """Map what `save_scratch` wrote, if it is there and whole; what is damaged or of another kind is as if not."""
        folder = self.folder / file
        if not folder.exists():
            return None
        try:
            content = read_sealed(folder / _SCRATCH)
            if content["kind"] != kind.__name__:
                raise DamagedError(f"{folder} holds a {content['kind']}, not a {kind.__name__}")
            for name, facts in content["files"].items():
                check_file(folder / name, facts)
            return load_artifact(kind, [folder / name for name in content["files"]], content["scalars"])
        # Whole, but what a program of another version wrote: its values do not make what is asked for.
        except (DamagedError, AttributeError, IndexError, KeyError, TypeError, ValueError) as damage:
            _log.warning("%s: made again, it is damaged or not what was expected (%s)", folder, damage)
            return None

    def remove_scratch(self, file: str) -> None:
        """Remove what `save_scratch` wrote, if it is there."""
        shutil.rmtree(self.folder / file, ignore_errors=True)

    def is_intact(self, stage: str, key: str | None = None) -> bool:
        """Whether the files of a stage are there and are the ones that were written."""
        record = self.stages.get(stage)
        if record is None:
            return False
        try:
            for each in record.files if key is None else [key]:
                self._verify(record, each)
        except DamagedError as damage:
            _log.warning("%s", damage)
            return False
        return True

    def forget(self, stages: list[str]) -> None:
        """Take stages out of the manifest before they are computed anew, so that a kill leaves no half-truth."""
        known = self.stages
        gone = [name for name in stages if name in known]
        if not gone:
            return
        self.update_manifest(
            stages={name: record for name, record in self.manifest["stages"].items() if name not in gone}
        )
        for name in gone:
            self._verified -= {file for files in known[name].files.values() for file in files}
            for path in self.folder.glob(f"[0-9][0-9]-{name}.json"):
                with contextlib.suppress(OSError):  # the manifest goes before it
                    path.unlink()

    def update_manifest(self, **entries: Any) -> None:
        """Change entries of the manifest and write it."""
        self.manifest = {**self.manifest, "format_version": FORMAT_VERSION, **entries}
        self.write_text(_MANIFEST, json.dumps(self.manifest, indent=1) + "\n")

    def write_text(self, file: str, text: str) -> None:
        """Write a small text file, beside and renamed."""
        write_text(self.folder / file, text, fix=_FIX)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one writer, sweep away what an interrupted one left, and see what is there now."""
        with hold_folder(self.folder):
            sweep_partials(self.folder)
            self._verified.clear()
            self.manifest = self._read_manifest()
            if self.manifest and not (self.folder / _MANIFEST).exists():
                self.update_manifest()
            yield

    def _verify(self, record: StageRecord, key: str) -> None:
        for file, facts in record.files[key].items():
            if file not in self._verified:
                check_file(self.folder / file, facts)
                self._verified.add(file)

    def _read_manifest(self) -> dict[str, Any]:
        path = self.folder / _MANIFEST
        try:
            if path.exists():
                return read_manifest(path)
            manifest = rebuild_manifest(self.folder)
        except OSError as error:  # a name too long, a folder that may not be entered
            raise InputError(
                "the run folder cannot be read", where=str(self.folder)[:300], found=error.strerror or str(error)
            ) from None
        if manifest:
            _say_rebuilt(self.folder, ", ".join(manifest["stages"]))
        return manifest


@cache
def _say_rebuilt(folder: Path, names: str) -> None:
    """Once in a process: a folder is opened more than once before anything is written."""
    _log.warning("%s has no manifest; taken from the records of its stages: %s", folder, names)


def fingerprint(parts: Mapping[str, Any]) -> str:
    """A short name for exactly these values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]
