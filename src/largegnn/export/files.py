"""Files that are there whole or not at all.

In: paths, and for each a function that writes to a binary stream. Out: the files. Each is written beside its place,
flushed to disk, and only when all of them are is any renamed. Whatever goes wrong before leaves nothing behind; what
stood there before is as it was. A disk that is full or a folder that cannot be written is a `StorageError`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from largegnn.errors import StorageError

__all__ = ["ByteSink", "write_files"]


class ByteSink:
    """A file to append bytes to; remembers what the system said when it refused.

    polars reports a full disk in one way for Parquet and another for CSV, and given a real file writes past Python. It
    is therefore given this, which has no descriptor to write past.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Append bytes."""
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        """Hand to the system what is still held back."""
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise

    def tell(self) -> int:
        """How many bytes were written."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move; polars asks for it, and never moves back."""
        return self._file.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        """Nothing can be read; polars looks whether the method is there."""
        raise OSError("this file is only written")


def write_files(writers: Mapping[Path, Callable[[ByteSink], None]]) -> None:
    """Write all of these files, or none; folders on the way to them are made."""
    partials: dict[Path, Path] = {}
    path = Path()
    try:
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            partials[path] = path.parent / f"{path.name}.partial"
            _write(partials[path], write)
        for path, partial in partials.items():
            partial.replace(path)
    except BaseException as error:
        for partial in partials.values():
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageError(
                f"cannot write {path}: {error.strerror or error}; nothing was left there, "
                "free some space or name another place and export again"
            ) from error
        raise


def _write(path: Path, write: Callable[[ByteSink], None]) -> None:
    with path.open("wb") as file:
        sink = ByteSink(file)
        try:
            write(sink)
        except Exception:
            if sink.error is not None:
                raise sink.error from None
            raise
        sink.flush()
        os.fsync(file.fileno())
