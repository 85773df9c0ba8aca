"""Files in any format of the table `READERS`, named or recognised."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from largegnn.data.batch import TripleBatch
from largegnn.data.recognise import recognise
from largegnn.errors import InputError
from largegnn.seams.tables import READERS

__all__ = ["read_links", "read_triples"]


def read_triples(path: Path, form: str = "auto") -> Iterator[TripleBatch]:
    """The triples of a file in any format of the table."""
    form = recognise(path, num_columns=3) if form == "auto" else form
    yield from READERS[form].triples(path)


def read_links(path: Path) -> pl.DataFrame:
    """The links of a file in any format of the table, as columns `source` and `target`."""
    form = recognise(path, num_columns=2)
    links = pl.concat([pl.DataFrame(schema={"source": pl.String, "target": pl.String}), *READERS[form].links(path)])
    if not len(links):
        raise InputError(
            "the file holds no links",
            where=str(path),
            expected="owl:sameAs statements" if form in ("nt", "nq", "ttl") else "two columns: source, target",
        )
    return links
