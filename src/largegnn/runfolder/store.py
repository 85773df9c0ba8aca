"""Keep the results of a run's steps in a folder, with a checksum for every artifact.

    manifest.json         the run: input, settings, machine
    config.toml           the resolved settings
    01-load.json          the record of a step: fingerprint, files with checksums, seconds, peak memory, facts
    01-task/triples.npy   one folder for each artifact, one file for each array, mapped when read

A folder is written beside its place, flushed to disk and renamed; the record follows the same way and carries its own
checksum, so a kill at any moment leaves the last good state. Artifacts and records are only read after their checksums
were compared; the manifest is checked for shape, and repeated in every record. No pickle anywhere. Needs numpy alone: a
run folder made on one machine continues on another that has little installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import sweep_partials, write_folder, write_text
from largegnn.machine.locks import hold_folder
from largegnn.runfolder.artifact_files import (
    DamagedError,
    FileFacts,
    check_file,
    load_artifact,
    pack,
    read_sealed,
    save_arrays,
    sealed,
)

__all__ = ["FORMAT_VERSION", "RunStore", "StepRecord"]

FORMAT_VERSION = 3
_log = logging.getLogger(__name__)
_Artifact = TypeVar("_Artifact")
_MANIFEST, _SCRATCH = "manifest.json", "artifact.json"
_RECORD = re.compile(r"(\d\d)-(\w+)\.json")
_FIX = "finished steps are intact; free some space and run again with --resume"


@dataclasses.dataclass(frozen=True)
class StepRecord:
    """What is known of a finished step; `files` and `scalars` are by artifact, files by path relative to the folder.

    `arguments` are what the step was computed from: settings as plain values, everything else as fingerprints.
    """

    fingerprint: str
    arguments: dict[str, Any]
    files: dict[str, dict[str, FileFacts]]
    scalars: dict[str, dict[str, Any]]
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
        self.manifest, self.steps = self._read()

    def save_step(self, name: str, number: int, artifacts: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Write a step's artifacts, then its record; `facts` are the fields of the record besides the files."""
        files: dict[str, dict[str, FileFacts]] = {}
        scalars: dict[str, dict[str, Any]] = {}
        for key, artifact in artifacts.items():
            arrays, scalars[key] = pack(artifact)
            place = f"{number:02d}-{key}"
            found = write_folder(self.folder / place, partial(save_arrays, arrays), fix=_FIX)
            files[key] = {f"{place}/{file}": known for file, known in found.items()}
            self._verified |= set(files[key])
        record = StepRecord(files=files, scalars=scalars, **facts)
        earlier = [step for step in self.steps if step != name]
        content = {"step": name, "earlier": earlier, "run": self.manifest, "record": dataclasses.asdict(record)}
        self.write_text(f"{number:02d}-{name}.json", sealed(content))
        self.steps[name] = record

    def step_of(self, key: str) -> str | None:
        """The finished step that made an artifact."""
        return next((name for name, record in self.steps.items() if key in record.files), None)

    def load(self, step: str, key: str, kind: type[_Artifact]) -> _Artifact:
        """Load one artifact, its arrays mapped from the files; the checksums are compared on first use."""
        record = self.steps[step]
        try:
            self._verify(record, key)
            return load_artifact(kind, [self.folder / file for file in record.files[key]], record.scalars[key])
        except DamagedError as damage:
            raise StorageError(f"{damage}: it is damaged or missing; --resume makes it again") from damage

    def checksums(self, step: str, key: str) -> dict[str, str]:
        """The checksum of each array of an artifact, by the name of its file without suffix."""
        return {Path(file).stem: facts["sha256"] for file, facts in self.steps[step].files[key].items()}

    def is_intact(self, step: str, key: str | None = None) -> bool:
        """Whether the files of a step, or of one of its artifacts, exist and are the ones that were written."""
        record = self.steps.get(step)
        if record is None:
            return False
        try:
            for each in record.files if key is None else [key]:
                self._verify(record, each)
        except DamagedError as damage:
            _log.warning("%s", damage)
            return False
        return True

    def forget(self, names: Iterable[str]) -> None:
        """Remove the records of steps before computing them anew, so that a kill leaves no record without its files."""
        for name in [name for name in names if name in self.steps]:
            record = self.steps.pop(name)
            self._verified -= {file for files in record.files.values() for file in files}
            for path in self.folder.glob(f"[0-9][0-9]-{name}.json"):
                path.unlink(missing_ok=True)

    def save_scratch(self, file: str, artifact: Any) -> None:
        """Write an artifact that can be made again at any time and has no record; `file` becomes a folder."""
        arrays, scalars = pack(artifact)

        def fill(folder: Path) -> None:
            content = {"kind": type(artifact).__name__, "scalars": scalars, "files": save_arrays(arrays, folder)}
            (folder / _SCRATCH).write_text(sealed(content), encoding="utf-8")

        write_folder(self.folder / file, fill, fix=_FIX)

    def load_scratch(self, file: str, kind: type[_Artifact]) -> _Artifact | None:
        """Map what `save_scratch` wrote, if it exists and is whole; anything else counts as missing."""
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
        # Damaged, or written by another version with other fields: it is made again.
        except (DamagedError, AttributeError, IndexError, KeyError, TypeError, ValueError) as damage:
            _log.warning("%s: made again, it is damaged or not what was expected (%s)", folder, damage)
            return None

    def remove_scratch(self, file: str) -> None:
        """Remove what `save_scratch` wrote, if it exists."""
        shutil.rmtree(self.folder / file, ignore_errors=True)

    def update_manifest(self, **entries: Any) -> None:
        """Change entries of the manifest and write it."""
        self.manifest = {**self.manifest, "format_version": FORMAT_VERSION, **entries}
        self.write_text(_MANIFEST, json.dumps(self.manifest, indent=1) + "\n")

    def write_text(self, file: str, text: str) -> None:
        """Write a small text file, beside its place and renamed."""
        write_text(self.folder / file, text, fix=_FIX)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for one writer, remove what an interrupted one left, and read it anew."""
        with hold_folder(self.folder):
            sweep_partials(self.folder)
            self._verified.clear()
            self.manifest, self.steps = self._read()
            if self.manifest and not (self.folder / _MANIFEST).exists():
                self.update_manifest()
            yield

    def _verify(self, record: StepRecord, key: str) -> None:
        for file, facts in record.files[key].items():
            if file not in self._verified:
                check_file(self.folder / file, facts)
                self._verified.add(file)

    def _read(self) -> tuple[dict[str, Any], dict[str, StepRecord]]:
        """The manifest and the records of the finished steps, in their order."""
        try:
            manifest = _read_manifest(self.folder / _MANIFEST)
            found: dict[str, StepRecord] = {}
            for path in sorted(self.folder.glob("[0-9][0-9]-*.json")):
                content = _read_record(path)
                if content is None:
                    continue
                lost = [step for step in content["earlier"] if step not in found]
                if lost:
                    _log.warning("%s: not used: the record of step %s is missing or damaged", path, lost[0])
                    continue
                found[content["step"]] = StepRecord(**content["record"])
                last_manifest = content["run"]
        except OSError as error:  # a name too long, a folder that may not be entered
            raise InputError(
                "the run folder cannot be read", where=str(self.folder)[:300], found=error.strerror or str(error)
            ) from None
        if found and not manifest:
            _log_lost_manifest(self.folder)
            manifest = last_manifest
        return manifest, found


@cache
def _log_lost_manifest(folder: Path) -> None:
    """Once in a process: a folder is opened more than once before anything is written."""
    _log.warning("%s has no manifest; taken from the records of its steps", folder)


def _read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in a file, empty where there is none; one of another version or another shape is refused."""
    if not path.exists():
        return {}
    try:
        manifest = _object(json.loads(path.read_text(encoding="utf-8")), "manifest")
        version = manifest["format_version"]
        if type(version) is not int:
            raise TypeError("format_version is not a number")
        if version != FORMAT_VERSION:
            raise InputError(
                "the run folder was made by another version",
                where=str(path),
                expected=f"format {FORMAT_VERSION}",
                found=f"format {version}, made by largegnn {str(manifest.get('made_by', 'unknown'))[:100]}",
                fix="use that version, or another folder",
            )
        _check_manifest(manifest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            "the run folder's manifest cannot be read",
            where=str(path),
            found=str(error)[:200],
            fix="remove manifest.json, whose content is also in the records of the steps; or use another folder",
        ) from None
    return manifest


