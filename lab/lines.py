"""Add, read and replace records of benchmarks, which are lines of a JSON file.

In: figures and their `Origin`. Out: a file of lines, each `{"key": ..., figures ..., "origin": {...}}`. Keys are
unique. A replaced record moves to the folder `superseded` beside the file; no record is ever deleted.
Cost: the whole file is read to add a record, and rewritten to remove records.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lab.origin import Origin, origin_of, today
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_text
from largegnn.machine.locks import hold
from largegnn.settings import Settings

__all__ = ["SUPERSEDED", "add_line", "command", "read_lines", "supersede_lines", "write_rows"]

SUPERSEDED = "superseded"


def add_line(file: Path, key: str, origin: Origin, figures: Mapping[str, Any]) -> dict[str, Any]:
    """Add a record to a file of lines, under a lock; an existing key is refused."""
    line = {"key": key, **figures, "origin": origin.model_dump()}
    try:
        with hold(file.parent / ".lock", wait=True):
            if file.exists() and any(known["key"] == key for known in read_lines(file)):
                raise InputError("there is already a record with this key", where=str(file), found=key)
            with file.open("a", encoding="utf-8") as sink:
                sink.write(json.dumps(line) + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror or error}") from error
    return line


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read the records of a file of lines; a line that is not a record is refused with its number."""
    records = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("key"), str):
            raise InputError("not a record", where=f"{file}, line {number}", expected='{"key": ..., ...}', found=line)
        records.append(record)
    return records


def supersede_lines(file: Path, key: str, reason: str) -> int:
    """Move the records whose key matches (`*` matches any text) to `superseded`, with the reason and the date.

    No record can be lost: records are added there before they are removed here. Returns the number of moved records.
    """
    archive = file.parent / SUPERSEDED / file.name
    try:
        archive.parent.mkdir(exist_ok=True)
        with hold(file.parent / ".lock", wait=True):
            lines = read_lines(file)
            moved = [line for line in lines if fnmatchcase(line["key"], key)]
            if not moved:
                raise InputError("no record has such a key", where=str(file), found=key)
            note = {"superseded": today(), "reason": reason}
            before = archive.read_text(encoding="utf-8") if archive.exists() else ""
            write_text(archive, before + "".join(json.dumps(line | note) + "\n" for line in moved))
            kept = [line for line in lines if line not in moved]
            write_text(file, "".join(json.dumps(line) + "\n" for line in kept))
    except OSError as error:
        raise StorageError(f"cannot write {archive}: {error.strerror or error}") from error
    return len(moved)


def write_rows(
    file: Path, rows: Sequence[Mapping[str, Any]], data: Iterable[Path] = (), settings: Settings | None = None
) -> None:
    """Write a record for each row that a benchmark measured; the protocol of the records is the command line."""
    origin = origin_of(settings or Settings(), data, protocol={"command": command()}).model_dump()
    lines = [{"key": f"{file.stem} {number}", **row, "origin": origin} for number, row in enumerate(rows)]
    write_text(file, "".join(json.dumps(line) + "\n" for line in lines))


def command() -> str:
    """Return the command line of this program, without the folders of this machine."""
    return " ".join(Path(word).name if "/" in word else word for word in sys.argv)
