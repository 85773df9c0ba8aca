"""Write files and folders atomically: completely or not at all.

In: a path, and a function that writes. Out: the file or folder. It is written under a temporary name in the same
folder, flushed to disk and renamed, so that a process that is killed leaves the old file or folder as it was. Each
process uses temporary names of its own; `sweep_partials` recognises and removes those that killed processes left.
A full disk or a folder that cannot be written is a `StorageError` with a fix. Cost: one flush for each file.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from largegnn.errors import StorageError

__all__ = ["ByteSink", "partial_path", "sweep_partials", "write_files", "write_folder", "write_text"]

_Result = TypeVar("_Result")
_FREE_SPACE = "nothing was left there; free some space or name another place, and try again"
_PARTIAL = re.compile(r".*\.\d+-[0-9a-f]{8}\.partial", re.DOTALL)


class ByteSink:
    """A file to append bytes to, which keeps the error of the operating system in `error`.

    polars reports a full disk differently for Parquet and CSV, and writes directly to the descriptor of a real file,
    not through Python. This object has no descriptor.
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
        """Write the buffered bytes."""
        try:
            self._file.flush()
        except OSError as error:
            self.error = error
            raise

    def tell(self) -> int:
        """The number of bytes written."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move in the file; polars needs the method, and never moves backwards."""
        return self._file.seek(offset, whence)

    def read(self, size: int = -1, /) -> bytes:
        """Raise an `OSError`; polars needs the method."""
        raise OSError("this file is open for writing only")


def write_files(writers: Mapping[Path, Callable[[ByteSink], object]], *, fix: str = _FREE_SPACE) -> None:
    """Write all files or none of them; missing folders are made. `fix` is the advice in the `StorageError`."""
    partials: dict[Path, Path] = {}
    with contextlib.ExitStack() as stack:
        for path, write in writers.items():
            with _as_storage_error(path, fix):
                path.parent.mkdir(parents=True, exist_ok=True)
                partials[path] = stack.enter_context(_removed_after(partial_path(path)))
                _write(partials[path], write)
        for path, partial in partials.items():
            with _as_storage_error(path, fix):
                partial.replace(path)


def write_text(path: Path, text: str, *, fix: str = _FREE_SPACE) -> None:
    """Write a text file in UTF-8."""
    write_files({path: lambda sink: sink.write(text.encode("utf-8"))}, fix=fix)


def write_folder(folder: Path, fill: Callable[[Path], _Result], *, fix: str = _FREE_SPACE) -> _Result:
    """Replace a folder by a new one, into which `fill` writes the files; returns the result of `fill`."""
    with _as_storage_error(folder, fix), _removed_after(partial_path(folder)) as partial:
        partial.mkdir(parents=True)
        result = fill(partial)
        for path in sorted(partial.rglob("*")):
            if path.is_file():
                _flush(path)
        _replace_folder(folder, partial)
    return result


def partial_path(path: Path) -> Path:
    """A temporary name beside `path` that no other process uses and that `sweep_partials` recognises."""
    # A name may have at most 255 bytes, so a long one is shortened.
    return path.with_name(f"{path.name[:40]}.{os.getpid()}-{secrets.token_hex(4)}.partial")


def sweep_partials(folder: Path) -> None:
    """Remove the temporary files that killed processes left in a folder; only its single writer may call this."""
    for path in [*folder.rglob("*.partial")]:
        if _PARTIAL.fullmatch(path.name):
            _remove(path)


def _write(path: Path, write: Callable[[ByteSink], object]) -> None:
    with path.open("xb") as file:
        sink = ByteSink(file)
        try:
            write(sink)
        except Exception:
            if sink.error is not None:
                raise sink.error from None
            raise
        sink.flush()
        os.fsync(file.fileno())


def _flush(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replace_folder(folder: Path, new: Path) -> None:
    """Rename `new` to `folder`; an existing folder is moved away first, because only empty ones can be replaced."""
    with _removed_after(partial_path(folder)) as old:
        with contextlib.suppress(FileNotFoundError):
            folder.rename(old)
        try:
            new.rename(folder)
        except OSError:
            with contextlib.suppress(OSError):
                old.rename(folder)
            raise


@contextlib.contextmanager
def _removed_after(partial: Path) -> Iterator[Path]:
    """Give a temporary path, and remove the file or folder that is there afterwards."""
    try:
        yield partial
    finally:
        _remove(partial)


@contextlib.contextmanager
def _as_storage_error(path: Path, fix: str) -> Iterator[None]:
    """Turn an `OSError` into a `StorageError` that names the path and the fix."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; {fix}") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
