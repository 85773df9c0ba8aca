"""Parquet: the three columns of a triple file or the two of a link file, found by their names.

In: a path. Out: columns of names, some million rows at a time. Text and whole numbers are accepted as names. The
columns may be called as in TSV and CSV headers; other columns are left alone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from largegnn.data.batch import Reader, TripleBatch, check_names
from largegnn.data.compression import compression_of, read_chunks
from largegnn.data.tables import LINK_HEADERS, TRIPLE_HEADERS, pick_columns, split_literals
from largegnn.errors import InputError

__all__ = ["PARQUET"]

_ROWS = 2_000_000


def read_parquet_triples(path: Path) -> Iterator[TripleBatch]:
    """Triples of a Parquet file."""
    for frame, first_row in _read(path, TRIPLE_HEADERS):
        yield split_literals(frame, lambda row, first=first_row: f"{path}, row {first + row + 1:,}")  # type: ignore[misc]


def read_parquet_links(path: Path) -> Iterator[pl.DataFrame]:
    """Links of a Parquet file, as columns `source` and `target`."""
    for frame, first_row in _read(path, LINK_HEADERS):
        check_names(frame.to_dict(), lambda row, first=first_row: f"{path}, row {first + row + 1:,}")  # type: ignore[misc]
        yield frame


def _read(path: Path, headers: tuple[tuple[str, ...], ...]) -> Iterator[tuple[pl.DataFrame, int]]:
    try:
        packed = compression_of(path) is not None
        table = pl.scan_parquet(io.BytesIO(b"".join(read_chunks(path))) if packed else path, glob=False)
        schema = table.collect_schema()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError("the file is not valid Parquet", where=str(path), found=_first_line(error)) from None
    columns = pick_columns(schema.names(), headers)
    if columns is None:
        raise InputError(
            "the Parquet file does not have the columns needed",
            where=str(path),
            expected=" or ".join(", ".join(header) for header in headers),
            found=", ".join(schema.names()) or "no columns",
            fix="rename the columns",
        )
    for column in columns:
        dtype = schema[column]
        if not (dtype.is_integer() or dtype in (pl.String, pl.Categorical, pl.Enum)):
            raise InputError(
                f"the column {column} holds no names",
                where=str(path),
                expected="text or whole numbers",
                found=str(dtype),
            )
    chosen = table.select(
        pl.col(column).cast(pl.String).alias(name) for column, name in zip(columns, headers[0], strict=True)
    )
    first_row = 0
    while True:
        try:
            frame = chosen.slice(first_row, _ROWS).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError("the Parquet file is damaged", where=str(path), found=_first_line(error)) from None
        if not len(frame):
            return
        for name in frame.columns:
            if frame[name].null_count():
                row = first_row + int(frame[name].is_null().arg_max() or 0) + 1
                raise InputError(f"the {name} is missing", where=f"{path}, row {row:,}", expected="a name")
        yield frame, first_row
        first_row += len(frame)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


PARQUET = Reader(read_parquet_triples, read_parquet_links, (".parquet", ".pq"))
