"""A file held against other processes: one writer at a time, let go by the system even when a process is killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["hold"]


@contextlib.contextmanager
def hold(file: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a file, made with its folder if need be; False where another process holds it and one does not `wait`.

    The file stays: removing it would let a third process hold a new one of the same name.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows has no advisory locks of this kind
        yield True
        return
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
