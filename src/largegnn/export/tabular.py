"""TSV and Parquet: every row and every column of the table; the confidence only where it is calibrated.

In: a table. Out: a file whose names read back exactly.

TSV has a header row and no quoting at all, as `largegnn.data.tables` reads it: quotes and backslashes are part of a
name and stand as they are. Names that would not survive that (with a tab, a line break or a NUL; in angle brackets;
empty; or packed already) are written as `urn:largegnn:` and their percent-encoded bytes, the way they are packed into
RDF, and unpacked when read as links: `a<tab>b` becomes `urn:largegnn:a%09b`. Numbers have as many digits as it takes
to give back the same float32. Parquet holds names of any kind as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, cast

import polars as pl

from largegnn.data.iri import PACKED, pack_names
from largegnn.export.info import TOOL, Exporter, ExportInfo
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["PARQUET", "TSV", "plain_names", "write_parquet", "write_parquet_rows", "write_tsv", "write_tsv_rows"]

_ROWS = 250_000
_NOT_PLAIN = rf"(?s)[\x00\t\r\n]|^<.*>$|^$|^{PACKED}"


def write_tsv(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a TSV file; a table says nothing about where it comes from."""
    plain = _calibrated(table, info).with_columns(plain_names(table[side]).alias(side) for side in ("source", "target"))
    write_files({path: lambda sink: write_tsv_rows(plain, sink)})
    return len(table)


def write_parquet(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a Parquet file, with what is known of the run in its metadata."""
    facts = {
        "tool": f"{TOOL} {info.tool_version}",
        "title": info.title,
        "description": info.description,
        "created": info.created.isoformat(),
    }
    write_files({path: lambda sink: write_parquet_rows(_calibrated(table, info), sink, facts)})
    return len(table)


def _calibrated(table: pl.DataFrame, info: ExportInfo) -> pl.DataFrame:
    """A table in which what is called confidence is one."""
    return table if info.calibrated else table.drop("confidence", strict=False)


def plain_names(names: pl.Series) -> pl.Series:
    """Names as they stand in a TSV file: those it cannot hold are packed."""
    return pack_names(names, names.str.contains(_NOT_PLAIN))


def write_tsv_rows(frame: pl.DataFrame, sink: ByteSink) -> None:
    """Write a header and rows that need no quoting, a part at a time."""
    sink.write(("\t".join(frame.columns) + "\n").encode("utf-8"))
    for part in frame.iter_slices(_ROWS):
        sink.write(part.write_csv(separator="\t", include_header=False, quote_style="never").encode("utf-8"))


def write_parquet_rows(frame: pl.DataFrame, sink: ByteSink, facts: dict[str, str] | None = None) -> None:
    """Write all rows, with facts as metadata."""
    frame.write_parquet(cast(IO[bytes], sink), row_group_size=_ROWS, metadata=facts or {})


TSV = Exporter("alignment.tsv", write_tsv, accepted_only=False, description="a table without quoting")
PARQUET = Exporter("alignment.parquet", write_parquet, accepted_only=False, description="a table in Parquet")
