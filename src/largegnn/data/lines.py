"""Text files as blocks of whole lines, checked to be text.

In: a path. Out: blocks of about 32 MB that end with a line break, each with the number of its first line. CRLF becomes
LF and a byte-order mark is left out. Bytes that are no UTF-8, NUL bytes and endless lines are an `InputError` with the
line they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from largegnn.data.compression import open_stream
from largegnn.errors import InputError

__all__ = ["LineBlock", "line_blocks", "location"]

_BLOCK = 1 << 25
_LONGEST_LINE = 1 << 28


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, the last one ended too; `first_line` counts from 1."""

    text: bytes
    first_line: int


def location(path: Path, line: int) -> str:
    """How errors name a place in a file."""
    return f"{path}, line {line:,}"


def last_line_end(block: bytes) -> int:
    """Where the last whole line of a block ends."""
    return block.rfind(b"\n") + 1


def line_blocks(path: Path, cut: Callable[[bytes], int] = last_line_end) -> Iterator[LineBlock]:
    """Read a text file in blocks; `cut` says where a block may end."""
    first_line, rest = 1, b""
    with open_stream(path) as stream:
        while chunk := stream.read(_BLOCK):
            pending = rest + chunk
            end = cut(pending)
            block, rest = pending[:end], pending[end:]
            if len(rest) > _LONGEST_LINE:
                raise InputError(
                    f"a line is longer than {_LONGEST_LINE:,} bytes",
                    where=location(path, first_line + block.count(b"\n")),
                    fix="check that this is the file meant, and that its lines end with line breaks",
                )
            if block:
                yield _checked(path, block, first_line)
                first_line += block.count(b"\n")
    if rest:
        yield _checked(path, rest if rest.endswith(b"\n") else rest + b"\n", first_line)


def _checked(path: Path, block: bytes, first_line: int) -> LineBlock:
    nul = block.find(b"\0")
    if nul >= 0:
        raise InputError(
            "this looks like a binary file, not text",
            where=location(path, first_line + block.count(b"\n", 0, nul)),
            found="a NUL byte",
            fix="give a text file, or name the format with --format (parquet, say)",
        )
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "the file is not valid UTF-8",
            where=location(path, first_line + block.count(b"\n", 0, error.start)),
            found=f"the byte 0x{block[error.start]:02x}",
            fix="convert it, for example with `iconv -f LATIN1 -t UTF-8`",
        ) from None
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
    return LineBlock(block, first_line)
