"""Lock files and folders, so that one process at a time writes them; the system releases locks of killed processes.

In: a file to lock, or the folder it guards. What is inside the `with` happens in one process at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from largegnn.errors import InputError, StorageError

__all__ = ["hold", "hold_folder", "hold_place"]

_LOCK = ".lock"


@contextlib.contextmanager
def hold(file: Path, *, wait: bool) -> Iterator[bool]:
    """Lock a file, made with its folder if missing; gives False where another process has it and not `wait`.

    The file stays: only the process that has the lock may remove it (`hold_place`).
    """
    from filelock import FileLock, Timeout  # here, so that reading a run folder needs numpy alone

    file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(file, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        held = False
    else:
        held = True
    try:
        yield held
    finally:
        if held:
            lock.release()


@contextlib.contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, made if missing, for one writer; an error where another process works in it."""
    with _held_or_refused(folder, folder / _LOCK):
        yield


@contextlib.contextmanager
def hold_place(path: Path) -> Iterator[None]:
    """Lock the path of a file or folder that is made elsewhere and renamed to it; the lock's file is removed."""
    file = path.with_name(f".{path.name}{_LOCK}")
    with _held_or_refused(path, file):
        try:
            yield
        finally:
            # Safe while it is locked: a process that has opened this file finds that it is removed, and tries again.
            with contextlib.suppress(OSError):
                file.unlink()


@contextlib.contextmanager
def _held_or_refused(place: Path, file: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            held = stack.enter_context(hold(file, wait=False))
        except OSError as error:
            raise InputError(
                "the output folder cannot be written", where=str(place), found=error.strerror or str(error)
            ) from None
        if not held:
            raise StorageError(f"another process is working in {place}; wait for it or use another folder")
        yield
