"""The manifest of a run folder: what each finished stage made, and whether it has the shape it must have.

In: JSON text. Out: the same, checked, or an `InputError`; and a `StageRecord` for each stage. The record of each stage
is written beside its artifacts too, so that a manifest that was deleted can be made again.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import re
import typing
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from largegnn.errors import InputError
from largegnn.runs.artifact_files import DamagedError, FileFacts, read_sealed, sealed

__all__ = ["FORMAT_VERSION", "StageRecord", "read_manifest", "rebuild_manifest", "stage_file", "stage_text"]

FORMAT_VERSION = 2
_log = logging.getLogger(__name__)
_STAGE_FILE = re.compile(r"(\d+)-\w+\.json")


@dataclasses.dataclass(frozen=True)
class StageRecord:
    """What the manifest says of one finished stage; `files` and `scalars` are by artifact, files by relative path."""

    fingerprint: str
    files: dict[str, dict[str, FileFacts]]
    scalars: dict[str, dict[str, Any]]
    settings: dict[str, Any]
    facts: dict[str, Any]
    seconds: float
    peak_memory_mb: float
    finished: str
    peak_gpu_mb: float | None = None


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in a file; one of another version or another shape is refused."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format_version"]
        if type(version) is int and version != FORMAT_VERSION:
            raise InputError(
                "the run folder was made by another version",
                where=str(path),
                expected=f"format {FORMAT_VERSION}",
                found=f"format {version}, made by largegnn {str(manifest.get('made_by', 'unknown'))[:100]}",
                fix="use that version, or another folder",
            )
        _check(manifest)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            "the run folder's manifest cannot be read",
            where=str(path),
            found=str(error)[:200],
            fix="remove manifest.json, which is made again from the records of the stages; or use another folder",
        ) from None
    return typing.cast(dict[str, Any], manifest)


def stage_file(number: int, name: str) -> str:
    """Where the record of a stage lies beside its artifacts."""
    return f"{number:02d}-{name}.json"


def stage_text(name: str, manifest: Mapping[str, Any]) -> str:
    """The record of one stage, with what the manifest says of the whole run, as text that carries its checksum."""
    return sealed({"stage": name, **manifest, "stages": {name: manifest["stages"][name]}})


def rebuild_manifest(folder: Path) -> dict[str, Any]:
    """What the records of the stages in a folder say together; empty where there are none."""
    manifest: dict[str, Any] = {}
    stages: dict[str, Any] = {}
    for path in sorted(path for path in folder.glob("*.json") if _STAGE_FILE.fullmatch(path.name)):
        try:
            content = read_sealed(path)
            if content.pop("stage", None) is None or content.get("format_version") != FORMAT_VERSION:
                continue
            _check(content)
        except (DamagedError, TypeError, KeyError) as error:
            _log.warning("%s: not used: %s", path, error)
            continue
        stages |= content["stages"]
        manifest = content
    return {**manifest, "stages": stages} if stages else {}


def _check(manifest: Any) -> None:
    """TypeError or KeyError where a manifest has not the shape this program gives it."""
    if type(manifest["format_version"]) is not int:
        raise TypeError("format_version is no number")
    for name, record in _object(manifest.get("stages", {}), "stages").items():
        _check_record(_object(record, f"stage {name}"), f"stage {name}")
    _object(manifest.get("settings", {}), "settings")
    for path, entry in _object(manifest.get("input_files", {}), "input_files").items():
        if not isinstance(_object(entry, path)["sha256"], str):
            raise TypeError(f"the checksum of {path} is no text")
    if manifest.get("input") is not None:
        for key, paths in _object(manifest["input"], "input").items():
            _texts(dict(enumerate(paths)) if isinstance(paths, list) else {key: paths}, f"input: {key}")


def _check_record(record: dict[str, Any], where: str) -> None:
    StageRecord(**record)
    _texts({key: record[key] for key in ("fingerprint", "finished")}, where)
    for key in ("seconds", "peak_memory_mb", "peak_gpu_mb"):
        if not isinstance(record.get(key), int | float | None):
            raise TypeError(f"{where}: {key} is no number")
    for key in ("settings", "facts"):
        _object(record[key], f"{where}: {key}")
    scalars = _object(record["scalars"], f"{where}: scalars")
    for key, files in _object(record["files"], f"{where}: files").items():
        _object(scalars[key], f"{where}: {key}")
        for file, facts in _object(files, f"{where}: {key}").items():
            known = _object(facts, f"{where}: {file}")
            if type(known["bytes"]) is not int or not isinstance(known["sha256"], str):
                raise TypeError(f"{where}: {file} has no size and checksum")
            if PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts:
                raise TypeError(f"{where}: {file} lies outside the run folder")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{where} is no JSON object")
    return value


def _texts(values: Mapping[Any, Any], where: str) -> None:
    if not all(isinstance(value, str) for value in values.values()):
        raise TypeError(f"{where} holds something that is no text")
