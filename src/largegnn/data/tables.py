"""TSV and CSV: three columns of a triple file, two of a link file.

In: a path. Out: columns of names, block by block. TSV knows no quoting (names hold quotes in real data sets); CSV
follows RFC 4180. A header row is recognised by its words. A tail in RDF literal syntax ("...", "..."@en, "..."^^<type>)
is an attribute. Names in angle brackets lose them, so that links and triples written differently still meet.
Cost: one numpy pass to check the shape of the lines, one polars pass to split them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from largegnn.data.batch import Reader, TripleBatch, check_names, no_names
from largegnn.data.lines import LineBlock, last_line_end, line_blocks, location
from largegnn.errors import InputError

__all__ = [
    "CSV",
    "LINK_HEADERS",
    "TRIPLE_HEADERS",
    "TSV",
    "pick_columns",
    "split_literals",
    "without_brackets",
]

TRIPLE_HEADERS = (
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("head", "rel", "tail"),
    ("source", "relation", "target"),
    ("h", "r", "t"),
    ("s", "p", "o"),
)
LINK_HEADERS = (
    ("source", "target"),
    ("entity1", "entity2"),
    ("entity_1", "entity_2"),
    ("e1", "e2"),
    ("left", "right"),
    ("subject_id", "object_id"),
)
_Separator = Literal["\t", ","]
_SEPARATOR_NAMES = {"\t": "tab", ",": "comma"}
_LITERAL = r'(?s)^".*"(@[A-Za-z0-9-]+|\^\^.+)?$'


def read_table_triples(path: Path, separator: _Separator) -> Iterator[TripleBatch]:
    """Triples of a three-column table."""
    for frame, where in _read_table(path, separator, TRIPLE_HEADERS):
        yield split_literals(frame, where)


def split_literals(frame: pl.DataFrame, where: Callable[[int], str]) -> TripleBatch:
    """Tell triples between entities from attributes by the syntax of their tails, and check the names."""
    attribute_heads = no_names()
    row_of_kept: pl.Series | None = None
    if bool(frame["tail"].str.starts_with('"').any()):
        literal = frame["tail"].str.contains(_LITERAL)
        attribute_heads, row_of_kept = frame.filter(literal)["head"], (~literal).arg_true()
        frame = frame.filter(~literal)
    check_names(frame.to_dict(), lambda row: where(row if row_of_kept is None else int(row_of_kept[row])))
    frame = without_brackets(frame)
    return TripleBatch(frame["head"], frame["relation"], frame["tail"], attribute_heads)


def read_table_links(path: Path, separator: _Separator) -> Iterator[pl.DataFrame]:
    """Links of a two-column table, as columns `source` and `target`."""
    for frame, where in _read_table(path, separator, LINK_HEADERS):
        check_names(frame.to_dict(), where)
        yield without_brackets(frame)


def pick_columns(found: list[str], headers: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
    """The columns of a table that mean what the first header means, whatever they are called."""
    known = {name.strip().lower(): name for name in found}
    for header in headers:
        if all(word in known for word in header):
            return tuple(known[word] for word in header)
    return None


class _Where:
    """Turns a row of a block into a place in the file."""

    def __init__(self, path: Path, block: LineBlock) -> None:
        self.path, self.block = path, block

    def __call__(self, row: int) -> str:
        # Blank lines were dropped before the block was split: count only the others.
        seen = -1
        for offset, line in enumerate(self.block.text.split(b"\n")):
            seen += bool(line)
            if seen == row:
                return location(self.path, self.block.first_line + offset)
        return str(self.path)


def _read_table(
    path: Path, separator: _Separator, headers: tuple[tuple[str, ...], ...]
) -> Iterator[tuple[pl.DataFrame, _Where]]:
    names, first = headers[0], True
    cut = _even_quotes_end if separator == "," else last_line_end
    for block in line_blocks(path, cut):
        text = _without_blank_lines(block.text)
        if first and text:
            head, _, rest = text.partition(b"\n")
            words = head.decode("utf-8").lower().replace('"', "").split(separator)
            first = False
            if pick_columns(words, headers) == tuple(words):
                # The blank line keeps the numbering of what follows.
                block, text = LineBlock(b"\n" + block.text.lstrip(b"\n").partition(b"\n")[2], block.first_line), rest
        if not text:
            continue
        where = _Where(path, block)
        if (separator == "\t" or b'"' not in text) and _has_columns(text, separator, len(names)):
            yield _split(text, separator, names), where
        elif separator == ",":
            yield _split_quoted(path, block, names), where
        else:
            raise _first_bad_line(path, block, len(names))


def _split(text: bytes, separator: _Separator, names: tuple[str, ...]) -> pl.DataFrame:
    """Split lines that are known to have the right columns and no quoting."""
    table = pl.read_csv(
        text,
        separator=separator,
        has_header=False,
        quote_char=None,
        schema=dict.fromkeys(names, pl.String),
    )
    return table.fill_null("")


def _has_columns(text: bytes, separator: _Separator, num_columns: int) -> bool:
    """Whether every line has exactly the columns expected: the separators then come in a fixed rhythm."""
    data = np.frombuffer(text, dtype=np.uint8)
    code = ord(separator)
    separators = data[np.flatnonzero((data == code) | (data == ord("\n")))]
    if len(separators) % num_columns:
        return False
    rhythm = separators.reshape(-1, num_columns)
    return bool((rhythm[:, :-1] == code).all()) and bool((rhythm[:, -1] == ord("\n")).all())


def _first_bad_line(path: Path, block: LineBlock, num_columns: int) -> InputError:
    """The error for the first TSV line that has not exactly the columns expected."""
    lines = enumerate(block.text.split(b"\n"), start=block.first_line)
    number, line = next((at, line) for at, line in lines if line and line.count(b"\t") != num_columns - 1)
    return _wrong_columns(path, number, "\t", num_columns, line.count(b"\t") + 1, line)


def _split_quoted(path: Path, block: LineBlock, names: tuple[str, ...]) -> pl.DataFrame:
    """Split CSV rows of any kind, by the rules of the standard library; names the first bad row."""
    csv.field_size_limit(1 << 30)  # literals may be long; the length of names is checked with all the others
    reader = csv.reader(io.StringIO(block.text.decode("utf-8"), newline=""), strict=True)
    rows, before = [], 0
    try:
        for row in reader:
            if row and len(row) != len(names):
                shown = ",".join(row).encode()
                raise _wrong_columns(path, block.first_line + before, ",", len(names), len(row), shown)
            if row:
                rows.append(row)
            before = reader.line_num
    except csv.Error as error:
        raise InputError(
            "the file is not valid CSV",
            where=location(path, block.first_line + before),
            found=str(error),
            fix='put names that hold commas, quotes or line breaks in "quotes" and double the quotes inside',
        ) from None
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _wrong_columns(path: Path, line: int, separator: str, expected: int, found: int, text: bytes) -> InputError:
    shown = text[:80].decode("utf-8", "replace") + ("..." if len(text) > 80 else "")
    return InputError(
        "a line has the wrong number of columns",
        where=location(path, line),
        expected=f"{expected} columns separated by {_SEPARATOR_NAMES[separator]}s",
        found=f"{found} in {shown!r}",
        fix="mend the line, or name the right format with --format",
    )


def _without_blank_lines(text: bytes) -> bytes:
    if not text.startswith(b"\n") and b"\n\n" not in text:
        return text
    return b"".join(line + b"\n" for line in text.split(b"\n") if line)


def _even_quotes_end(block: bytes) -> int:
    """Where the last whole CSV record ends: at a line break outside quotes."""
    end = last_line_end(block)
    quotes = block.count(b'"', 0, end)
    while end and quotes % 2:
        shorter = block.rfind(b"\n", 0, end - 1) + 1
        quotes -= block.count(b'"', shorter, end)
        end = shorter
    return end


def without_brackets(frame: pl.DataFrame) -> pl.DataFrame:
    """Names written as `<name>` without the brackets."""
    bracketed = [name for name in frame.columns if bool(frame[name].str.starts_with("<").any())]
    if not bracketed:
        return frame
    return frame.with_columns(pl.col(name).str.replace(r"^<(.+)>$", "$1") for name in bracketed)


def _reader(separator: _Separator, *suffixes: str) -> Reader:
    triples, links = partial(read_table_triples, separator=separator), partial(read_table_links, separator=separator)
    return Reader(triples, links, suffixes)


TSV = _reader("\t", ".tsv", ".tab")
CSV = _reader(",", ".csv")
