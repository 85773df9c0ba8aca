"""What the tests of literals share: rows of a file or of a loaded pair, by name."""

from __future__ import annotations

from pathlib import Path

from largegnn.data.batch import ReadCounts
from largegnn.data.load import LoadedPair
from largegnn.data.readers import read_triples

Row = tuple[str, str, str, str, str]


def literals_of_file(path: Path, form: str = "auto") -> tuple[list[Row], ReadCounts]:
    """Head, predicate, value, datatype and language of each literal in the order of the file, and what was counted."""
    rows: list[Row] = []
    counts = [ReadCounts()]
    for batch in read_triples(path, form):
        found = batch.literals
        rows += zip(found.heads, found.predicates, found.values, found.datatypes, found.languages, strict=True)
        counts.append(batch.counts)
    return rows, ReadCounts.total(counts)


def literals_of_pair(pair: LoadedPair) -> list[Row]:
    """The literals of a pair in their order, by name."""
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
