"""Collect literals of a file or of a loaded pair as rows by name, for several tests."""

from __future__ import annotations

from pathlib import Path

from largegnn.data.batch import ReadCounts
from largegnn.data.load import LoadedPair
from largegnn.data.readers import read_triples

Row = tuple[str, str, str, str, str]


def literals_of_file(path: Path, form: str = "auto") -> tuple[list[Row], ReadCounts]:
    """Read each literal of a file as head, predicate, value, datatype and language; returns the counts too."""
    rows: list[Row] = []
    counts = [ReadCounts()]
    for batch in read_triples(path, form):
        found = batch.literals
        rows += zip(found.heads, found.predicates, found.values, found.datatypes, found.languages, strict=True)
        counts.append(batch.counts)
    return rows, ReadCounts.total(counts)


def literals_of_pair(pair: LoadedPair) -> list[Row]:
    """Return the literals of a pair by name, in their order."""
    literals = pair.literals
    return list(
        zip(
            pair.names.entities.take(literals.entities),
            literals.predicate_names.take(literals.predicates),
            literals.values,
            literals.datatype_names.take(literals.datatypes),
            literals.language_names.take(literals.languages),
            strict=True,
        )
    )
