"""Add, read and replace records of benchmarks, which are lines of a JSON file.

In: figures and their `Origin`. Out: a file of lines, each `{"key": ..., figures ..., "origin": {...}}`. A key is there
once; a record that is replaced moves to the folder `superseded` beside the file, and none is ever deleted.
Cost: the file is read to add a line, and written anew to take one away.
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
    """Add a record to a file of lines, whoever else adds to it; a key that is there already is refused."""
    line = {"key": key, **figures, "origin": origin.model_dump()}
    try:
        with hold(file.parent / ".lock", wait=True):
            if file.exists() and any(known["key"] == key for known in read_lines(file)):
                raise InputError("a record of this key is there already", where=str(file), found=key)
            with file.open("a", encoding="utf-8") as sink:
                sink.write(json.dumps(line) + "\n")
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror or error}") from error
    return line


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The records of a file of lines; a line that is none is refused with its number."""
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict) or not isinstance(record.get("key"), str):
            raise InputError("not a record", where=f"{file}, line {number}", expected='{"key": ..., ...}', found=line)
        found.append(record)
    return found


def supersede_lines(file: Path, key: str, reason: str) -> int:
    """Move the records whose key fits (`*` stands for anything) to `superseded`, with the reason and the day.

    None is ever deleted: they are added there before they are taken away here. Returns how many there were.
    """
    older = file.parent / SUPERSEDED / file.name
    try:
        older.parent.mkdir(exist_ok=True)
        with hold(file.parent / ".lock", wait=True):
            lines = read_lines(file)
            moved = [line for line in lines if fnmatchcase(line["key"], key)]
            if not moved:
                raise InputError("no record has such a key", where=str(file), found=key)
            about = {"superseded": today(), "reason": reason}
            before = older.read_text(encoding="utf-8") if older.exists() else ""
            write_text(older, before + "".join(json.dumps(line | about) + "\n" for line in moved))
            kept = [line for line in lines if line not in moved]
            write_text(file, "".join(json.dumps(line) + "\n" for line in kept))
    except OSError as error:
        raise StorageError(f"cannot write {older}: {error.strerror or error}") from error
    return len(moved)


def write_rows(
    file: Path, rows: Sequence[Mapping[str, Any]], data: Iterable[Path] = (), settings: Settings | None = None
) -> None:
    """Write what a benchmark measured, a record for each row; the protocol is the command that was called."""
    origin = origin_of(settings or Settings(), data, protocol={"command": command()}).model_dump()
    lines = [{"key": f"{file.stem} {number}", **row, "origin": origin} for number, row in enumerate(rows)]
    write_text(file, "".join(json.dumps(line) + "\n" for line in lines))


def command() -> str:
    """How this program was called, without the folders of this machine."""
    return " ".join(Path(word).name if "/" in word else word for word in sys.argv)
