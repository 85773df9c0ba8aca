"""Write a table as TSV or Parquet, or as CSV of relationships for Neo4j.

In: a table. Out: a file from which names and numbers can be read back exactly. TSV and Parquet have all columns, but
`confidence` only if it is calibrated.

TSV has a header row and no quoting at all, as `largegnn.data.tables` reads it: quotes and backslashes are part of a
name. Names that could not be read back (with a tab, a line break or a NUL; in angle brackets; empty; or already packed)
are packed into `urn:largegnn:` as in RDF, and unpacked when read as links: `a<tab>b` becomes `urn:largegnn:a%09b`.
Parquet holds all names as they are. Neo4j gets accepted pairs, with the header that
`neo4j-admin database import` reads, and LOAD CSV too: the two ids, in the id spaces `source` and `target`, the type
`SAME_AS`, and numbers as properties. The nodes, which are the entities of the two graphs, must already exist.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import IO, cast

import polars as pl

from largegnn.data.iri import PACKED, pack_names
from largegnn.export.info import ROWS_PER_PART, TOOL, Exporter, ExportInfo, parts_of, write_parts
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["NEO4J", "PARQUET", "TSV", "plain_names", "write_parquet", "write_tsv", "write_tsv_rows"]

_NOT_PROPERTIES = ("source", "target", "rank", "accepted")
_NOT_PLAIN = rf"(?s)[\x00\t\r\n]|^<.*>$|^$|^{PACKED}"


def write_tsv(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a TSV file, which cannot hold the facts about the run; returns the number of rows."""
    plain = _calibrated(table, info).with_columns(plain_names(table[side]).alias(side) for side in ("source", "target"))
    write_files({path: lambda sink: write_tsv_rows(plain, sink)})
    return len(table)


def write_parquet(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a Parquet file, with the facts about the run in its metadata; returns the number of rows."""
    facts = {
        "tool": f"{TOOL} {info.tool_version}",
        "title": info.title,
        "description": info.description,
        "created": info.created.isoformat(),
    }

    def write(sink: ByteSink) -> None:
        _calibrated(table, info).write_parquet(cast(IO[bytes], sink), row_group_size=ROWS_PER_PART, metadata=facts)

    write_files({path: write})
    return len(table)


def _calibrated(table: pl.DataFrame, info: ExportInfo) -> pl.DataFrame:
    """Drop the confidence if it is not calibrated."""
    return table if info.calibrated else table.drop("confidence", strict=False)


def plain_names(names: pl.Series) -> pl.Series:
    """Pack the names that a TSV file cannot hold as they are."""
    return pack_names(names, names.str.contains(_NOT_PLAIN))


def write_tsv_rows(frame: pl.DataFrame, sink: ByteSink) -> None:
    """Write a header and rows that need no quoting, a part at a time."""
    sink.write(("\t".join(frame.columns) + "\n").encode("utf-8"))
    for part in parts_of(frame):
        sink.write(part.write_csv(separator="\t", include_header=False, quote_style="never").encode("utf-8"))


def _write_neo4j(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a CSV file of relationships."""
    properties = [name for name in _calibrated(table, info).columns if name not in _NOT_PROPERTIES]
    typed = [f"{name}:{'boolean' if table.schema[name] == pl.Boolean else 'float'}" for name in properties]
    header = ",".join([":START_ID(source)", ":END_ID(target)", ":TYPE", *typed]) + "\n"
    numbers = [pl.col(name).fill_nan(None) if table.schema[name].is_float() else name for name in properties]

    def rows(part: pl.DataFrame) -> str:
        ends = [plain_names(part[side]).alias(side) for side in ("source", "target")]
        chosen = part.select(*ends, pl.lit("SAME_AS").alias("type"), *numbers)
        return chosen.write_csv(include_header=False, quote_style="necessary")

    write_parts(path, chain([header], map(rows, parts_of(table))))
    return len(table)


TSV = Exporter("alignment.tsv", write_tsv, accepted_only=False, description="a table without quoting")
PARQUET = Exporter("alignment.parquet", write_parquet, accepted_only=False, description="a table in Parquet")
NEO4J = Exporter("alignment.neo4j.csv", _write_neo4j, accepted_only=True, description="relationships for Neo4j, in CSV")
