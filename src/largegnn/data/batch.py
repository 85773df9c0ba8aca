"""What a reader is, and what it yields: a bounded number of triples or links, as columns of names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from largegnn.errors import InputError

__all__ = [
    "LONGEST_NAME",
    "LinkBatch",
    "LinkReader",
    "ReadCounts",
    "Reader",
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
    """What a reader left out of a file. `triple_terms` are statements about triples, `other_statements` no links."""

    byte_order_marks: int = 0
    blank_lines: int = 0
    comment_lines: int = 0
    header_rows: int = 0
    graph_names: int = 0
    triple_terms: int = 0
    other_statements: int = 0

    @classmethod
    def total(cls, counts: Iterable[ReadCounts]) -> ReadCounts:
        """The sum of several counts."""
        rows = [dataclasses.astuple(one) for one in counts]
        return cls(*map(sum, zip(*rows, strict=True)))


@dataclass(frozen=True)
class TripleBatch:
    """Triples between entities, and what else was in the same stretch of the file.

    `heads`, `relations`, `tails` are string columns of one length; `attribute_heads` names the entity of each triple
    whose tail is a literal; `counts` says what was left out.
    """

    heads: pl.Series
    relations: pl.Series
    tails: pl.Series
    attribute_heads: pl.Series = field(default_factory=no_names)
    counts: ReadCounts = ReadCounts()


@dataclass(frozen=True)
class LinkBatch:
    """Known links: `sources` and `targets` are string columns of one length; `counts` says what was left out."""

    sources: pl.Series
    targets: pl.Series
    counts: ReadCounts = ReadCounts()


TripleReader = Callable[[Path], Iterator[TripleBatch]]
LinkReader = Callable[[Path], Iterator[LinkBatch]]


@dataclass(frozen=True)
class Reader:
    """One format, an entry of `READERS`: how triples and links are read, and which suffixes (`.nt`) files have.

    Both functions take a path, packed or not; `largegnn.data.lines` and `largegnn.data.compression` open it.
    """

    triples: TripleReader
    links: LinkReader
    suffixes: tuple[str, ...] = ()


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
