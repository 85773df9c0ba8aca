"""What a reader is, and what it yields: a bounded number of triples, as columns of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from largegnn.errors import InputError

__all__ = ["LONGEST_NAME", "LinkReader", "Reader", "TripleBatch", "TripleReader", "check_names", "no_names"]

LONGEST_NAME = 65_535  # bytes; a name longer than this is a mistake, and would be carried through every later file


def no_names() -> pl.Series:
    """An empty column of names."""
    return pl.Series([], dtype=pl.String)


@dataclass(frozen=True)
class TripleBatch:
    """Triples between entities, and what else was in the same stretch of the file.

    `heads`, `relations`, `tails` are string columns of one length; `attribute_heads` names the entity of each triple
    whose tail is a literal; `num_named_graphs` counts quads whose graph name was left out.
    """

    heads: pl.Series
    relations: pl.Series
    tails: pl.Series
    attribute_heads: pl.Series = field(default_factory=no_names)
    num_named_graphs: int = 0


TripleReader = Callable[[Path], Iterator[TripleBatch]]
LinkReader = Callable[[Path], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Reader:
    """One format, an entry of `READERS`: how triples and links are read, and which suffixes (`.nt`) files have.

    `triples` yields batches of names, `links` frames of the text columns `source` and `target`. Both take a path,
    packed or not; `largegnn.data.lines` and `largegnn.data.compression` open it.
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
