"""The plain bytes of a tar, compressed or not, as `tarfile` reads them, within limits.

In: a path (plain, gzip, bzip2, zstd, which `data.compression` reads, or xz; told by content). Out: a `TarStream` with
`read`, `seek` and `tell`. It goes forward only, so that no header can lead `tarfile` round in circles, and it stops at
the end of the file, wherever a header says the next one is. How many bytes may come from how many compressed ones is
bounded, and so is the memory of the decompressor: one chunk is held at a time.
"""

from __future__ import annotations

import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path

from largegnn.data.compression import first_bytes, read_chunks
from largegnn.datasets.limits import Limits, over_limit

__all__ = ["TarStream"]

_CHUNK = 1 << 18
_END = bytes(tarfile.BLOCKSIZE)
_XZ = b"\xfd7zXZ\0"


class TarStream:
    """A forward stream over the plain bytes of an archive."""

    def __init__(self, archive: Path, limits: Limits) -> None:
        self._archive, self._limits = archive, limits
        is_xz = first_bytes(archive, len(_XZ)) == _XZ
        self._chunks = _xz_chunks(archive, limits) if is_xz else read_chunks(archive)
        self._rest, self._last, self._position = memoryview(b""), b"", 0

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
            if bytes(piece).strip(b"\0"):
                raise tarfile.ReadError("data after the end")

    def _take(self, most: int) -> memoryview:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rest = memoryview(chunk)
        piece, self._rest = self._rest[:most], self._rest[most:]
        self._position += len(piece)
        return piece


def _xz_chunks(archive: Path, limits: Limits) -> Iterator[bytes]:
    """The plain bytes of an xz file; `lzma.open` takes no limit of memory."""
    num_plain = 0
    with archive.open("rb") as file:
        data = file.read(_CHUNK)
        while data:
            decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.memory)
            while not decompressor.eof:
                chunk = _decompress(decompressor, data, archive, limits)
                num_plain += len(chunk)
                limits.check_expansion(num_plain, file.tell(), archive)
                yield chunk
                data = file.read(_CHUNK) if decompressor.needs_input else b""
                if decompressor.needs_input and not decompressor.eof and not data:
                    raise EOFError("the file stops in the middle")
            # Streams may follow each other, with zeros between them.
            data = (decompressor.unused_data + data).lstrip(b"\0")
            while not data and (padding := file.read(_CHUNK)):
                data = padding.lstrip(b"\0")


def _decompress(decompressor: lzma.LZMADecompressor, data: bytes, archive: Path, limits: Limits) -> bytes:
    try:
        return decompressor.decompress(data, _CHUNK)
    except lzma.LZMAError as error:
        if "memory" not in str(error).lower():
            raise
        raise over_limit(f"{limits.memory >> 20} MiB of memory to decompress", str(error), archive) from None
