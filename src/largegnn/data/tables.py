"""TSV and CSV: three columns of a triple file, two of a link file or a name file.

In: a path. Out: columns of names, block by block. TSV knows no quoting (names hold quotes in real data sets); CSV
follows RFC 4180. A header row is recognised by its words and says which column is which; without one the columns are
read from left to right. A tail in RDF literal syntax ("...", "..."@en, "..."^^<type>) is a literal. Names in angle
brackets lose them, so that links and triples written differently still meet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from largegnn.data.batch import LinkBatch, LiteralBatch, ReadCounts, Reader, TripleBatch, check_names
from largegnn.data.blocks import BlockForm, read_blocks
from largegnn.data.equivalence import says_same
from largegnn.data.headers import (
    LINKS,
    NAMES,
    TRIPLES,
    Roles,
    find_predicate,
    is_key_word,
    looks_like_header,
    plain_word,
)
from largegnn.data.lines import LineBlock, LineEnds, last_line_end, line_blocks
from largegnn.data.literal_syntax import LITERAL, parse_literals
from largegnn.data.rows import read_table_rows, table_without_key
from largegnn.data.shown import listed
from largegnn.data.splitting import (
    Columns,
    Separator,
    SplitBlock,
    first_row,
    first_rows,
    record_end,
    split_block,
)

__all__ = ["CSV", "TSV", "keep_links", "named_entities", "split_literals", "without_brackets"]

_log = logging.getLogger(__name__)
_PREDICATE = "predicate"
_ROWS_LOOKED_AT = 10
_SURE_ROWS = 20
_HOW_TO_CUT: dict[Separator, tuple[Callable[[bytes], int], LineEnds]] = {
    "\t": (last_line_end, "file"),
    ",": (record_end, "kept"),
}


def _look(path: Path, block: LineBlock, separator: Separator) -> Columns | None:
    """The columns of a triple file, told from a block of it; None where it has no row."""
    _refuse_wide_table(path, block, separator)
    return _columns_of(block, separator, TRIPLES)


def _block_triples(
    path: Path, block: LineBlock, columns: Columns | None, separator: Separator
) -> Iterator[TripleBatch]:
    """The triples of a block of a three-column table."""
    split, counts = _split(path, block, separator, columns or _in_order(TRIPLES))
    if block.first_line == 1 and split.header is None:
        _refuse_table(path, split.frame)
        _warn_of_header(path, split.frame)
    yield split_literals(split.frame, split.where, counts)


def split_literals(frame: pl.DataFrame, where: Callable[[int], str], counts: ReadCounts | None = None) -> TripleBatch:
    """Tell triples between entities from literals by the syntax of their tails, and check the names."""
    check_names(frame.select("head", "relation").to_dict(), where)
    literals = LiteralBatch()
    row_of_kept: pl.Series | None = None
    if bool(frame["tail"].str.starts_with('"').any()):
        is_literal = frame["tail"].str.contains(LITERAL)
        literals, row_of_kept = _literals_of(frame.filter(is_literal)), (~is_literal).arg_true()
        frame = frame.filter(~is_literal)
    check_names({"tail": frame["tail"]}, lambda row: where(row if row_of_kept is None else int(row_of_kept[row])))
    frame = without_brackets(frame)
    return TripleBatch(frame["head"], frame["relation"], frame["tail"], literals, counts=counts or ReadCounts())


def _literals_of(frame: pl.DataFrame) -> LiteralBatch:
    names, parsed = without_brackets(frame.select("head", "relation")), parse_literals(frame["tail"])
    return LiteralBatch(names["head"], names["relation"], parsed["value"], parsed["datatype"], parsed["language"])


def read_table_links(path: Path, separator: Separator) -> Iterator[LinkBatch]:
    """Links of a table of two columns, or of one whose header names two."""
    for split, counts in _read_table(path, separator, LINKS):
        yield keep_links(split.frame, split.where, counts)


def keep_links(frame: pl.DataFrame, where: Callable[[int], str], counts: ReadCounts | None = None) -> LinkBatch:
    """The links of a frame with `source` and `target`; a column `predicate` says which rows are links."""
    ends = frame.select("source", "target")
    check_names(ends.to_dict(), where)
    ends, counts = without_brackets(ends), counts or ReadCounts()
    if _PREDICATE in frame.columns:
        chosen = says_same(without_brackets(frame.select(_PREDICATE))[_PREDICATE])
        ends = ends.filter(chosen)
        counts = ReadCounts.total([counts, ReadCounts(other_statements=len(chosen) - len(ends))])
    return LinkBatch(ends["source"], ends["target"], counts)


def read_table_names(path: Path, separator: Separator) -> Iterator[TripleBatch]:
    """Names of a table of two columns, or of one whose header names two."""
    for split, counts in _read_table(path, separator, NAMES):
        yield named_entities(split.frame, split.where, counts)


def named_entities(frame: pl.DataFrame, where: Callable[[int], str], counts: ReadCounts | None = None) -> TripleBatch:
    """The names of a frame with `entity` and `name`, as literals."""
    entities = frame.select("entity")
    check_names(entities.to_dict(), where)
    heads, parsed = without_brackets(entities)["entity"], parse_literals(frame["name"])
    literals = LiteralBatch(heads, heads, parsed["value"], parsed["datatype"], parsed["language"])
    return TripleBatch(literals=literals, counts=counts or ReadCounts())


def without_brackets(frame: pl.DataFrame) -> pl.DataFrame:
    """Names written as `<name>` without the brackets."""
    bracketed = [name for name in frame.columns if bool(frame[name].str.starts_with("<").any())]
    if not bracketed:
        return frame
    return frame.with_columns(pl.col(name).str.replace(r"^<(.+)>$", "$1") for name in bracketed)


def _read_table(path: Path, separator: Separator, roles: Roles) -> Iterator[tuple[SplitBlock, ReadCounts]]:
    columns: Columns | None = None
    for block in line_blocks(path, *_HOW_TO_CUT[separator]):
        columns = columns or _columns_of(block, separator, roles)
        yield _split(path, block, separator, columns or _in_order(roles))


def _split(path: Path, block: LineBlock, separator: Separator, columns: Columns) -> tuple[SplitBlock, ReadCounts]:
    split = split_block(path, block, separator, columns)
    return (
        split,
        ReadCounts(
            byte_order_marks=block.num_marks, blank_lines=split.num_blank_lines, header_rows=split.num_header_rows
        ),
    )


def _in_order(roles: Roles) -> Columns:
    return Columns(len(roles.names), tuple(range(len(roles.names))), roles.names)


def _columns_of(block: LineBlock, separator: Separator, roles: Roles) -> Columns | None:
    """The columns as the first row says; None where the block has no row."""
    words = first_row(block, separator)
    if words is None:
        return None if not block.text.strip(b"\r\n") else _in_order(roles)
    found = roles.find(words)
    if found is None or _stand_again(words, block.text, separator):
        return _in_order(roles)
    predicate = find_predicate(words) if roles is LINKS else None
    if predicate is None:
        return Columns(len(words), found, roles.names, words)
    return Columns(len(words), (*found, predicate), (*roles.names, _PREDICATE), words)


def _stand_again(words: tuple[str, ...], text: bytes, separator: Separator) -> bool:
    """Whether words of one or two letters are names of other rows too: then `s p o` is a triple, not a header."""
    if any(len(plain_word(word)) > 2 for word in words):
        return False
    others, between = b"\n" + text.partition(b"\n")[2], separator.encode()
    names = [word.encode("utf-8") for word in words]
    return any(b"\n" + name + between in others or between + name + b"\n" in others for name in names)


def _refuse_wide_table(path: Path, block: LineBlock, separator: Separator) -> None:
    """Refuse a file whose rows are entities: a header that does not speak of triples above rows of the same width."""
    rows = first_rows(block, separator, _ROWS_LOOKED_AT)
    words = rows[0] if rows else ()
    widths = {len(row) for row in rows}
    if len(rows) < 2 or widths == {3} or len(widths) > 1 or TRIPLES.find(words) or not looks_like_header(words):
        return
    if len(words) > 3 or (len(words) == 2 and is_key_word(words[0])):
        raise table_without_key(str(path), words)


def _refuse_table(path: Path, frame: pl.DataFrame) -> None:
    """Refuse a table of three columns with a header: what would be relations hardly repeats, nor do the heads."""
    words, others = frame.row(0) if len(frame) else (), frame[1:]
    if not len(others) or not looks_like_header(words) or others["relation"].n_unique() * 2 <= len(others):
        return
    again = any(word in column for word, column in zip(words, others.iter_columns(), strict=True))
    is_many = len(others) >= _SURE_ROWS and others["head"].n_unique() == len(others)
    if not again and (is_key_word(words[0]) or is_many):
        raise table_without_key(str(path), words)


def _warn_of_header(path: Path, frame: pl.DataFrame) -> None:
    """Say where the first row may be a header in words that are not known: plain words above IRIs."""
    first, others = frame.row(0) if len(frame) else (), frame[1:1000]
    if len(others) < 5 or any(":" in name or "/" in name for name in first) or first[1] in others["relation"]:
        return
    if int(others["head"].str.contains("[:/]").sum()) * 10 >= 9 * len(others):
        _log.warning(
            "%s: the first row looks like a header but was read as a triple: %s; delete it or call the columns %s",
            path,
            listed(first),
            ", ".join(TRIPLES.names),
        )


def _reader(separator: Separator, *suffixes: str) -> Reader:
    cut, ends = _HOW_TO_CUT[separator]
    form = BlockForm(partial(_block_triples, separator=separator), partial(_look, separator=separator), cut, ends)
    return Reader(
        partial(read_blocks, form=form),
        partial(read_table_links, separator=separator),
        suffixes,
        partial(read_table_names, separator=separator),
        partial(read_table_rows, separator=separator),
        form,
    )


TSV = _reader("\t", ".tsv", ".tab")
CSV = _reader(",", ".csv")
