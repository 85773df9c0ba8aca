"""Define what readers yield (batches of triples, links or literals, as columns of names) and what a reader is.

A batch holds a bounded number of rows, so that a file is never in memory as a whole.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from largegnn.data.summary import ReadCounts
from largegnn.errors import InputError

__all__ = [
    "MAX_NAME_BYTES",
    "Block",
    "BlockReader",
    "LinkBatch",
    "LinkReader",
    "LiteralBatch",
    "NameReader",
    "ReadCounts",
    "Reader",
    "RowReader",
    "TripleBatch",
    "TripleReader",
    "check_names",
    "no_names",
]

MAX_NAME_BYTES = 65_535  # a longer name is a mistake, and would be copied to every later file


def no_names() -> pl.Series:
    """Return an empty column of names."""
    return pl.Series([], dtype=pl.String)


@dataclass(frozen=True)
class LiteralBatch:
    """Statements whose object is a literal: string columns of one length.

    `values` are texts without quotes and escapes. `datatypes` and `languages` are "" where a literal has no datatype or
    language; both columns may be omitted. Readers need not check literals: `read_triples` does, and cuts long values.
    """

    heads: pl.Series = field(default_factory=no_names)
    predicates: pl.Series = field(default_factory=no_names)
    values: pl.Series = field(default_factory=no_names)
    datatypes: pl.Series = field(default_factory=no_names)
    languages: pl.Series = field(default_factory=no_names)

    def __post_init__(self) -> None:
        for name in ("datatypes", "languages"):
            if not len(getattr(self, name)) and len(self.heads):
                object.__setattr__(self, name, pl.repeat("", len(self.heads), dtype=pl.String, eager=True))
        lengths = {len(getattr(self, column.name)) for column in dataclasses.fields(self)}
        if len(lengths) > 1:
            raise ValueError(f"the columns of literals have {sorted(lengths)} rows")

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True)
class TripleBatch:
    """Triples between entities, and the literals and entities from the same part of the file.

    `heads`, `relations`, `tails` are string columns of one length; `literals` are the triples whose tail is a literal;
    `entities` are kept with or without triples (the rows of a table); `counts` has the numbers of dropped statements.
    """

    heads: pl.Series = field(default_factory=no_names)
    relations: pl.Series = field(default_factory=no_names)
    tails: pl.Series = field(default_factory=no_names)
    literals: LiteralBatch = field(default_factory=LiteralBatch)
    entities: pl.Series = field(default_factory=no_names)
    counts: ReadCounts = field(default_factory=ReadCounts)


@dataclass(frozen=True)
class LinkBatch:
    """Known links: `sources` and `targets` are string columns of one length; `counts` has what was dropped."""

    sources: pl.Series
    targets: pl.Series
    counts: ReadCounts = field(default_factory=ReadCounts)


TripleReader = Callable[[Path], Iterator[TripleBatch]]
LinkReader = Callable[[Path], Iterator[LinkBatch]]
NameReader = Callable[[Path], Iterator[TripleBatch]]
RowReader = Callable[[Path, str], Iterator[TripleBatch]]
Block = Callable[[], Iterable[TripleBatch]]
BlockReader = Callable[[Path], Iterator[Block]]


@dataclass(frozen=True)
class Reader:
    """A file format, an entry of `READERS`: how to read triples and links, and the suffixes (`.nt`) of its files.

    The functions take a path, compressed or not; `largegnn.data.lines` and `largegnn.data.compression` open it.
    Optional: `names` reads names of entities as literals (default: as links), `rows` reads a table whose rows are
    entities, given its key column, and `blocks` divides the file into functions that each parse one block of triples
    and can be sent to other processes.
    """

    triples: TripleReader
    links: LinkReader
    suffixes: tuple[str, ...] = ()
    names: NameReader | None = None
    rows: RowReader | None = None
    blocks: BlockReader | None = None


def check_names(columns: dict[str, pl.Series], where: Callable[[int], str]) -> None:
    """Refuse empty and very long names; `where` tells the location of a row for the message."""
    for column, names in columns.items():
        sizes = names.str.len_bytes()
        if not len(sizes):
            continue
        if sizes.min() == 0:
            raise InputError(f"the {column} is empty", where=where(int(sizes.arg_min() or 0)), expected="a name")
        longest_row = int(sizes.arg_max() or 0)
        if sizes[longest_row] > MAX_NAME_BYTES:
            raise InputError(
                f"the {column} is {sizes[longest_row]:,} bytes long",
                where=where(longest_row),
                expected=f"names of at most {MAX_NAME_BYTES:,} bytes",
                fix="check that this is the file meant; long texts belong in literals",
            )
