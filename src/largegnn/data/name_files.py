"""Files that say what entities are called: two columns, entity and name, in any format that has columns.

In: a path. Out: literals with the predicate `NAME_PREDICATE`, batch by batch. TSV, CSV and Parquet have a header that
names the two columns, or just two; of an RDF file every literal counts as a name, whatever its predicate. An entity may
have several names; a row without a name is dropped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import polars as pl

from largegnn.data.batch import LiteralBatch, ReadCounts, TripleBatch
from largegnn.data.iri import PACKED
from largegnn.data.literal_syntax import tidied
from largegnn.data.recognise import recognise
from largegnn.parts import READERS

__all__ = ["NAME_PREDICATE", "read_names"]

NAME_PREDICATE = "urn:largegnn:name"
# It looks like a packed name and would be unpacked with all others.
_PACKED_PREDICATE = PACKED + quote(NAME_PREDICATE, safe="/")


def read_names(path: Path) -> Iterator[TripleBatch]:
    """The names of a file as literals; batches hold nothing else."""
    form = recognise(path, num_columns=2)
    reader = READERS[form]
    batches = _from_links(path, form) if reader.names is None else reader.names(path)
    for batch in batches:
        named = batch.literals.values.str.contains(r"\S")
        found = pl.DataFrame(vars(batch.literals)).filter(named)
        predicates = pl.repeat(_PACKED_PREDICATE, len(found), dtype=pl.String, eager=True)
        literals, counts = tidied(LiteralBatch(*found.with_columns(predicates=predicates)))
        dropped = ReadCounts(dropped_literals=len(named) - len(found))
        yield TripleBatch(literals=literals, counts=ReadCounts.total([counts, dropped]))


def _from_links(path: Path, form: str) -> Iterator[TripleBatch]:
    """The two columns of a format that knows links only."""
    for links in READERS[form].links(path):
        yield TripleBatch(literals=LiteralBatch(links.sources, links.sources, links.targets))
