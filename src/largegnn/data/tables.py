"""Read TSV and CSV: three columns of a triple file, two columns of links or names, or a row for each entity.

In: a path. Out: rows as columns of text, block by block. TSV has no quoting (names hold quotes in real data sets); CSV
follows RFC 4180. A header is recognised by its words (`columns.py`); without a header the columns are read from left to
right. Blocks without quotes are checked in one numpy pass (every line must have the same number of separators) and
split by polars; from the first quote on, a CSV file is read by the standard library, several times as slowly. A row of
the wrong width is an `InputError` that names its line, and the likely cause if the line shows one.
"""

from __future__ import annotations

import contextlib
import csv
import io
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from largegnn.data.batch import Block, ReadCounts, Reader, TripleBatch
from largegnn.data.columns import (
    LINKS,
    NAMES,
    TRIPLES,
    Roles,
    Rows,
    entities_of,
    find_key,
    is_key_word,
    links_of,
    looks_like_header,
    names_of,
    pick_columns,
    plain_word,
    table_without_key,
    triples_of,
)
from largegnn.data.lines import LineBlock, LineEnds, line_blocks, location, table_line_ends, with_line_feeds
from largegnn.data.shown import listed, shown
from largegnn.errors import InputError

__all__ = ["CSV", "TSV"]

_log = logging.getLogger(__name__)
_SEPARATOR_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars", " ": "spaces"}
_FIRST_ROWS, _FIRST_BYTES = 10_000, 1 << 20
_COMPARED_WIDTHS, _MANY_ROWS = 10, 20
_QUOTED_ROWS, _QUOTED_CHARS = 100_000, 1 << 24  # of a batch
_MAX_FIELD_CHARS = 1 << 24
_SHOWN = 1_000
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_Batch = TypeVar("_Batch")


@dataclass(frozen=True)
class _Columns:
    """The columns of a table: their number, the indices of the wanted columns by name, and the header row."""

    count: int
    wanted: dict[str, int]
    header: tuple[str, ...] | None = None

    @classmethod
    def in_order(cls, roles: Roles) -> _Columns:
        """Return the columns of a table without a header."""
        return cls(len(roles.names), {name: index for index, name in enumerate(roles.names)})

    def select(self, table: pl.DataFrame) -> pl.DataFrame:
        """Select the wanted columns."""
        return table.select(pl.nth(index).fill_null("").alias(name) for name, index in self.wanted.items())


def _line_ends(path: Path, separator: str) -> LineEnds:
    return table_line_ends(path) if separator == "\t" else "any"


def _first_rows(path: Path, separator: str) -> list[list[str]]:
    """Read the first rows of a table, as far as they can be split."""
    ends = _line_ends(path, separator)
    block = next((block for block in line_blocks(path, ends) if block.text.strip(b"\r\n")), LineBlock(b"", 1))
    text = with_line_feeds(block.text[:_FIRST_BYTES], ends).decode("utf-8", "replace")
    lines = text.split("\n")[:-1] or [text]  # the last line may be incomplete
    if separator == "\t":
        return [line.split("\t") for line in lines[:_FIRST_ROWS] if line]
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # reading the whole file reports the bad line
        rows.extend(row for _, row in islice(_csv_rows(f"{line}\n" for line in lines), _FIRST_ROWS) if row)
    return rows


