"""Bytes of a file, whatever it is packed in: plain, gzip, bzip2 or zstd, told by the first bytes, not by the name.

In: a path. Out: chunks of unpacked bytes, or a binary stream over them. A packed file that ends too early or is damaged
is an `InputError`, never a shorter file. Memory: one packed chunk and what it unpacks to.
"""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from largegnn.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["SUFFIXES", "compression_of", "compressor", "open_stream", "read_chunks", "read_head"]

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".zst": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}
_PACKED_CHUNK = 1 << 18
_PLAIN_CHUNK = 1 << 22


class _Decompressor(Protocol):
    """What zlib, bz2 and zstandard agree on."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes) -> bytes: ...


def _new_gzip() -> Any:
    return zlib.decompressobj(wbits=31)


def _new_zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()


_DECOMPRESSORS: dict[str, Callable[[], _Decompressor]] = {
    "gzip": _new_gzip,
    "bzip2": bz2.BZ2Decompressor,
    "zstd": _new_zstd,
}


def compression_of(path: Path) -> str | None:
    """Name of the packing found in the first bytes of a file, or None."""
    head = _first_bytes(path, 4)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def read_chunks(path: Path) -> Iterator[bytes]:
    """The unpacked bytes of a file, piece by piece; an empty file gives none."""
    packing = compression_of(path)
    with _open(path) as file:
        if packing is None:
            while chunk := file.read(_PLAIN_CHUNK):
                yield chunk
        else:
            yield from _unpack(path, file, packing)


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first unpacked bytes of a file, at most `size`."""
    head = b""
    for chunk in read_chunks(path):
        head += chunk
        if len(head) >= size:
            break
    return head[:size]


def open_stream(path: Path) -> io.BufferedReader:
    """The unpacked bytes of a file as a binary stream, a UTF-8 byte-order mark left out."""
    return io.BufferedReader(_ChunkStream(_without_mark(read_chunks(path))), buffer_size=1 << 20)


def compressor(packing: str | None) -> Any:
    """An object with `compress` and `flush` for a packing of `SUFFIXES`, or one that packs nothing."""
    if packing == "gzip":
        return zlib.compressobj(6, wbits=31)
    if packing == "bzip2":
        return bz2.BZ2Compressor()
    if packing == "zstd":
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


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= 3:
            yield head.removeprefix(b"\xef\xbb\xbf")
            break
    else:
        yield head
    yield from chunks


def _unpack(path: Path, file: io.BufferedReader, packing: str) -> Iterator[bytes]:
    new, member = _DECOMPRESSORS[packing], None
    while chunk := file.read(_PACKED_CHUNK):
        while chunk:
            if member is None:
                if packing == "gzip" and not chunk.strip(b"\0"):
                    break  # gzip files may be padded with zeros, and tape archives are
                member = new()
            try:
                data = member.decompress(chunk)
            except Exception as error:  # noqa: BLE001  (each library has its own exception for damaged data)
                raise InputError(
                    f"the {packing} file is damaged",
                    where=str(path),
                    found=str(error),
                    fix="fetch or make the file again",
                ) from None
            chunk = member.unused_data if member.eof else b""
            if member.eof:
                member = None
            if data:
                yield data
    if member is not None:
        raise InputError(
            f"the {packing} file ends too early",
            where=str(path),
            expected="a complete file",
            found=f"{path.stat().st_size:,} bytes that stop in the middle",
            fix="fetch or make the file again",
        )


def _first_bytes(path: Path, size: int) -> bytes:
    with _open(path) as file:
        return file.read(size)


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise InputError("a file was expected, but this is a folder", where=str(path)) from None
    except FileNotFoundError:
        raise InputError("the file does not exist", where=str(path), fix="check the path") from None
    except (OSError, ValueError) as error:
        raise InputError("the file cannot be read", where=str(path), found=str(error)) from None
