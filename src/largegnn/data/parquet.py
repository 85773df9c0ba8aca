"""Read Parquet: the columns of triples, links or names, found by their names, or a row for each entity.

In: a path. Out: batches of half a million rows. Text and whole numbers are accepted as names. The columns may be called
as in TSV and CSV headers, in any order; other columns are ignored.
A damaged file can end the process that reads it, so another one reads it first (`parquet_check.py`), within bounds. To
start that takes a quarter of a second, to read a million rows a tenth, to pass them between processes ten times that.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

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
from largegnn.data.compression import as_stream, compression_of, read_chunks
from largegnn.data.shown import listed, shown
from largegnn.errors import InputError

__all__ = ["PARQUET"]

_log = logging.getLogger(__name__)
_ROWS = 500_000
_MAGIC = b"PAR1"
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
_Pick = Callable[[list[tuple[str, str]]], dict[str, str]]


def _read(path: Path, roles: Roles, convert: Callable[[Rows], _Batch]) -> Iterator[_Batch]:
    """The batches of a file with columns for all `roles`."""
    with _decompressed(path) as plain:
        columns, num_rows = _check(path, plain, lambda found: _pick(path, found, roles))
        for rows, first_row in _rows(path, plain, columns, num_rows):
            if roles is NAMES:
                rows = replace(rows, frame=rows.frame.with_columns(pl.col("name").fill_null("")))
            for name in roles.names:
                _refuse_missing(path, name, rows.frame[name], first_row)
            yield convert(rows)


def read_parquet_entities(path: Path, key: str) -> Iterator[TripleBatch]:
    """Rows of a Parquet file as entities; columns that hold no plain values are left out."""
    with _decompressed(path) as plain:
        kinds: dict[str, str] = {}

        def pick(columns: list[tuple[str, str]]) -> dict[str, str]:
            find_key(path, [name for name, _ in columns], key)
            kinds.update((name, kind) for name, kind in columns if not kind.startswith(_NO_VALUES))
            if len(kinds) < len(columns):
                left_out = [name for name, kind in columns if name not in kinds]
                _log.warning("%s: columns that hold no plain values are left out: %s", path, listed(left_out))
            return {name: name for name in kinds}

        columns, num_rows = _check(path, plain, pick)
        words = list(columns)
        key_index = find_key(path, words, key)
        _refuse_no_names(path, words[key_index], kinds[words[key_index]])
        datatypes = {index: _DATATYPES.get(kinds[word].partition("(")[0], "") for index, word in enumerate(words)}
        for rows, first_row in _rows(path, plain, columns, num_rows):
            _refuse_missing(path, "key", rows.frame[words[key_index]], first_row)
            yield entities_of(rows, words, key_index, datatypes)


def _rows(path: Path, plain: Path, columns: Mapping[str, str], num_rows: int) -> Iterator[tuple[Rows, int]]:
    """The columns as text, by our names for them, some rows at a time, and the number of rows before."""
    table = pl.scan_parquet(plain, glob=False).select(
        pl.col(column).cast(pl.String).alias(name) for name, column in columns.items()
    )
    for first_row in range(0, num_rows, _ROWS):
        try:
            frame = table.slice(first_row, _ROWS).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise _damaged(path, str(error)) from None
        yield Rows(frame, partial(_row_location, path, first_row)), first_row


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
def _decompressed(path: Path) -> Iterator[Path]:
    """The path of a plain Parquet file: the one given, or a scratch file with its decompressed bytes."""
    if compression_of(path) is None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.parquet"
        with plain.open("wb") as file, as_stream(read_chunks(path)) as stream:
            shutil.copyfileobj(stream, file, 1 << 20)
        yield plain


def _check(path: Path, plain: Path, pick: _Pick) -> tuple[dict[str, str], int]:
    """Read the file in another process: the columns that `pick` chooses, and the number of rows."""
    with plain.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(_MAGIC)))
        if file.read() != _MAGIC:
            raise InputError(
                "the file is not valid Parquet, or not complete",
                where=str(path),
                expected=f"a file that ends with {_MAGIC.decode()}",
                fix="fetch or make the file again",
            )
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", os.fspath(_CHECK), os.fspath(plain), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # One thread: more would take more memory than the rows.
            env={**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"},
        )
        try:
            columns = pick(_answer(path, process, errors)["columns"])
            wanted = json.dumps(list(columns.values())).encode("utf-8") + b"\n"
            return columns, int(_answer(path, process, errors, wanted)["rows"])
        finally:
            process.kill()
            process.communicate()


def _answer(path: Path, process: subprocess.Popen[bytes], errors: Any, question: bytes = b"") -> dict[str, Any]:
    """The next line of the other process; an `InputError` if the file is damaged or ended that process."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question)
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
    except (BrokenPipeError, ValueError):
        status = process.wait()
        errors.seek(0)
        lines = errors.read(10_000).decode("utf-8", "replace").strip().splitlines()
        ended = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        raise _damaged(path, f"reading it ended with {ended}" + (f": {lines[-1]}" if lines else "")) from None
    if "error" in answer:
        raise _damaged(path, answer["error"])
    return answer


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        "the Parquet file is damaged, or needs far more memory than its size says",
        where=str(path),
        found=shown(reason.strip(), 200),
        fix="fetch or make the file again",
    )


def _pick(path: Path, columns: list[tuple[str, str]], roles: Roles) -> dict[str, str]:
    """The column for each role, by name."""
    words = [name for name, _ in columns]
    picked = pick_columns(words, roles)
    if picked is None:
        raise InputError(
            "the Parquet file does not have the columns needed",
            where=str(path),
            expected=" or ".join(", ".join(header) for header in roles.headers[:4]),
            found=listed(words, 10) or "no columns",
            fix="rename the columns; of a table with a row for each entity, name the key column with --source-key or "
            "--target-key"
            if roles is TRIPLES
            else "rename the columns",
        )
    for name in roles.names:
        _refuse_no_names(path, *columns[picked[name]])
    return {name: words[index] for name, index in picked.items()}


PARQUET = Reader(
    triples=partial(_read, roles=TRIPLES, convert=triples_of),
    links=partial(_read, roles=LINKS, convert=links_of),
    suffixes=(".parquet", ".pq"),
    names=partial(_read, roles=NAMES, convert=names_of),
    rows=read_parquet_entities,
)
