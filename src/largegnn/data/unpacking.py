"""Packed bytes become plain ones, piece by piece and within bounds.

In: an open file and the name of its packing. Out: pieces of about a megabyte. A file may be small and unpack to
terabytes; text does not. So a file is refused once it has given much in all and very much for what was read of it, and
a zstd file that asks for more memory than the zstd program gives by default. Memory: one piece and zstd's window.
"""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from largegnn.errors import InputError

__all__ = ["unpack"]

# Triples with long names in the most regular order pack to a two-hundredth at best; 32 MiB do no harm to anybody.
_MOST_EXPANSION = 500
_ALWAYS_ALLOWED = 1 << 25
_ZSTD_WINDOW = 1 << 27  # what `zstd -d` allows unless told otherwise
_PACKED_CHUNK = 1 << 18
_PIECE = 1 << 20
_ZSTD_SLICE = 1 << 11  # four bytes of zstd may stand for 128 KiB: a slice gives 64 MiB at most


class _Member(Protocol):
    """One packed stream of a file that may hold several."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Unpack more bytes."""

    def rest(self) -> bytes | None:
        """What was fed beyond the end of this stream; None before the end."""


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data and not self._stream.eof:
            yield self._stream.decompress(data, _PIECE)
            data = self._stream.unconsumed_tail

    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _Bzip2:
    def __init__(self) -> None:
        self._stream = bz2.BZ2Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        yield self._stream.decompress(data, _PIECE)
        while not self._stream.eof and not self._stream.needs_input:
            yield self._stream.decompress(b"", _PIECE)

    def rest(self) -> bytes | None:
        return self._stream.unused_data if self._stream.eof else None


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._stream: Any = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        self._rest: bytes | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_SLICE):
            yield self._stream.decompress(data[start : start + _ZSTD_SLICE])
            if self._stream.eof:
                self._rest = self._stream.unused_data + data[start + _ZSTD_SLICE :]
                return

    def rest(self) -> bytes | None:
        return self._rest


_MEMBERS: dict[str, Callable[[], _Member]] = {"gzip": _Gzip, "bzip2": _Bzip2, "zstd": _Zstd}


def unpack(path: Path, file: io.BufferedReader, packing: str) -> Iterator[bytes]:
    """The plain bytes of an open packed file; `path` is for messages."""
    member, size = None, 0
    while chunk := file.read(_PACKED_CHUNK):
        while chunk:
            if member is None:
                if packing == "gzip" and not chunk.strip(b"\0"):
                    break  # gzip files may be padded with zeros, and tape archives are
                member = _MEMBERS[packing]()
            for piece in _pieces(path, member, chunk, packing):
                size += len(piece)
                if size > _ALWAYS_ALLOWED and size > _MOST_EXPANSION * file.tell():
                    raise _too_much(path, packing, size, file.tell())
                if piece:
                    yield piece
            chunk = member.rest() or b""
            if member.rest() is not None:
                member = None
    if member is not None:
        raise InputError(
            f"the {packing} file ends too early",
            where=str(path),
            expected="a complete file",
            found=f"{path.stat().st_size:,} bytes that stop in the middle",
            fix="fetch or make the file again",
        )


def _pieces(path: Path, member: _Member, chunk: bytes, packing: str) -> Iterator[bytes]:
    pieces = member.feed(chunk)
    while True:
        try:
            piece = next(pieces, None)
        except Exception as error:  # noqa: BLE001  (each library has its own exception for damaged data)
            raise _refused(path, packing, str(error)) from None
        if piece is None:
            return
        yield piece


def _refused(path: Path, packing: str, reason: str) -> InputError:
    if "too much memory" in reason:
        return InputError(
            f"the {packing} file needs more memory to unpack than is allowed",
            where=str(path),
            expected=f"a window of at most {_ZSTD_WINDOW >> 20} MiB",
            fix="pack it again without --long and --ultra",
        )
    return InputError(
        f"the {packing} file is damaged", where=str(path), found=reason, fix="fetch or make the file again"
    )


def _too_much(path: Path, packing: str, size: int, packed: int) -> InputError:
    return InputError(
        f"the {packing} file unpacks to more than any text would",
        where=str(path),
        expected=f"at most {_MOST_EXPANSION} times its size, once it gives more than {_ALWAYS_ALLOWED >> 20} MiB",
        found=f"{size >> 20:,} MiB out of {packed:,} bytes, and more to come",
        fix="check where the file is from; if it is what you mean, unpack it first",
    )
