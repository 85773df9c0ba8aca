"""Files in any format of the table `READERS`, named or recognised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from largegnn.data.batch import LinkBatch, ReadCounts, TripleBatch, no_names
from largegnn.data.literal_syntax import tidied
from largegnn.data.recognise import plain_name, recognise, recognise_table
from largegnn.errors import InputError
from largegnn.parts import READERS

__all__ = ["read_links", "read_rows", "read_triples", "tidied_batch"]


def read_triples(path: Path, form: str = "auto") -> Iterator[TripleBatch]:
    """The triples and literals of a file in any format of the table."""
    chosen = recognise(path, num_columns=3) if form == "auto" else form
    try:
        yield from map(tidied_batch, READERS[chosen].triples(path))
    except InputError as error:
        if (form, chosen, plain_name(path).suffix.lower()) != ("auto", "nt", ".ttl"):
            raise
        # It was read as N-Triples, which is faster, since it begins like that.
        raise InputError(
            error.problem,
            where=error.where,
            expected=error.expected,
            found=error.found,
            fix="if it is Turtle further down, read it with --format ttl",
        ) from None


def read_rows(path: Path, key: str, form: str = "auto") -> Iterator[TripleBatch]:
    """The rows of a table as entities and literals, in any format that has rows; `key` names the key column."""
    form = recognise_table(path) if form == "auto" else form
    rows = READERS[form].rows
    if rows is None:
        able = ", ".join(name for name in ("tsv", "csv", "parquet") if name in READERS)
        raise InputError(
            f"a key column goes with a table, and this file is {form}",
            where=str(path),
            expected=f"one of {able}",
            fix="leave the key out, or name the format with --format",
        )
    yield from map(tidied_batch, rows(path, key))


def tidied_batch(batch: TripleBatch) -> TripleBatch:
    """A batch with long values cut and languages mended, and what of that there was."""
    if not len(batch.literals):
        return batch
    literals, counts = tidied(batch.literals)
    return replace(batch, literals=literals, counts=ReadCounts.total([batch.counts, counts]))


def read_links(path: Path) -> LinkBatch:
    """All links of a file in any format of the table; a file without one is refused."""
    form = recognise(path, num_columns=2)
    batches = list(READERS[form].links(path))
    counts = ReadCounts.total([ReadCounts(), *(batch.counts for batch in batches)])
    links = LinkBatch(
        pl.concat([no_names(), *(batch.sources for batch in batches)]),
        pl.concat([no_names(), *(batch.targets for batch in batches)]),
        counts,
    )
    if not len(links.sources):
        raise InputError(
            "the file holds no links",
            where=str(path),
            expected="owl:sameAs or skos:exactMatch statements"
            if counts.other_statements or form in ("nt", "nq", "ttl")
            else "two columns: source, target",
            found=f"{counts.other_statements:,} statements of other kinds" if counts.other_statements else None,
        )
    return links
