"""Pieces of work for the tests; imports nothing heavy, as every process that works on them imports this."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from largegnn.errors import InputError
from largegnn.machine.atomic import write_files

__all__ = ["die_early_and_late", "die_once", "full_disk", "refuse", "sum_range", "write_note"]


def die_once(number: int, folder: Path) -> int:
    """The square of a number; the first process to get 3 is killed."""
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def sum_range(start: int, stop: int, values: np.ndarray[Any, Any]) -> tuple[int, bool, bool]:
    """The sum of a range, whether it is mapped from a file, and whether this is a process of the tests."""
    return int(values[start:stop].sum()), getattr(values, "filename", None) is not None, "pytest" in sys.modules


def write_note(path: Path) -> None:
    """Write a small file."""
    write_files({path: lambda sink: sink.write(b"note")}, fix="free some space and run again with --resume")


def refuse(number: int) -> None:
    """Refuse any number."""
    raise InputError(f"not {number}", fix="another")


def die_early_and_late(folder: Path, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function; one process is killed before it computes one, and one when it has."""
    if _is_first(folder / "early"):
        os.kill(os.getpid(), signal.SIGKILL)
    result = function(*arguments)
    if _is_first(folder / "late"):
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def _is_first(file: Path) -> bool:
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def full_disk(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function does where nothing can be flushed to disk any more."""
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(os, "fsync", side_effect=error):
        return function(*arguments)
