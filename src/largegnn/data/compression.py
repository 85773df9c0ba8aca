"""Bytes of a file, whatever its compression: plain, gzip, bzip2 or zstd, told by the first bytes, not by the name.

In: a path. Out: chunks of unpacked bytes, or a binary stream over them. A packed file that ends too early or is damaged
is an `InputError`, never a shorter file; so is one that unpacks to far more than any text does (`unpacking.py`).
Memory: one chunk, of some megabytes.
"""

from __future__ import annotations

import bz2
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from largegnn.data.shown import shown
from largegnn.data.unpacking import unpack
from largegnn.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "SUFFIXES",
    "as_stream",
    "compression_of",
    "compressor",
    "first_bytes",
    "read_chunks",
    "read_head",
    "without_marks",
]

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
# As much of each magic number as there is: a text may well begin with BZh.
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_PLAIN_CHUNK = 1 << 22
_MARK = b"\xef\xbb\xbf"


def compression_of(path: Path) -> str | None:
    """Name of the compression found in the first bytes of a file, or None."""
    head = first_bytes(path, 16)
    return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


def read_chunks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, piece by piece; an empty file gives none."""
    compression = compression_of(path)
    with _open(path) as file:
        if compression is None:
            while chunk := file.read(_PLAIN_CHUNK):
                yield chunk
        else:
            yield from unpack(path, file, compression)


def read_head(path: Path, size: int) -> bytes:
    """The first unpacked bytes of a file, at most `size`."""
    head = b""
    for chunk in read_chunks(path):
        head += chunk
        if len(head) >= size:
            break
    return head[:size]


def first_bytes(path: Path, size: int) -> bytes:
    """The first bytes of a file as they stand on the disk, at most `size`."""
    with _open(path) as file:
        return file.read(size)


def without_marks(chunks: Iterator[bytes]) -> tuple[int, Iterator[bytes]]:
    """How many UTF-8 byte-order marks stand at the beginning, one or by mistake several, and the chunks without."""
    head, num_marks = b"", 0
    while True:
        while len(head) < len(_MARK) and (chunk := next(chunks, b"")):
            head += chunk
        if not head.startswith(_MARK):
            return num_marks, chain([head], chunks)
        head, num_marks = head[len(_MARK) :], num_marks + 1


def as_stream(chunks: Iterable[bytes]) -> io.BufferedReader:
    """A binary stream over chunks."""
    return io.BufferedReader(_ChunkStream(iter(chunks)), buffer_size=1 << 20)


def compressor(compression: str | None) -> Any:
    """An object with `compress` and `flush` for a compression of `SUFFIXES`, or one that compresses nothing."""
    if compression == "gzip":
        return zlib.compressobj(6, wbits=31)
    if compression == "bzip2":
        return bz2.BZ2Compressor()
    if compression == "zstd":
        import zstandard

        return zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
    return _NoCompressor()


class _NoCompressor:
    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _ChunkStream(io.RawIOBase):
    """A raw stream over an iterator of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _open(path: Path) -> io.BufferedReader:
    where = shown(str(path), 300)
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise InputError("a file was expected, but this is a folder", where=where) from None
    except FileNotFoundError:
        raise InputError("the file does not exist", where=where, fix="check the path") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("the file cannot be read", where=where, found=reason) from None
