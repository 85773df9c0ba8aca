"""Pieces of work for the tests; imports nothing heavy, as every process that works on them imports this."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from largegnn.errors import InputError
from largegnn.machine.atomic import write_files

__all__ = ["die_early_or_late", "die_once", "full_disk", "refuse", "write_note"]


def die_once(folder: Path, number: int) -> int:
    """The square of a number; the first process to be asked for 3 is killed."""
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def refuse(number: int) -> None:
    """Refuse any number."""
    raise InputError(f"not {number}", fix="another")


def die_early_or_late(
    folder: Path, early: tuple[str, ...], late: tuple[str, ...], function: Callable[..., Any], *arguments: Any
) -> Any:
    """What a function gives; the first process to be asked for it is killed, before it works or when it has."""
    kind = function.__name__
    if kind in early and _is_first(folder / kind):
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(*arguments)
    if kind in late and _is_first(folder / kind):
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def _is_first(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def write_note(path: Path) -> None:
    """Write a small file."""
    write_files({path: lambda sink: sink.write(b"note")}, fix="free some space and run again with --resume")


def full_disk(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function does where nothing can be flushed to disk any more."""
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(os, "fsync", side_effect=error):
        return function(*arguments)
