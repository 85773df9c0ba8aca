"""Relationships for Neo4j: a CSV file with the header that `neo4j-admin database import` reads, and LOAD CSV too.

In: a table. Out: one row for each accepted pair: the two ids, in the id spaces `source` and `target`, the type
`SAME_AS`, and score, margin, confidence (where it is calibrated) and evidence as properties. The nodes are those of the
two graphs, which are there already. Names that hold a line break or the like are packed as in the TSV file.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from largegnn.export.info import Exporter, ExportInfo
from largegnn.export.tabular import plain_names
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["NEO4J"]

_ROWS = 250_000
_NO_PROPERTY = ("source", "target", "rank", "accepted")


def _write_neo4j(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a CSV file of relationships."""
    properties = [name for name in table.columns if name not in _NO_PROPERTY]
    if not info.calibrated:
        properties = [name for name in properties if name != "confidence"]

    def write(sink: ByteSink) -> None:
        kinds = [f"{name}:{'boolean' if table.schema[name] == pl.Boolean else 'float'}" for name in properties]
        sink.write((",".join([":START_ID(source)", ":END_ID(target)", ":TYPE", *kinds]) + "\n").encode())
        for part in table.iter_slices(_ROWS):
            numbers = [pl.col(name).fill_nan(None) if part.schema[name].is_float() else name for name in properties]
            rows = part.select(
                plain_names(part["source"]).alias("source"),
                plain_names(part["target"]).alias("target"),
                pl.lit("SAME_AS").alias("type"),
                *numbers,
            )
            sink.write(rows.write_csv(include_header=False, quote_style="necessary").encode("utf-8"))

    write_files({path: write})
    return len(table)


NEO4J = Exporter("alignment.neo4j.csv", _write_neo4j, accepted_only=True, description="relationships for Neo4j, in CSV")