def _csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Split rows by the rules of CSV; yields the number of lines before each row, and the row ([] for a blank line)."""
    csv.field_size_limit(_MAX_FIELD_CHARS)
    reader = csv.reader(lines, strict=True)
    line = 0
    try:
        for row in reader:
            yield line, row
            line = reader.line_num
    except csv.Error as error:
        raise csv.Error(str(error), line) from None


def _columns_of(path: Path, separator: str, roles: Roles) -> _Columns:
    """Find the columns of a table by its first row."""
    rows = _first_rows(path, separator)
    words = rows[0] if rows else []
    picked = pick_columns(words, roles)
    # Short words may be names of entities: if `s p o` or a word of it occurs below, the row is a triple, not a header.
    is_short = all(len(plain_word(word)) <= 2 for word in words)
    if picked is not None and not (is_short and any(set(words) & set(row) for row in rows[1:])):
        return _Columns(len(words), picked, tuple(words))
    if roles is TRIPLES and len(rows) > 1:
        if _is_table(words, rows[1:], is_named=picked is not None):
            raise table_without_key(str(path), words)
        _warn_of_header(path, rows)
    return _Columns.in_order(roles)


def _is_table(words: list[str], rows: list[list[str]], is_named: bool) -> bool:
    """Whether each row is an entity: below a header, the values that would be relations or heads hardly repeat."""
    widths = {len(words), *map(len, rows[:_COMPARED_WIDTHS])}
    if is_named or len(widths) > 1 or not looks_like_header(words):
        return False
    if len(words) != 3:
        return len(words) > 3 or (len(words) == 2 and is_key_word(words[0]))
    heads, relations, tails = zip(*(row for row in rows if len(row) == 3), strict=True)
    if len(set(relations)) * 2 <= len(relations) or words[0] in heads or words[1] in relations or words[2] in tails:
        return False
    return is_key_word(words[0]) or (len(heads) >= _MANY_ROWS and len(set(heads)) == len(heads))


def _warn_of_header(path: Path, rows: list[list[str]]) -> None:
    """Warn if the first row may be a header with unknown words: words without `:` and `/` above IRIs."""
    first = rows[0]
    others = [row for row in rows[1:1000] if len(row) == 3]
    if len(others) < 5 or len(first) != 3 or any(":" in name or "/" in name for name in first):
        return
    if first[1] not in {row[1] for row in others} and _num_iris(others) * 10 >= 9 * len(others):
        _log.warning(
            "%s: the first row looks like a header but was read as a triple: %s; delete it or call the columns %s",
            path,
            listed(first),
            ", ".join(TRIPLES.names),
        )


def _num_iris(rows: list[list[str]]) -> int:
    return sum(":" in row[0] or "/" in row[0] for row in rows)


def _read(path: Path, separator: str, columns: _Columns) -> Iterator[Callable[[], Rows]]:
    """Yield functions that each split one block of a table into rows."""
    ends = _line_ends(path, separator)
    blocks = line_blocks(path, ends)
    for block in blocks:
        if separator != "\t" and b'"' in block.text:
            for rows in _read_quoted(path, block, blocks, separator, columns):
                yield partial(_identity, rows)
        else:
            yield partial(split_block, path, block, separator, ends, columns)


def _identity(rows: Rows) -> Rows:
    return rows


def split_block(path: Path, block: LineBlock, separator: str, ends: LineEnds, columns: _Columns) -> Rows:
    """Split the lines of a block without quoting; refuses rows of the wrong width."""
    whole = with_line_feeds(block.text, ends)
    header = None if columns.header is None else separator.join(columns.header).encode("utf-8")
    text, num_blank = _without_lines(whole, b"")
    text, num_headers = (text, 0) if header is None else _without_lines(text, header)
    if not _has_columns(text, separator, columns.count):
        raise _first_bad_line(path, whole, block.first_line, separator, columns)

    def where(row: int) -> str:
        lines = enumerate(whole.split(b"\n"), block.first_line)
        kept = [number for number, line in lines if line not in (b"", header)]
        return location(path, kept[row])

    frame = columns.select(_split(text, separator, columns.count))
    counts = ReadCounts(byte_order_marks=block.num_marks, blank_lines=num_blank, header_rows=num_headers)
    return Rows(frame, where, counts)


def _without_lines(text: bytes, line: bytes) -> tuple[bytes, int]:
    """Remove all copies of a line, and count them: concatenated files repeat their header."""
    if not text.startswith(line + b"\n") and b"\n" + line + b"\n" not in text:
        return text, 0
    lines = text.split(b"\n")[:-1]
    kept = [other for other in lines if other != line]
    return b"\n".join([*kept, b""]), len(lines) - len(kept)


def _has_columns(text: bytes, separator: str, count: int) -> bool:
    """Whether every line has `count` columns: after each `count - 1` separators there must be a line break."""
    data = np.frombuffer(text, dtype=np.uint8)
    code = ord(separator)
    separators = data[np.flatnonzero((data == code) | (data == ord("\n")))]
    if len(separators) % count:
        return False
    of_lines = separators.reshape(-1, count)
    return bool((of_lines[:, :-1] == code).all()) and bool((of_lines[:, -1] == ord("\n")).all())


def _split(text: bytes, separator: str, count: int) -> pl.DataFrame:
    """Split lines that are known to have the right columns and no quoting."""
    schema = {f"column {number}": pl.String for number in range(count)}
    if not text:
        return pl.DataFrame(schema=schema)
    if text.startswith(_BYTE_ORDER_MARK):  # polars drops it, but at the beginning of a block it belongs to a name
        text = _BYTE_ORDER_MARK + text
    return pl.read_csv(text, separator=separator, has_header=False, quote_char=None, schema=schema)


def _first_bad_line(path: Path, text: bytes, first_line: int, separator: str, columns: _Columns) -> InputError:
    """Return the error for the first line without quotes that has the wrong number of columns."""
    for number, line in enumerate(text.split(b"\n"), first_line):
        width = line.count(separator.encode()) + 1
        if line and width != columns.count:
            start = line[:_SHOWN].decode("utf-8", "replace")
            return _wrong_columns(path, number, separator, columns, width, start)
    return InputError("the lines cannot be split into columns", where=str(path))


def _wrong_columns(path: Path, line: int, separator: str, columns: _Columns, width: int, text: str) -> InputError:
    fitting = (other for other in "\t,;| " if other != separator and text.count(other) == columns.count - 1)
    likely = next(fitting, None)
    expected = f"{columns.count} columns separated by {_SEPARATOR_NAMES[separator]}"
    if line == 1 and columns.header is None:
        expected += f", or a header row that names them ({', '.join(columns.wanted)})"
    cause = f"the columns seem to be separated by {_SEPARATOR_NAMES[likely]}; " if likely else ""
    return InputError(
        "a line has the wrong number of columns",
        where=location(path, line),
        expected=expected,
        found=f"{width} in {shown(repr(text), 80)}",
        fix=f"{cause}fix the line, or name the right format with --format",
    )


def _read_quoted(
    path: Path, first: LineBlock, others: Iterator[LineBlock], separator: str, columns: _Columns
) -> Iterator[Rows]:
    """Read the rows from the first block with quotes on, by the standard library; an error names the line."""
    texts = (block.text.decode("utf-8") for block in chain([first], others))
    lines = (line for text in texts for line in io.StringIO(text, newline=""))
    header = None if columns.header is None else list(columns.header)
    rows: list[list[str]] = []
    numbers: list[int] = []
    num_marks, num_blank, num_headers, size = first.num_marks, 0, 0, 0

    def batch() -> Rows:
        schema = {f"column {number}": pl.String for number in range(columns.count)}
        frame = columns.select(pl.DataFrame(rows, schema=schema, orient="row"))
        counts = ReadCounts(byte_order_marks=num_marks, blank_lines=num_blank, header_rows=num_headers)
        return Rows(frame, partial(_row_location, path, numbers), counts)

    try:
        for num_lines_before, row in _csv_rows(lines):
            number = first.first_line + num_lines_before
            if not row:
                num_blank += 1
            elif len(row) != columns.count:
                raise _wrong_columns(path, number, separator, columns, len(row), ",".join(row)[:_SHOWN])
            elif row == header:
                num_headers += 1
            else:
                rows.append(row)
                numbers.append(number)
                size += sum(map(len, row))
                if len(rows) == _QUOTED_ROWS or size >= _QUOTED_CHARS:
                    yield batch()
                    rows, numbers = [], []
                    num_marks = num_blank = num_headers = size = 0
    except csv.Error as error:
        problem, num_lines_before = error.args
        raise InputError(
            "the file is not valid CSV",
            where=location(path, first.first_line + num_lines_before),
            found=problem,
            fix='put names that hold commas, quotes or line breaks in "quotes" and double the quotes inside',
        ) from None
    yield batch()


def _row_location(path: Path, numbers: list[int], row: int) -> str:
    return location(path, numbers[row])


def _triples(rows: Callable[[], Rows]) -> list[TripleBatch]:
    return [triples_of(rows())]


def _read_blocks(path: Path, separator: str) -> Iterator[Block]:
    """Yield functions that each parse the triples of one block."""
    for rows in _read(path, separator, _columns_of(path, separator, TRIPLES)):
        yield partial(_triples, rows)


def _read_roles(path: Path, separator: str, roles: Roles, convert: Callable[[Rows], _Batch]) -> Iterator[_Batch]:
    for rows in _read(path, separator, _columns_of(path, separator, roles)):
        yield convert(rows())


def _read_entities(path: Path, key: str, separator: str) -> Iterator[TripleBatch]:
    """Read the rows of a table as entities; its first row names the columns."""
    words = next(iter(_first_rows(path, separator)), [])
    key_index = find_key(path, words, key)
    all_columns = _Columns(len(words), {str(index): index for index in range(len(words))}, tuple(words))
    for rows in _read(path, separator, all_columns):
        yield entities_of(rows(), words, key_index)


def _reader(separator: str, *suffixes: str) -> Reader:
    return Reader(
        triples=partial(_read_roles, separator=separator, roles=TRIPLES, convert=triples_of),
        links=partial(_read_roles, separator=separator, roles=LINKS, convert=links_of),
        suffixes=suffixes,
        names=partial(_read_roles, separator=separator, roles=NAMES, convert=names_of),
        rows=partial(_read_entities, separator=separator),
        blocks=partial(_read_blocks, separator=separator),
    )


TSV = _reader("\t", ".tsv", ".tab")
CSV = _reader(",", ".csv")
