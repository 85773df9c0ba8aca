"""Lines of a table become columns of text.

In: a block of lines, how many columns it has and which of them are wanted. Out: a frame, and what was skipped. Lines
without quotes are checked in one numpy pass (the separators must come in a fixed rhythm) and split in one polars pass;
CSV with quotes goes through the standard library, several times as slow. A row of another width is an `InputError` that
names its line, and the likely cause where the line shows one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from largegnn.data.lines import LineBlock, location
from largegnn.data.shown import shown
from largegnn.errors import InputError

__all__ = ["Columns", "Separator", "SplitBlock", "first_row", "first_rows", "record_end", "split_block"]

Separator = Literal["\t", ","]
_SEPARATOR_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces"}
_LONGEST_HEADER = 1 << 16
_ROWS = 100_000
_SHOWN = 1_000
_WINDOW = 1 << 20
_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class Columns:
    """The columns of a table: how many there are, the index and the name of those wanted, and the header row."""

    count: int
    wanted: tuple[int, ...]
    names: tuple[str, ...]
    header: tuple[str, ...] | None = None

    def select(self, table: pl.DataFrame) -> pl.DataFrame:
        """The columns wanted out of all."""
        return table.select(
            pl.nth(index).fill_null("").alias(name) for index, name in zip(self.wanted, self.names, strict=True)
        )


@dataclass(frozen=True)
class SplitBlock:
    """Rows of a table, without the blank lines and header rows; `where` names the place of a row."""

    frame: pl.DataFrame
    num_blank_lines: int
    num_header_rows: int
    path: Path
    block: LineBlock
    separator: Separator
    header: tuple[str, ...] | None

    def where(self, row: int) -> str:
        """The line of a row, found by going through the block again."""
        rows = _rows(self.block.text, self.separator)
        kept = (line for line, found in rows if found and tuple(found) != self.header)
        line = next(islice(kept, row, None), None)
        return str(self.path) if line is None else location(self.path, self.block.first_line + line)


def first_row(block: LineBlock, separator: Separator) -> tuple[str, ...] | None:
    """The first row of a block that is not blank; None where it is no possible header."""
    return next(iter(first_rows(block, separator, 1)), None)


def first_rows(block: LineBlock, separator: Separator, count: int) -> list[tuple[str, ...]]:
    """The first rows of a block that are not blank, as many as can be split and are not cut."""
    text = block.text[:_LONGEST_HEADER]
    rows: list[tuple[str, ...]] = []
    try:
        for _, found in _rows(text, separator):
            if found and len(rows) < count:
                rows.append(tuple(found))
            elif len(rows) == count:
                break
    except csv.Error:
        pass
    is_cut = len(text) < len(block.text) and 1 < len(rows) < count
    return rows[:-1] if is_cut else rows


def record_end(block: bytes) -> int:
    """Where the last whole CSV record ends: at the last line break that an even number of quotes stands before."""
    # A CR at the very end may belong to a LF that comes next.
    end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
    quotes = block.count(b'"', 0, end)
    if quotes % 2 == 0:
        return end
    for start in reversed(range(0, end, _WINDOW)):
        window = np.frombuffer(block, np.uint8, min(_WINDOW, end - start), start)
        is_quote = window == ord('"')
        quotes -= int(is_quote.sum())
        is_outside = (quotes + np.cumsum(is_quote, dtype=np.int32)) % 2 == 0
        breaks = np.flatnonzero(is_outside & ((window == ord("\n")) | (window == ord("\r"))))
        if len(breaks):
            return start + int(breaks[-1]) + 1
    return 0


def split_block(path: Path, block: LineBlock, separator: Separator, columns: Columns) -> SplitBlock:
    """Split the lines of a block; refuses rows of another width."""
    text = block.text
    if separator == "," and b'"' in text:
        return _split_quoted(path, block, columns)
    if b"\r" in text and separator == ",":
        text = _LINE_END.sub(b"\n", text)
    text, num_blank = _without_blank_lines(text)
    text, num_headers = _without_headers(text, separator, columns.header)
    if not _has_columns(text, separator, columns.count):
        raise _first_bad_line(path, block, separator, columns)
    frame = columns.select(_split(text, separator, columns.count))
    return SplitBlock(frame, num_blank, num_headers, path, block, separator, columns.header)


def _split(text: bytes, separator: Separator, count: int) -> pl.DataFrame:
    """Split lines that are known to have the right columns and no quoting."""
    schema = {f"column {number}": pl.String for number in range(count)}
    if not text:
        return pl.DataFrame(schema=schema)
    if text.startswith(_MARK):  # which polars drops; at the beginning of a block it belongs to a name
        text = _MARK + text
    return pl.read_csv(text, separator=separator, has_header=False, quote_char=None, schema=schema)


def _has_columns(text: bytes, separator: Separator, count: int) -> bool:
    """Whether every line has exactly the columns expected: the separators then come in a fixed rhythm."""
    data = np.frombuffer(text, dtype=np.uint8)
    code = ord(separator)
    separators = data[np.flatnonzero((data == code) | (data == ord("\n")))]
    if len(separators) % count:
        return False
    rhythm = separators.reshape(-1, count)
    return bool((rhythm[:, :-1] == code).all()) and bool((rhythm[:, -1] == ord("\n")).all())


def _without_blank_lines(text: bytes) -> tuple[bytes, int]:
    if not text.startswith(b"\n") and b"\n\n" not in text:
        return text, 0
    lines = text.split(b"\n")[:-1]
    kept = [line for line in lines if line]
    return b"\n".join([*kept, b""]), len(lines) - len(kept)


def _without_headers(text: bytes, separator: Separator, header: tuple[str, ...] | None) -> tuple[bytes, int]:
    """The header goes wherever it stands: files put together one after another have it in the middle too."""
    if header is None:
        return text, 0
    line = separator.join(header).encode("utf-8") + b"\n"
    count = 0
    if text.startswith(line):
        text, count = text[len(line) :], 1
    if text.startswith(line) or b"\n" + line in text:
        lines = text.split(b"\n")
        kept = [other for other in lines if other != line[:-1]]
        text, count = b"\n".join(kept), count + len(lines) - len(kept)
    return text, count


def _rows(text: bytes, separator: Separator) -> Iterator[tuple[int, list[str]]]:
    """The rows of a block by the plain rules, each with the number of lines before it; a blank line is []."""
    if separator == "\t":
        for line, row in enumerate(text.removesuffix(b"\n").split(b"\n")):
            yield line, row.decode("utf-8", "replace").split("\t") if row else []
        return
    csv.field_size_limit(1 << 30)  # literals may be long; the length of names is checked with all the others
    reader, line = csv.reader(io.StringIO(text.decode("utf-8", "replace"), newline=""), strict=True), 0
    for found in reader:
        yield line, found
        line = reader.line_num


def _split_quoted(path: Path, block: LineBlock, columns: Columns) -> SplitBlock:
    """Split CSV rows of any kind, by the rules of the standard library; names the first bad row."""
    schema = {f"column {number}": pl.String for number in range(columns.count)}
    frames = [pl.DataFrame(schema=schema)]
    rows: list[list[str]] = []
    num_blank = num_headers = before = 0
    header = None if columns.header is None else list(columns.header)
    try:
        for before, row in _rows(block.text, ","):
            if not row:
                num_blank += 1
            elif len(row) != columns.count:
                raise _wrong_columns(path, block.first_line + before, ",", columns, len(row), ",".join(row)[:_SHOWN])
            elif row == header:
                num_headers += 1
            else:
                rows.append(row)
                if len(rows) == _ROWS:
                    frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
                    rows = []
    except csv.Error as error:
        raise InputError(
            "the file is not valid CSV",
            where=location(path, block.first_line + before),
            found=str(error),
            fix='put names that hold commas, quotes or line breaks in "quotes" and double the quotes inside',
        ) from None
    frames.append(pl.DataFrame(rows, schema=schema, orient="row"))
    frame = columns.select(pl.concat(frames))
    return SplitBlock(frame, num_blank, num_headers, path, block, ",", columns.header)


def _first_bad_line(path: Path, block: LineBlock, separator: Separator, columns: Columns) -> InputError:
    """The error for the first line without quotes that has not exactly the columns expected."""
    for number, line in enumerate(_LINE_END.split(block.text) if separator == "," else block.text.split(b"\n")):
        found = line.count(separator.encode()) + 1
        if line and found != columns.count:
            text = line[:_SHOWN].decode("utf-8", "replace")
            return _wrong_columns(path, block.first_line + number, separator, columns, found, text)
    return InputError("the lines cannot be split into columns", where=str(path))


def _wrong_columns(path: Path, line: int, separator: Separator, columns: Columns, found: int, text: str) -> InputError:
    others = (other for other in "\t,;| " if other != separator and text.count(other) == columns.count - 1)
    likely = next(others, None)
    expected = f"{columns.count} columns separated by {_SEPARATOR_NAMES[separator]}"
    if line == 1 and columns.header is None:
        expected += f", or a header row that names them ({', '.join(columns.names)})"
    cause = f"the columns seem to be separated by {_SEPARATOR_NAMES[likely]}; " if likely else ""
    return InputError(
        "a line has the wrong number of columns",
        where=location(path, line),
        expected=expected,
        found=f"{found} in {shown(repr(text), 80)}",
        fix=f"{cause}mend the line, or name the right format with --format",
    )
