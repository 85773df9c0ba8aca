"""The files of an archive, read by `zipfile` and `tarfile` within limits.

In: a zip or a tar (plain, gzip, bzip2, xz, zstd; told by content). Out: `list_files` gives names and sizes,
`extract_files` writes the chosen ones.

`tarfile` with the filter "data", and `zipfile`, keep what they write below one folder and leave owners and modes alone.
Only what they do not do is done by hand:
- limits on bytes, files, headers and memory (`limits.py`, `tar_stream.py`);
- names that lead outside are refused, not rewritten: data set folders are named after them;
- links and sparse files are refused: "data" takes links that stay inside, `zipfile` writes a link as a text file;
- damage is never the end: `tarfile` takes a bad header for the end, and looks at no checksum that comes after it.
Cost: a tar is decompressed once to list it and once to extract from it.
"""

from __future__ import annotations

import contextlib
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from largegnn.data.compression import first_bytes
from largegnn.datasets.limits import LIMITS, Limits, over_limit
from largegnn.datasets.tar_stream import TarStream
from largegnn.errors import InputError

__all__ = ["extract_files", "list_files"]

_Wanted = Mapping[PurePosixPath, Path]

_DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    # What both libraries let through from headers with impossible numbers and names.
    ValueError,
    LookupError,
    OverflowError,
    RecursionError,
    struct.error,
)


def list_files(archive: Path, limits: Limits = LIMITS) -> dict[PurePosixPath, int]:
    """Names and sizes of the plain files in an archive, which is read to its end; hidden ones are left out."""
    sizes: dict[PurePosixPath, int] = {}
    try:
        with _readable(archive):
            for name, size in (_zip_sizes if _is_zip(archive) else _tar_sizes)(archive, limits):
                if len(name) > limits.name:
                    raise over_limit(f"{limits.name:,} characters in a name", f"{len(name):,} characters", archive)
                path = _safe_path(name, archive)
                if "__MACOSX" in path.parts or path.name.startswith("."):
                    continue
                if path in sizes:
                    raise _distrusted("the archive holds a file twice", name, archive)
                sizes[path] = size
    except OSError as error:  # nothing is written here: a decompressor that met damage, or a file that cannot be read
        raise _damaged(archive, error) from None
    return sizes


def extract_files(archive: Path, wanted: _Wanted, beside: Path, limits: Limits = LIMITS) -> None:
    """Write each of the files `wanted` to its path, by way of the empty folder `beside`; `list_files` comes first."""
    with _readable(archive):
        for written, path in (_zip_files if _is_zip(archive) else _tar_files)(archive, wanted, beside, limits):
            path.parent.mkdir(parents=True, exist_ok=True)
            written.rename(path)


@contextlib.contextmanager
def _readable(archive: Path) -> Generator[None, None, None]:
    """Turn what the libraries say of a damaged archive into an `InputError`."""
    try:
        yield
    except _DAMAGE as error:
        raise _damaged(archive, error) from None
    except RuntimeError as error:  # zipfile's way to say: unknown method, password needed
        raise InputError("the archive cannot be unpacked", where=str(archive), found=str(error)) from None


def _damaged(archive: Path, error: Exception) -> InputError:
    return InputError(
        "this is no archive, or a damaged one",
        where=str(archive),
        expected="zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst",
        found=str(error) or "a file that stops in the middle",
        fix="fetch it again",
    )


def _distrusted(problem: str, name: str, archive: Path) -> InputError:
    fix = "do not trust this file; fetch another copy"
    return InputError(problem, where=str(archive), found=repr(name[:200]), fix=fix)


def _safe_path(name: str, archive: Path) -> PurePosixPath:
    # A Windows path knows both kinds of slash, and drives.
    path = PureWindowsPath(name)
    if path.anchor or ".." in path.parts or "\0" in name:
        raise _distrusted("the archive holds a name that leads outside its folder", name, archive)
    return PurePosixPath(*path.parts)


def _is_zip(archive: Path) -> bool:
    return first_bytes(archive, 2) == b"PK"


class _ZipReader(io.BufferedReader):
    """A file that refuses to be read in one large piece, as `zipfile` reads the list of files."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        super().__init__(io.FileIO(archive))
        self._archive, self._limits = archive, limits

    def read(self, size: int | None = -1, /) -> bytes:
        most = self._limits.directory
        data = super().read(most + 1 if size is None or size < 0 else min(size, most + 1))
        if len(data) > most:
            raise over_limit(f"{most:,} bytes in the list of files", f"{len(data):,} bytes or more", self._archive)
        return data


def _zip_sizes(archive: Path, limits: Limits) -> Iterator[tuple[str, int]]:
    with _ZipReader(archive, limits) as file, zipfile.ZipFile(file) as zipped:
        entries = zipped.infolist()
        limits.check_files(len(entries), archive)
        limits.check_expansion(sum(entry.file_size for entry in entries), archive.stat().st_size, archive)
        for entry in entries:
            if entry.is_dir():
                continue
            if stat.S_IFMT(entry.external_attr >> 16) not in {0, stat.S_IFREG}:
                raise _distrusted("the archive holds a link or a device", entry.filename, archive)
            if entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2}:
                # zipfile gives LZMA whatever memory it asks for.
                raise NotImplementedError(f"compression method {entry.compress_type}, not stored, deflate or bzip2")
            yield entry.filename, entry.file_size


def _zip_files(archive: Path, wanted: _Wanted, beside: Path, limits: Limits) -> Iterator[tuple[Path, Path]]:
    with _ZipReader(archive, limits) as file, zipfile.ZipFile(file) as zipped:
        for entry in zipped.infolist():
            path = None if entry.is_dir() else wanted.get(_safe_path(entry.filename, archive))
            if path is not None:
                yield Path(zipped.extract(entry, beside)), path


def _tar_sizes(archive: Path, limits: Limits) -> Iterator[tuple[str, int]]:
    for _, member in _tar_members(archive, limits):
        if not member.isdir():
            yield member.name, member.size


def _tar_files(archive: Path, wanted: _Wanted, beside: Path, limits: Limits) -> Iterator[tuple[Path, Path]]:
    for tar, member in _tar_members(archive, limits):
        path = None if member.isdir() else wanted.get(_safe_path(member.name, archive))
        if path is not None:
            tar.extract(member, beside, set_attrs=False, filter="data")
            yield beside / member.name, path


def _tar_members(archive: Path, limits: Limits) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """The files and folders of a tar in order; ends in an error unless the whole archive is sound."""
    stream = TarStream(archive, limits)
    with tarfile.open(fileobj=cast(IO[bytes], stream), mode="r:") as tar:
        count = 0
        while (member := tar.next()) is not None:
            count += 1
            limits.check_files(count, archive)
            if len(tar.pax_headers) > limits.shared_headers:
                raise over_limit(f"{limits.shared_headers} shared headers", f"{len(tar.pax_headers):,}", archive)
            # tarfile would keep each one, with a copy of the shared headers.
            tar.members.clear()  # type: ignore[attr-defined]
            if member.issparse() or not (member.isreg() or member.isdir()):
                raise _distrusted("the archive holds a link or a device, or a sparse file", member.name, archive)
            if member.size < 0:
                raise tarfile.ReadError("a file of less than no bytes")
            yield tar, member
        stream.check_end()
