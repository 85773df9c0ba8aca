"""Tables whose rows are entities: one column is the key, every other cell a literal.

In: rows as columns of text, and the name of the key column. Out: the keys as entities, the cells that are not empty as
literals whose predicate is the name of their column. Rows with the same key are one entity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch, check_names, no_names
from largegnn.data.headers import plain_word
from largegnn.data.lines import last_line_end, line_blocks
from largegnn.data.shown import listed, shown
from largegnn.data.splitting import Columns, Separator, first_row, record_end, split_block
from largegnn.errors import InputError

__all__ = ["find_key", "read_table_rows", "row_batch", "table_without_key"]

_BRACKETS = r"^<(.+)>$"
_MOST_SHOWN = 20


def read_table_rows(path: Path, key: str, separator: Separator) -> Iterator[TripleBatch]:
    """The rows of a TSV or CSV file; its first row names the columns."""
    csv, key_index = separator == ",", 0
    words: tuple[str, ...] = ()
    columns: Columns | None = None
    for block in line_blocks(path, record_end if csv else last_line_end, "kept" if csv else "file"):
        if columns is None:
            words = first_row(block, separator) or ()
            if not words and not block.text.strip(b"\r\n"):
                continue
            key_index = find_key(path, words, key)
            every = range(len(words))
            columns = Columns(len(words), tuple(every), tuple(map(str, every)), words)
        split = split_block(path, block, separator, columns)
        counts = ReadCounts(
            byte_order_marks=block.num_marks, blank_lines=split.num_blank_lines, header_rows=split.num_header_rows
        )
        yield row_batch(split.frame, words, key_index, split.where, counts=counts)


def find_key(path: Path, words: Sequence[str], key: str) -> int:
    """The index of the key column: the one of just that name, or else one that differs in case or blanks alone."""
    if key in words:
        return list(words).index(key)
    alike = [index for index, word in enumerate(words) if plain_word(word) == plain_word(key)]
    if len(alike) == 1:
        return alike[0]
    raise InputError(
        f"the table has no column {shown(key)}",
        where=str(path),
        expected="the name of the column whose values tell the rows apart",
        found=f"columns {listed(words, _MOST_SHOWN)}" if words else "no columns",
        fix="name one of these with --source-key or --target-key",
    )


def row_batch(
    frame: pl.DataFrame,
    words: Sequence[str],
    key_index: int,
    where: Callable[[int], str],
    datatypes: Mapping[int, str] | None = None,
    counts: ReadCounts | None = None,
) -> TripleBatch:
    """Rows (columns in the order of `words`, all text) as entities and literals; `datatypes` are those of columns."""
    keys = frame.to_series(key_index).str.strip_chars()
    check_names({"key": keys}, where)
    keys = keys.str.replace(_BRACKETS, "$1")
    heads, predicates, values, types = [no_names()], [no_names()], [no_names()], [no_names()]
    for index, column in enumerate(frame.iter_columns()):
        filled = column.str.contains(r"\S").fill_null(False)
        if index == key_index or not bool(filled.any()):
            continue
        heads.append(keys.filter(filled))
        values.append(column.filter(filled))
        predicate = words[index].strip() or f"column {index + 1}"
        predicates.append(_repeated(predicate, len(values[-1])).str.replace(_BRACKETS, "$1"))
        types.append(_repeated((datatypes or {}).get(index, ""), len(values[-1])))
    literals = LiteralBatch(*(pl.concat(columns) for columns in (heads, predicates, values, types)))
    return TripleBatch(literals=literals, entities=keys, counts=counts or ReadCounts())


def _repeated(text: str, count: int) -> pl.Series:
    return pl.repeat(text, count, dtype=pl.String, eager=True)


def table_without_key(where: str, words: Sequence[str]) -> InputError:
    """What to say of a table that was given as triples."""
    return InputError(
        "this is a table with a row for each entity, not a file of triples",
        where=where,
        expected="head, relation, tail; or the name of the column whose values tell the rows apart",
        found=f"columns {listed(words, _MOST_SHOWN)}",
        fix=f"name the key column, for example --source-key {shown(words[0])} or --target-key {shown(words[0])}",
    )
