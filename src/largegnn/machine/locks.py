"""Lock files and folders, so that only one process at a time writes them.

In: a file to lock, or the folder or path to guard. Out: context managers; only one process at a time is inside the
`with` block. The operating system releases the locks of killed processes.
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
    """Lock a file, which is made with its folder if missing; gives whether the lock is held.

    With `wait` it waits until the file is free, else it gives False if another process holds the lock. The file is not
    removed: only the process that holds the lock may do that (see `hold_place`).
    """
    from filelock import FileLock, Timeout  # imported here, so that reading a run folder needs only numpy

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
    """Lock a folder, which is made if missing, for one writer; a `StorageError` if another process works in it."""
    with _held_or_refused(folder, folder / _LOCK):
        yield


@contextlib.contextmanager
def hold_place(path: Path) -> Iterator[None]:
    """Lock the path to which a finished file or folder will be renamed; the lock file is removed afterwards."""
    file = path.with_name(f".{path.name}{_LOCK}")
    with _held_or_refused(path, file):
        try:
            yield
        finally:
            # Removing it is safe while it is locked: a process that has opened it notices the removal, and tries again.
            with contextlib.suppress(OSError):
                file.unlink()


@contextlib.contextmanager
def _held_or_refused(guarded: Path, file: Path) -> Iterator[None]:
    """Lock `file`, which guards the path `guarded`, without waiting."""
    with contextlib.ExitStack() as stack:
        try:
            held = stack.enter_context(hold(file, wait=False))
        except OSError as error:
            raise InputError(
                "the output folder cannot be written", where=str(guarded), found=error.strerror or str(error)
            ) from None
        if not held:
            raise StorageError(f"another process is working in {guarded}; wait for it or use another folder")
        yield
