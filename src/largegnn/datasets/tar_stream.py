"""The plain bytes of a tar, compressed or not, as `tarfile` reads them, within limits.

In: an open file (plain, gzip, bzip2, xz, zstd; told by content). Out: a `TarStream` with `read`, `seek` and `tell`.
It goes forward only, so that no header can lead `tarfile` round in circles; it stops at the end of the file, wherever a
header says the next one is; it checks after each chunk how many bytes came from how many compressed ones.
Memory: one chunk and what the decompressor needs, which is bounded too.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from largegnn.datasets.limits import Limits, over_limit

__all__ = ["TarStream"]

_CHUNK = 1 << 18
_END = bytes(tarfile.BLOCKSIZE)


class TarStream:
    """A forward stream over the plain bytes of an archive."""

    def __init__(self, file: BinaryIO, archive: Path, limits: Limits) -> None:
        self._file, self._archive, self._limits = file, archive, limits
        self._chunks = _bounded(_plain_chunks(file, limits), archive, limits)
        self._rest, self._position, self._num_received = b"", 0, 0
        self._last = b""

    def tell(self) -> int:
        """How many bytes were read or skipped."""
        return self._position

    def seek(self, position: int) -> None:
        """Skip to a position, or to the end if that comes first."""
        if position < self._position:
            raise tarfile.ReadError("a header leads back to where it stands")
        while self._position < position and self._take(position - self._position):
            pass

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer at the end."""
        # Data is read in small pieces; only a header is read whole, however long it says it is.
        if size > self._limits.header:
            raise over_limit(f"{self._limits.header:,} bytes in a header", f"{size:,} bytes", self._archive)
        pieces = []
        while size > 0 and (piece := self._take(size)):
            pieces.append(piece)
            size -= len(piece)
        self._last = b"".join(pieces)
        return self._last

    def check_end(self) -> None:
        """Refuse an archive unless a block of zeros was read last and only zeros follow; checks its checksum too."""
        if self._last != _END:
            raise tarfile.ReadError("a damaged header, or a file that stops in the middle")
        while piece := self._take(_CHUNK):
            if piece.strip(b"\0"):
                raise tarfile.ReadError("data after the end")

    def _take(self, most: int) -> bytes:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._num_received += len(chunk)
            self._limits.check_expansion(self._num_received, self._file.tell(), self._archive)
            self._rest = chunk
        piece, self._rest = self._rest[:most], self._rest[most:]
        self._position += len(piece)
        return piece


def _bounded(chunks: Iterator[bytes], archive: Path, limits: Limits) -> Iterator[bytes]:
    """`chunks`, where a decompressor that asks for too much memory is named as such."""
    try:
        yield from chunks
    except (lzma.LZMAError, zstandard.ZstdError) as error:
        if "memory" not in str(error).lower():
            raise
        raise over_limit(f"{limits.memory >> 20} MB of memory to decompress", str(error), archive) from None


def _plain_chunks(file: BinaryIO, limits: Limits) -> Iterator[bytes]:
    magic = file.read(6)
    file.seek(0)
    stream: IO[bytes] = file
    if magic.startswith(b"\xfd7zXZ\0"):
        return _xz_chunks(file, limits)
    if magic.startswith(b"\x1f\x8b"):
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=file))
    elif magic.startswith(b"BZh"):
        stream = bz2.BZ2File(file)
    elif magic.startswith(b"\x28\xb5\x2f\xfd"):
        # A cut zstd file ends without a word; the tar's own end, or its lack, tells.
        decompressor = zstandard.ZstdDecompressor(max_window_size=limits.memory)
        stream = decompressor.stream_reader(file, read_across_frames=True)
    return iter(lambda: stream.read(_CHUNK), b"")


def _xz_chunks(file: BinaryIO, limits: Limits) -> Iterator[bytes]:
    """The plain bytes of an xz file; `lzma.open` takes no limit of memory."""
    data = file.read(_CHUNK)
    while data:
        decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.memory)
        while not decompressor.eof:
            yield decompressor.decompress(data, _CHUNK)
            data = file.read(_CHUNK) if decompressor.needs_input else b""
            if decompressor.needs_input and not decompressor.eof and not data:
                raise EOFError("the file stops in the middle")
        data = decompressor.unused_data.lstrip(b"\0")
        while not data and (padding := file.read(_CHUNK)):
            data = padding.lstrip(b"\0")
