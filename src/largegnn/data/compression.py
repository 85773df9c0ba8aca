"""Read the bytes of a file, plain or compressed (gzip, bzip2, zstd), recognised by its first bytes, not by its name.

In: a path. Out: chunks of decompressed bytes, or a binary stream over them. A compressed file that is damaged or ends
too early is an `InputError`, never a shorter file. A small file may decompress to terabytes, text does not: so is a
file that gives much in all and very much for what was read of it. The stream classes of the standard library are not
used since they ignore damage behind the first stream of a file. Memory: one chunk of some megabytes, and zstd's window.
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
# The whole of each magic number: a text may well begin with BZh.
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_PLAIN_CHUNK = 1 << 22
# Four bytes of zstd may stand for 128 KiB, and its decompressor cannot stop in between.
_COMPRESSED_CHUNK = 1 << 11
_PIECE = 1 << 20
# Triples with long names in the most regular order compress to a two-hundredth at best; some MiB do no harm.
_MOST_EXPANSION = 500
_ALWAYS_ALLOWED = 1 << 26
_ZSTD_WINDOW = 1 << 27  # the default limit of `zstd -d`
_MARK = b"\xef\xbb\xbf"


def compression_of(path: Path) -> str | None:
    """Name of the compression found in the first bytes of a file, or None."""
    head = first_bytes(path, 16)
    return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


def read_chunks(path: Path) -> Iterator[bytes]:
    """The decompressed bytes of a file in chunks; an empty file gives none."""
    compression = compression_of(path)
    with _open(path) as file:
        if compression is not None:
            yield from _decompressed(path, file, compression)
            return
        while chunk := file.read(_PLAIN_CHUNK):
            yield chunk


def read_head(path: Path, size: int) -> bytes:
    """The first decompressed bytes of a file, at most `size`."""
    head = b""
    for chunk in read_chunks(path):
        head += chunk
        if len(head) >= size:
            break
    return head[:size]


def first_bytes(path: Path, size: int) -> bytes:
    """The first bytes of a file as they are on the disk, at most `size`."""
    with _open(path) as file:
        return file.read(size)


def without_marks(chunks: Iterator[bytes]) -> tuple[int, Iterator[bytes]]:
    """The number of UTF-8 byte-order marks at the beginning, one or by mistake several, and the chunks without."""
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
    """An object with `compress` and `flush` for a compression of `SUFFIXES`, or one that changes nothing."""
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


def _decompressed(path: Path, file: io.BufferedReader, compression: str) -> Iterator[bytes]:
    """The decompressed bytes of an open file, which may hold several streams one after another."""
    stream, size = None, 0
    while data := file.read(_COMPRESSED_CHUNK):
        while data:
            if stream is None:
                if compression == "gzip" and not data.strip(b"\0"):
                    break  # gzip files may be padded with zeros, and tape archives are
                stream = _decompressor(compression)
            try:
                for piece in _pieces(stream, data):
                    size += len(piece)
                    if size > _ALWAYS_ALLOWED and size > _MOST_EXPANSION * file.tell():
                        raise _too_much(path, compression, size, file.tell())
                    if piece:
                        yield piece
            except InputError:
                raise
            except Exception as error:  # noqa: BLE001  (each library has its own exception for damaged data)
                raise _damaged(path, compression, str(error)) from None
            data = stream.unused_data if stream.eof else b""
            stream = None if stream.eof else stream
    if stream is not None:
        raise InputError(
            f"the {compression} file ends too early",
            where=str(path),
            expected="a complete file",
            found=f"{path.stat().st_size:,} bytes that stop in the middle",
            fix="fetch or make the file again",
        )


def _decompressor(compression: str) -> Any:
    """An object with `decompress`, `eof` and `unused_data` for one stream."""
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    if compression == "bzip2":
        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


def _pieces(stream: Any, data: bytes) -> Iterator[bytes]:
    """What a chunk decompresses to; of bzip2, where a few bytes may stand for many megabytes, piece by piece."""
    if not isinstance(stream, bz2.BZ2Decompressor):
        yield stream.decompress(data)
        return
    yield stream.decompress(data, _PIECE)
    while not stream.eof and not stream.needs_input:
        yield stream.decompress(b"", _PIECE)


def _damaged(path: Path, compression: str, reason: str) -> InputError:
    if "too much memory" in reason:
        return InputError(
            f"the {compression} file needs more memory to decompress than is allowed",
            where=str(path),
            expected=f"a window of at most {_ZSTD_WINDOW >> 20} MiB",
            fix="compress it again without --long and --ultra",
        )
    return InputError(
        f"the {compression} file is damaged", where=str(path), found=reason, fix="fetch or make the file again"
    )


def _too_much(path: Path, compression: str, size: int, num_read: int) -> InputError:
    allowed = _ALWAYS_ALLOWED >> 20
    return InputError(
        f"the {compression} file decompresses to more than any text would",
        where=str(path),
        expected=f"at most {_MOST_EXPANSION} times its size, once it gives more than {allowed} MiB",
        found=f"{size >> 20:,} MiB out of {num_read:,} bytes, and more to come",
        fix="check where the file is from; if it is the right one, decompress it first",
    )
