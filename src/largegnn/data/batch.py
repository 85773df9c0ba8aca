"""What a reader is, and what it yields: a bounded number of triples or links, as columns of names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from largegnn.errors import InputError

if TYPE_CHECKING:
    from largegnn.data.blocks import BlockForm

__all__ = [
    "LONGEST_NAME",
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

LONGEST_NAME = 65_535  # bytes; a name longer than this is a mistake, and would be carried through every later file


def no_names() -> pl.Series:
    """An empty column of names."""
    return pl.Series([], dtype=pl.String)


@dataclass(frozen=True)
class ReadCounts:
    """What a reader left out of a file or changed in it.

    `triple_terms` are statements about triples, `other_statements` no links. `cut_values` were too long,
    `broken_languages` no language tags; `dropped_literals` had no entity, no predicate or no value.
    """

    byte_order_marks: int = 0
    blank_lines: int = 0
    comment_lines: int = 0
    header_rows: int = 0
    graph_names: int = 0
    triple_terms: int = 0
    other_statements: int = 0
    cut_values: int = 0
    broken_languages: int = 0
    dropped_literals: int = 0

    @classmethod
    def total(cls, counts: Iterable[ReadCounts]) -> ReadCounts:
        """The sum of several counts."""
        rows = [dataclasses.astuple(one) for one in counts]
        return cls(*map(sum, zip(*rows, strict=True)))


@dataclass(frozen=True)
class LiteralBatch:
    """Statements whose object is a literal: string columns of one length.

    `values` are texts without quotes and escapes; `datatypes` and `languages` are "" where there is none. Left out,
    these two are empty for all. `read_triples` cuts long values and mends the rest, so that no reader has to.
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
    """Triples between entities, and what else was in the same stretch of the file.

    `heads`, `relations`, `tails` are string columns of one length; `literals` are the triples whose tail is a literal;
    `entities` are there whether or not anything is said of them (the rows of a table); `counts` says what was left out.
    """

    heads: pl.Series = field(default_factory=no_names)
    relations: pl.Series = field(default_factory=no_names)
    tails: pl.Series = field(default_factory=no_names)
    literals: LiteralBatch = field(default_factory=LiteralBatch)
    entities: pl.Series = field(default_factory=no_names)
    counts: ReadCounts = ReadCounts()


@dataclass(frozen=True)
class LinkBatch:
    """Known links: `sources` and `targets` are string columns of one length; `counts` says what was left out."""

    sources: pl.Series
    targets: pl.Series
    counts: ReadCounts = ReadCounts()


TripleReader = Callable[[Path], Iterator[TripleBatch]]
LinkReader = Callable[[Path], Iterator[LinkBatch]]
NameReader = Callable[[Path], Iterator[TripleBatch]]
RowReader = Callable[[Path, str], Iterator[TripleBatch]]


@dataclass(frozen=True)
class Reader:
    """One format, an entry of `READERS`: how triples and links are read, and which suffixes (`.nt`) files have.

    The functions take a path, packed or not; `largegnn.data.lines` and `largegnn.data.compression` open it. A format
    may also say how it holds the names of entities (`names`; without, as links), and rows that are entities, one column
    being their key (`rows`, which takes the key too): both give literals. Where `blocks` says how single blocks of
    triples are read, several machines may share a large file.
    """

    triples: TripleReader
    links: LinkReader
    suffixes: tuple[str, ...] = ()
    names: NameReader | None = None
    rows: RowReader | None = None
    blocks: BlockForm | None = None


def check_names(columns: dict[str, pl.Series], where: Callable[[int], str]) -> None:
    """Refuse empty and absurdly long names; `where` turns a row into words."""
    for column, names in columns.items():
        sizes = names.str.len_bytes()
        if not len(sizes):
            continue
        if sizes.min() == 0:
            raise InputError(f"the {column} is empty", where=where(int(sizes.arg_min() or 0)), expected="a name")
        longest = int(sizes.arg_max() or 0)
        if sizes[longest] > LONGEST_NAME:
            raise InputError(
                f"the {column} is {sizes[longest]:,} bytes long",
                where=where(longest),
                expected=f"names of at most {LONGEST_NAME:,} bytes",
                fix="check that this is the file meant; long texts belong in literals",
            )
