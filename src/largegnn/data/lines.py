"""Text files as blocks of whole lines, checked to be text.

In: a path. Out: blocks of about 32 MB that end with a line break, each with the number of its first line;
byte-order marks are left out. What ends a line is the format's affair (`LineEnds`). Bytes that are no UTF-8, NUL bytes
and endless lines are an `InputError` with the line they are in. Memory: two blocks; a block of very short lines is
handed out in pieces, since whoever splits it keeps something for every line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from largegnn.data.compression import as_stream, read_chunks, without_marks
from largegnn.errors import InputError

__all__ = ["UNKNOWN_LINE", "LineBlock", "LineEnds", "last_line_end", "line_blocks", "location", "range_blocks"]

_BLOCK = 1 << 25
_LONGEST_LINE = 1 << 25
_MOST_LINES = 1 << 20
UNKNOWN_LINE = 0  # the first line of a block that was read by itself
_CR_RUN = re.compile(rb"(?<!\r)\r+\n")  # what a second conversion of line ends leaves

# any: LF, CRLF and CR, as in N-Triples. file: LF and CRLF; CR alone only where the file has no LF, else it belongs to
# a name, as in TSV. kept: all three end a line and nothing is changed, since CSV may quote them.
LineEnds = Literal["any", "file", "kept"]


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, the last one ended too; `first_line` counts from 1, `num_marks` is for the first block."""

    text: bytes
    first_line: int
    num_marks: int = 0


def location(path: Path, line: int) -> str:
    """How errors name a place in a file."""
    return f"{path}, line {line:,}"


def last_line_end(block: bytes) -> int:
    """Where the last whole line of a block ends."""
    return block.rfind(b"\n") + 1


def _count_lines(block: bytes, ends: LineEnds) -> int:
    """How many line breaks a block has."""
    others = block.count(b"\r") - block.count(b"\r\n") if ends == "kept" and b"\r" in block else 0
    return block.count(b"\n") + others


def line_blocks(
    path: Path, cut: Callable[[bytes], int] = last_line_end, ends: LineEnds = "file"
) -> Iterator[LineBlock]:
    """Read a text file in blocks; `cut` says where a block may end."""
    num_marks, chunks = without_marks(read_chunks(path))
    first_line, rest = 1, b""
    with as_stream(_with_line_feeds(chunks, ends)) as stream:
        while chunk := stream.read(_BLOCK):
            pending = rest + chunk
            end = cut(pending)
            block, rest = pending[:end], pending[end:]
            if len(rest) > _LONGEST_LINE:
                raise InputError(
                    f"a line is longer than {_LONGEST_LINE:,} bytes",
                    where=location(path, first_line + _count_lines(block, ends)),
                    fix="check that this is the file meant, that its lines end with line breaks, "
                    "and that every quote is closed",
                )
            for piece in _pieces(block, cut):
                yield LineBlock(_checked(path, piece, first_line, ends), first_line, num_marks)
                first_line, num_marks = first_line + _count_lines(piece, ends), 0
    if rest:
        if not rest.endswith(b"\n") and not (ends == "kept" and rest.endswith(b"\r")):
            rest += b"\n"
        for piece in _pieces(rest, cut):
            yield LineBlock(_checked(path, piece, first_line, ends), first_line, num_marks)
            first_line, num_marks = first_line + _count_lines(piece, ends), 0


def range_blocks(path: Path, text: bytes, is_first: bool, ends: LineEnds) -> Iterator[LineBlock]:
    """The blocks of a range of a file by itself, which begins where a line begins and ends with LF or with the file.

    Only for the first range of a file the numbers of its lines are known. CR alone must not end lines by `file`.
    """
    num_marks, chunks = without_marks(iter([text])) if is_first else (0, iter([text]))
    whole = b"".join(_with_line_feeds(chunks, ends) if ends == "any" else chunks)
    first_line = 1 if is_first else UNKNOWN_LINE
    for piece in _pieces(whole if whole.endswith(b"\n") else whole + b"\n", last_line_end):
        yield LineBlock(_checked(path, piece, first_line, ends), first_line, num_marks)
        first_line, num_marks = first_line + _count_lines(piece, ends) if is_first else UNKNOWN_LINE, 0


def _with_line_feeds(chunks: Iterator[bytes], ends: LineEnds) -> Iterator[bytes]:
    """The chunks with LF for CR, where CR ends lines."""
    if ends == "kept":
        yield from chunks
        return
    if ends == "file":
        first = next((chunk for chunk in chunks if chunk), b"")
        chunks = chain([first], chunks)
        if b"\n" in first or b"\r" not in first:
            yield from chunks
            return
    held = b""
    for chunk in chunks:
        chunk = held + chunk
        held = b"\r" if chunk.endswith(b"\r") else b""  # the LF that belongs to it may come next
        chunk = chunk[: len(chunk) - len(held)]
        yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk
    if held:
        yield b"\n"


def _pieces(block: bytes, cut: Callable[[bytes], int]) -> Iterator[bytes]:
    """A block, in halves where it has too many lines."""
    if len(block) <= _MOST_LINES or block.count(b"\n") + block.count(b"\r") <= _MOST_LINES:
        if block:
            yield block
        return
    middle = cut(block[: len(block) // 2])
    if not middle:
        yield block
        return
    yield from _pieces(block[:middle], cut)
    yield from _pieces(block[middle:], cut)


def _checked(path: Path, block: bytes, first_line: int, ends: LineEnds) -> bytes:
    nul = block.find(b"\0")
    if nul >= 0:
        raise InputError(
            "this looks like a binary file, not text",
            where=location(path, first_line + _count_lines(block[:nul], ends)),
            found="a NUL byte",
            fix="give a text file in UTF-8 (UTF-16 has NUL bytes), or name the format with --format (parquet, say)",
        )
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            "the file is not valid UTF-8",
            where=location(path, first_line + _count_lines(block[: error.start], ends)),
            found=f"the byte 0x{block[error.start]:02x}",
            fix="convert it, for example with `iconv -f LATIN1 -t UTF-8`",
        ) from None
    if ends == "file" and b"\r\n" in block:
        block = _CR_RUN.sub(b"\n", block) if b"\r\r\n" in block else block.replace(b"\r\n", b"\n")
    return block
