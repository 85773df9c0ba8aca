"""Pieces of work for the tests; imports nothing heavy, as every process that works on them imports this."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from largegnn.errors import InputError

__all__ = ["die_once", "refuse"]


def die_once(folder: Path, number: int) -> int:
    """The square of a number; the first process to be asked for 3 is killed."""
    if number == 3 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number**2


def refuse(number: int) -> None:
    """Refuse any number."""
    raise InputError(f"not {number}", fix="another")
