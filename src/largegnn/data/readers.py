"""The readers by format: one table for triples, one for links. A new format is one entry in each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from largegnn.data.batch import LinkReader, TripleBatch, TripleReader
from largegnn.data.parquet import read_parquet_links, read_parquet_triples
from largegnn.data.rdf import read_line_links, read_line_triples, read_turtle_links, read_turtle_triples
from largegnn.data.recognise import recognise
from largegnn.data.tables import read_table_links, read_table_triples
from largegnn.errors import InputError

__all__ = ["LINK_READERS", "TRIPLE_READERS", "read_links", "read_triples"]

TRIPLE_READERS: dict[str, TripleReader] = {
    "nt": partial(read_line_triples, kind="nt"),
    "nq": partial(read_line_triples, kind="nq"),
    "ttl": read_turtle_triples,
    "tsv": partial(read_table_triples, separator="\t"),
    "csv": partial(read_table_triples, separator=","),
    "parquet": read_parquet_triples,
}
LINK_READERS: dict[str, LinkReader] = {
    "nt": partial(read_line_links, kind="nt"),
    "nq": partial(read_line_links, kind="nq"),
    "ttl": read_turtle_links,
    "tsv": partial(read_table_links, separator="\t"),
    "csv": partial(read_table_links, separator=","),
    "parquet": read_parquet_links,
}


def read_triples(path: Path, form: str = "auto") -> Iterator[TripleBatch]:
    """The triples of a file in any format of the table."""
    form = recognise(path, num_columns=3) if form == "auto" else form
    yield from TRIPLE_READERS[form](path)


def read_links(path: Path) -> pl.DataFrame:
    """The links of a file in any format of the table, as columns `source` and `target`."""
    form = recognise(path, num_columns=2)
    links = pl.concat([pl.DataFrame(schema={"source": pl.String, "target": pl.String}), *LINK_READERS[form](path)])
    if not len(links):
        raise InputError(
            "the file holds no links",
            where=str(path),
            expected="owl:sameAs statements" if form in ("nt", "nq", "ttl") else "two columns: source, target",
        )
    return links
