"""Find the input files of a run and take their checksums, without reading them as graphs.

In: what the user gave, or a run folder. Out: a `RunInput`, whose fingerprint is the content of the files, wherever they
lie. A checksum is computed again only if the size or the date of a file has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from largegnn.data.inputs import DataInput, find_files
from largegnn.errors import InputError
from largegnn.runfolder.artifact_files import file_checksum
from largegnn.runfolder.store import RunStore
from largegnn.settings import DataSettings

__all__ = ["InputFile", "RunInput", "describe_file", "find_input", "known_files", "manifest_entries"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InputFile:
    """The checksum of a file, and its size and date: while these stay, the checksum is not computed again."""

    sha256: str
    bytes: int | None = None
    modified_ns: int | None = None


@dataclass(frozen=True)
class RunInput:
    """What a run is made from; `given` is None where it is in the run folder alone."""

    given: DataInput | None
    files: Mapping[str, InputFile] = field(default_factory=dict)

    def plain(self) -> list[str]:
        """The checksums in a fixed order: the fingerprint covers content, not location."""
        return [file.sha256 for file in self.files.values()]

    def recorded(self) -> dict[str, str]:
        """Checksums by path, to name the file that changed."""
        return {path: file.sha256 for path, file in self.files.items()}


def known_files(store: RunStore) -> dict[str, InputFile]:
    """The input files that the manifest lists."""
    return {path: InputFile(**entry) for path, entry in store.manifest.get("input_files", {}).items()}


def manifest_entries(files: Mapping[str, InputFile]) -> dict[str, dict[str, object]]:
    """Input files as plain values for the manifest."""
    return {path: asdict(entry) for path, entry in files.items()}


def describe_file(path: Path, known: InputFile | None = None) -> InputFile:
    """Size, date and checksum of a file; the known checksum is taken if size and date agree."""
    try:
        status = path.stat()
        if known is not None and (known.bytes, known.modified_ns) == (status.st_size, status.st_mtime_ns):
            return known
        return InputFile(file_checksum(path), status.st_size, status.st_mtime_ns)
    except FileNotFoundError:
        raise InputError("the file does not exist", where=str(path), fix="check the path") from None
    except OSError as error:
        raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None


def find_input(given: DataInput | None, data: DataSettings, store: RunStore) -> RunInput:
    """Find the input of a run with the checksums of its files; if they are missing, use the recorded checksums."""
    known = known_files(store)
    if given is None:
        return RunInput(None, known)
    try:
        paths = find_files(given, data).paths()
        return RunInput(
            given, {str(path.resolve()): describe_file(path, known.get(str(path.resolve()))) for path in paths}
        )
    except InputError:
        begun_with = {name: str(path) for name, path in asdict(given).items() if path is not None}
        if "load" not in store.steps or begun_with != store.manifest.get("input"):
            raise
        # The run folder has moved to a machine without the input.
        _log.info("the input files cannot be found or read here; using what the run folder holds")
        return RunInput(given, known)
