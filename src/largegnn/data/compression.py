"""Read the bytes of a file, plain or compressed (gzip, bzip2, zstd), recognised by its first bytes, not by its name.

In: a path. Out: chunks of decompressed bytes, or a binary stream over them. A compressed file that is damaged or ends
too early is an `InputError`, never a shorter file. A small file may decompress to terabytes, but text does not: a file
whose decompressed size is both large and far above its compressed size is refused too. The stream classes of the
standard library are not used, since they ignore damage after the first stream of a file. Memory: one chunk of a few
megabytes, and the window of zstd.
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
# Magic numbers in full length, because a text may begin with BZh.
_MAGIC = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
_PLAIN_CHUNK = 1 << 22
# Small, because four bytes of zstd may decompress to 128 KiB, and its decompressor cannot stop in between.
_COMPRESSED_CHUNK = 1 << 11
_PIECE = 1 << 20
# Triples with long names in the most regular order compress to a two-hundredth at best. Up to 64 MiB are always
# allowed, since they do no harm.
_MAX_EXPANSION = 500
_ALWAYS_ALLOWED = 1 << 26
_ZSTD_WINDOW = 1 << 27  # the default limit of `zstd -d`
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def compression_of(path: Path) -> str | None:
    """Name the compression found in the first bytes of a file, or return None."""
    head = first_bytes(path, 16)
    return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


def read_chunks(path: Path) -> Iterator[bytes]:
    """Read the decompressed bytes of a file in chunks; an empty file yields no chunks."""
    compression = compression_of(path)
    with _open(path) as file:
        if compression is not None:
            yield from _decompressed(path, file, compression)
            return
        while chunk := file.read(_PLAIN_CHUNK):
            yield chunk


def read_head(path: Path, size: int) -> bytes:
    """Read the first decompressed bytes of a file, at most `size`."""
    head = b""
    for chunk in read_chunks(path):
        head += chunk
        if len(head) >= size:
            break
    return head[:size]


def first_bytes(path: Path, size: int) -> bytes:
    """Read the first bytes of a file without decompression, at most `size`."""
    with _open(path) as file:
        return file.read(size)


def without_marks(chunks: Iterator[bytes]) -> tuple[int, Iterator[bytes]]:
    """Remove UTF-8 byte-order marks, of which some files have several, from the beginning; returns their number too."""
    head = b""
    num_marks = 0
    while True:
        while len(head) < len(_BYTE_ORDER_MARK) and (chunk := next(chunks, b"")):
            head += chunk
        if not head.startswith(_BYTE_ORDER_MARK):
            return num_marks, chain([head], chunks)
        head = head[len(_BYTE_ORDER_MARK) :]
        num_marks += 1


def as_stream(chunks: Iterable[bytes]) -> io.BufferedReader:
    """Wrap chunks of bytes as a binary stream."""
    return io.BufferedReader(_ChunkStream(iter(chunks)), buffer_size=1 << 20)


def compressor(compression: str | None) -> Any:
    """Return an object with `compress` and `flush` for a compression of `SUFFIXES`; for None it changes nothing."""
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
    """Decompress an open file, which may hold several streams one after another."""
    stream = None
    size = 0
    while data := file.read(_COMPRESSED_CHUNK):
        while data:
            if stream is None:
                if compression == "gzip" and not data.strip(b"\0"):
                    break  # gzip files may be padded with zeros, as on tapes
                stream = _decompressor(compression)
            try:
                for piece in _pieces(stream, data):
                    size += len(piece)
                    if size > _ALWAYS_ALLOWED and size > _MAX_EXPANSION * file.tell():
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
    """Return an object with `decompress`, `eof` and `unused_data` for one stream."""
    if compression == "gzip":
        return zlib.decompressobj(wbits=31)
    if compression == "bzip2":
        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()


def _pieces(stream: Any, data: bytes) -> Iterator[bytes]:
    """Decompress a chunk; bzip2 in pieces, because a few of its bytes may decompress to many megabytes."""
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
        expected=f"at most {_MAX_EXPANSION} times its size, once it gives more than {allowed} MiB",
        found=f"{size >> 20:,} MiB out of {num_read:,} bytes, and more to come",
        fix="check where the file is from; if it is the right one, decompress it first",
    )