def _check_manifest(manifest: Any) -> None:
    """TypeError or KeyError where a manifest does not have the shape this program gives it."""
    _object(_object(manifest, "manifest").get("settings", {}), "settings")
    for file, entry in _object(manifest.get("input_files", {}), "input_files").items():
        _text(_object(entry, file)["sha256"], f"the checksum of {file}")
    for key, value in _object(manifest.get("input") or {}, "input").items():
        _text(value, f"input: {key}")


def _read_record(path: Path) -> dict[str, Any] | None:
    """The record of a step, with its name and the manifest; None where it is damaged: the step is computed again."""
    match = _RECORD.fullmatch(path.name)
    if match is None:
        return None
    try:
        content = read_sealed(path)
        _check_manifest(content["run"])
        if content["run"]["format_version"] != FORMAT_VERSION or content["step"] != match[2]:
            raise TypeError("it belongs to another step or version")
        if not isinstance(content["earlier"], list):
            raise TypeError("the earlier steps are not a list")
        _check_record(StepRecord(**content["record"]))
    except (DamagedError, TypeError, KeyError) as error:
        _log.warning("%s: not used: %s", path, error)
        return None
    return content


def _check_record(record: StepRecord) -> None:
    """TypeError or KeyError where a record does not have the shape this program gives it."""
    for text in (record.fingerprint, record.finished):
        _text(text, "a field of the record")
    for number in (record.seconds, record.peak_memory_mb, record.peak_gpu_mb):
        if not isinstance(number, int | float | None):
            raise TypeError(f"{number!r} is not a number")
    for group in (record.arguments, record.facts, record.scalars):
        _object(group, "a field of the record")
    for key, files in _object(record.files, "files").items():
        _object(record.scalars[key], key)
        for file, facts in _object(files, key).items():
            known = _object(facts, file)
            if type(known["bytes"]) is not int or not isinstance(known["sha256"], str):
                raise TypeError(f"{file} has no size and checksum")
            if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
                raise TypeError(f"{file} lies outside the run folder")


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{name} is not a JSON object")
    return value


def _text(value: Any, name: str) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} is not text")
