"""Read a text file as blocks of whole lines, and check that it is text.

In: a path. Out: blocks of about 8 MB that end with a line break, without byte-order marks, and the number of the first
line of each block. Bytes that are not UTF-8, NUL bytes and endless lines are an `InputError` that names the line.
Memory: two blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from largegnn.data.compression import as_stream, read_chunks, read_head, without_marks
from largegnn.errors import InputError

__all__ = ["LineBlock", "LineEnds", "line_blocks", "location", "table_line_ends", "with_line_feeds"]

_BLOCK = 1 << 23
_MAX_LINE_BYTES = 1 << 25
_HEAD = 1 << 22
_LINE_END = re.compile(rb"\r\n|\r|\n")
_MANY_RETURNS = re.compile(rb"(?<!\r)\r+\n")  # a second conversion of line ends to CRLF leaves CR CR LF

# any: LF, CRLF and CR end lines. lf: LF and CRLF; CR alone is part of the text.
LineEnds = Literal["any", "lf"]


@dataclass(frozen=True)
class LineBlock:
    """Whole lines of a file, all with a line end; `first_line` counts from 1.

    `num_marks` counts the byte-order marks removed before the block, 0 except for the first block.
    """

    text: bytes
    first_line: int
    num_marks: int = 0


def location(path: Path, line: int) -> str:
    """Format a line of a file for messages."""
    return f"{path}, line {line:,}"


def line_blocks(path: Path, ends: LineEnds = "any") -> Iterator[LineBlock]:
    """Read a text file in blocks of whole lines."""
    num_marks, chunks = without_marks(read_chunks(path))
    first_line = 1
    rest = b""
    with as_stream(chunks) as stream:
        while chunk := stream.read(_BLOCK):
            text = rest + chunk
            end = text.rfind(b"\n") + 1
            if ends == "any":  # a CR at the very end may be followed by LF in the next chunk
                end = max(end, text.rfind(b"\r", 0, len(text) - 1) + 1)
            text, rest = text[:end], text[end:]
            if text:
                yield LineBlock(_checked(path, text, first_line, ends), first_line, num_marks)
                first_line += _count_lines(text, ends)
                num_marks = 0
            if len(rest) > _MAX_LINE_BYTES:
                raise InputError(
                    f"a line is longer than {_MAX_LINE_BYTES:,} bytes",
                    where=location(path, first_line),
                    fix="check that this is the right file, and that its lines end with line breaks",
                )
    if rest:
        ended = rest if rest.endswith(b"\r" if ends == "any" else b"\n") else rest + b"\n"
        yield LineBlock(_checked(path, ended, first_line, ends), first_line, num_marks)


def table_line_ends(path: Path) -> LineEnds:
    """Decide how lines end in a table without quoting: a lone CR ends lines only if there is no LF near the beginning.

    Otherwise a CR belongs to a name.
    """
    head = read_head(path, _HEAD)
    return "any" if b"\r" in head and b"\n" not in head else "lf"


def with_line_feeds(text: bytes, ends: LineEnds = "any") -> bytes:
    """Convert all line ends to LF."""
    if b"\r" not in text:
        return text
    if ends == "any":
        return _LINE_END.sub(b"\n", text)
    return _MANY_RETURNS.sub(b"\n", text) if b"\r\r\n" in text else text.replace(b"\r\n", b"\n")


def _count_lines(text: bytes, ends: LineEnds) -> int:
    returns = text.count(b"\r") - text.count(b"\r\n") if ends == "any" and b"\r" in text else 0
    return text.count(b"\n") + returns


def _checked(path: Path, text: bytes, first_line: int, ends: LineEnds) -> bytes:
    nul = text.find(b"\0")
    if nul >= 0:
        raise InputError(
            "this looks like a binary file, not text",
            where=location(path, first_line + _count_lines(text[:nul], ends)),
            found="a NUL byte",
            fix="give a text file in UTF-8 (UTF-16 has NUL bytes), or name the format with --format (such as parquet)",
        )
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "the file is not valid UTF-8",
            where=location(path, first_line + _count_lines(text[: error.start], ends)),
            found=f"the byte 0x{text[error.start]:02x}",
            fix="convert it, for example with `iconv -f LATIN1 -t UTF-8`",
        ) from None
    return text
