"""The files a run was made from: what tells one from another, and whether it is still the same."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from largegnn.data.inputs import DataInput, find_files
from largegnn.errors import InputError
from largegnn.runs.store import RunStore, file_checksum
from largegnn.settings import Settings

__all__ = ["InputFile", "InputFiles", "checksum_input", "describe_file", "known_files", "plain_files"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputFile:
    """The checksum of a file, and its size and date: while these stay, the checksum is not computed again."""

    sha256: str
    bytes: int | None = None
    modified_ns: int | None = None


InputFiles = Mapping[str, InputFile]


def known_files(store: RunStore) -> dict[str, InputFile]:
    """What the manifest says the run was made from."""
    return {path: InputFile(**entry) for path, entry in store.manifest.get("input_files", {}).items()}


def plain_files(files: InputFiles) -> dict[str, dict[str, object]]:
    """The same as it stands in the manifest."""
    return {path: asdict(entry) for path, entry in files.items()}


def describe_file(path: Path, known: InputFile | None = None) -> InputFile:
    """Size, date and checksum of a file; what is known is taken if the first two agree."""
    try:
        status = path.stat()
        if known is not None and (known.bytes, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            return known
        return InputFile(file_checksum(path), status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        raise InputError("the file does not exist", where=str(path), fix="check the path") from None
    except OSError as error:
        raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None


def checksum_input(given: DataInput | None, settings: Settings, store: RunStore) -> dict[str, InputFile]:
    """The input files of a run in a fixed order; those that are not here any more are taken as they were."""
    known = known_files(store)
    if given is None:
        return known
    try:
        files = find_files(given, settings.data).paths()
        return {str(path.resolve()): describe_file(path, known.get(str(path.resolve()))) for path in files}
    except InputError:
        begun_with = {name: str(path) for name, path in asdict(given).items() if path is not None}
        if "load" not in store.stages or begun_with != store.manifest.get("input"):
            raise
        # The run folder has moved to a machine without the input: what it holds is still what it was made from.
        _log.info("the input files are not here; the run folder is taken as it is")
        return known
