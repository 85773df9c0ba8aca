"""Read Parquet: the columns of triples, links or names, found by their names, or a row for each entity.

In: a path. Out: batches of half a million rows. Text and whole numbers are accepted as names. The columns may have the
names of TSV and CSV headers, in any order; other columns are ignored.
A damaged file can end the process that reads it, so another process reads it first (`parquet_check.py`), with bounded
time and memory. Starting that process takes a quarter of a second, and reading a million rows a tenth; passing the rows
between processes would take a second, so they are read twice.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from largegnn.data.batch import Reader, TripleBatch
from largegnn.data.columns import (
    LINKS,
    NAMES,
    TRIPLES,
    Roles,
    Rows,
    entities_of,
    find_key,
    links_of,
    names_of,
    pick_columns,
    triples_of,
)
from largegnn.data.compression import compression_of, read_chunks
from largegnn.data.shown import listed, shown
from largegnn.errors import InputError

__all__ = ["PARQUET"]

_log = logging.getLogger(__name__)
_ROWS = 500_000
_MAGIC = b"PAR1"
_BASE_SECONDS, _SECONDS_PER_MB = 60, 10
_CHECK = Path(__file__).with_name("parquet_check.py")
_NO_VALUES = ("List", "Array", "Struct", "Object", "Binary", "Null")
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DATATYPES = {
    **{f"{sign}Int{bits}": f"{_XSD}integer" for sign in ("", "U") for bits in (8, 16, 32, 64, 128)},
    **dict.fromkeys(("Float32", "Float64"), f"{_XSD}double"),
    "Decimal": f"{_XSD}decimal",
    "Boolean": f"{_XSD}boolean",
    "Date": f"{_XSD}date",
    "Datetime": f"{_XSD}dateTime",
}
_Batch = TypeVar("_Batch")


def _read(path: Path, roles: Roles, convert: Callable[[Rows], _Batch]) -> Iterator[_Batch]:
    """Read the batches of a file with columns for all `roles`."""
    with _checked(path) as plain:
        columns = _find_columns(path, plain, roles)
        for rows, first_row in _rows(path, plain, columns):
            if roles is NAMES:
                rows = replace(rows, frame=rows.frame.with_columns(pl.col("name").fill_null("")))
            for name in roles.names:
                _refuse_missing(path, name, rows.frame[name], first_row)
            yield convert(rows)


def _read_entities(path: Path, key: str) -> Iterator[TripleBatch]:
    """Read the rows of a Parquet file as entities; columns without plain values are dropped."""
    with _checked(path) as plain:
        columns = _columns(plain)
        find_key(path, list(columns), key)
        kinds = {name: kind for name, kind in columns.items() if not kind.startswith(_NO_VALUES)}
        if len(kinds) < len(columns):
            valueless = [name for name in columns if name not in kinds]
            _log.warning("%s: columns without plain values are dropped: %s", path, listed(valueless))
        words = list(kinds)
        key_index = find_key(path, words, key)
        _refuse_no_names(path, words[key_index], kinds[words[key_index]])
        datatypes = {index: _DATATYPES.get(kinds[word].partition("(")[0], "") for index, word in enumerate(words)}
        for rows, first_row in _rows(path, plain, dict(zip(words, words, strict=True))):
            _refuse_missing(path, "key", rows.frame[words[key_index]], first_row)
            yield entities_of(rows, words, key_index, datatypes)


def _columns(plain: Path) -> dict[str, str]:
    """Return the type of each column."""
    return {name: str(dtype) for name, dtype in pl.scan_parquet(plain, glob=False).collect_schema().items()}


def _rows(path: Path, plain: Path, columns: Mapping[str, str]) -> Iterator[tuple[Rows, int]]:
    """Read batches of rows as text, renamed to our column names; yields the number of rows before each batch too."""
    table = pl.scan_parquet(plain, glob=False)
    texts = table.select(pl.col(column).cast(pl.String).alias(name) for name, column in columns.items())
    for first_row in range(0, int(table.select(pl.len()).collect().item()), _ROWS):
        yield Rows(texts.slice(first_row, _ROWS).collect(), partial(_row_location, path, first_row)), first_row


def _row_location(path: Path, first_row: int, row: int) -> str:
    return f"{path}, row {first_row + row + 1:,}"


def _refuse_missing(path: Path, name: str, column: pl.Series, first_row: int) -> None:
    if column.null_count():
        where = _row_location(path, first_row, int(column.is_null().arg_max() or 0))
        raise InputError(f"the {name} is missing", where=where, expected="a name")


def _refuse_no_names(path: Path, name: str, dtype: str) -> None:
    if not dtype.startswith(("String", "Categorical", "Enum", "Int", "UInt")):
        raise InputError(
            f"the column {shown(name)} holds no names",
            where=str(path),
            expected="text or whole numbers",
            found=shown(dtype),
        )


@contextmanager
def _checked(path: Path) -> Iterator[Path]:
    """Check a file and yield the path of plain Parquet: the file itself, or a scratch file with decompressed bytes."""
    if compression_of(path) is None:
        _check(path, path)
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.parquet"
        with plain.open("wb") as file:
            file.writelines(read_chunks(path))
        _check(path, plain)
        yield plain


def _check(path: Path, plain: Path) -> None:
    """Read the file in another process, because a damaged file may end the process."""
    with plain.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(_MAGIC)))
        if file.read() != _MAGIC:
            raise InputError(
                "the file is not valid Parquet, or not complete",
                where=str(path),
                expected=f"a file that ends with {_MAGIC.decode()}",
                fix="fetch or make the file again",
            )
    # One thread, because more threads would take more memory than the rows.
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"}
    command = [sys.executable, "-P", os.fspath(_CHECK), os.fspath(plain)]
    seconds = _BASE_SECONDS + _SECONDS_PER_MB * (plain.stat().st_size >> 20)
    try:
        result = subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise _damaged(path, f"reading it takes more than {seconds} s") from None
    if result.returncode:
        lines = result.stderr[-10_000:].decode("utf-8", "replace").strip().splitlines()
        ended = f"reading it ended with {signal.Signals(-result.returncode).name}: " if result.returncode < 0 else ""
        raise _damaged(path, ended + (lines[-1] if lines else "no reason given"))


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        "the Parquet file is damaged, or needs far more memory than its size says",
        where=str(path),
        found=shown(reason.strip(), 200),
        fix="fetch or make the file again",
    )


def _find_columns(path: Path, plain: Path, roles: Roles) -> dict[str, str]:
    """Find the column for each role by name."""
    kinds = _columns(plain)
    words = list(kinds)
    picked = pick_columns(words, roles)
    if picked is None:
        raise InputError(
            "the Parquet file does not have the columns needed",
            where=str(path),
            expected=" or ".join(", ".join(header) for header in roles.headers[:4]),
            found=listed(words, 10) or "no columns",
            fix="rename the columns; if the table has a row for each entity, name the key column with --source-key or "
            "--target-key"
            if roles is TRIPLES
            else "rename the columns",
        )
    for name in roles.names:
        _refuse_no_names(path, words[picked[name]], kinds[words[picked[name]]])
    return {name: words[index] for name, index in picked.items()}


PARQUET = Reader(
    triples=partial(_read, roles=TRIPLES, convert=triples_of),
    links=partial(_read, roles=LINKS, convert=links_of),
    suffixes=(".parquet", ".pq"),
    names=partial(_read, roles=NAMES, convert=names_of),
    rows=_read_entities,
)
