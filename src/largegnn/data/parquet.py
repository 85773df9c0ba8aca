"""Parquet: the three columns of a triple file or the two of a link file, found by their names.

In: a path. Out: columns of names, half a million rows at a time. Text and whole numbers are accepted as names. The
columns may be called as in TSV and CSV headers, in any order; other columns are left alone.
A damaged file can end the process that reads it, so another one reads it first (`parquet_check.py`), within bounds.
Reading is the small part: a million rows take a tenth of a second, to hand them over from one process to the other
would take ten times that, and to start it takes a quarter of a second.
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
from pathlib import Path
from typing import Any

import polars as pl

from largegnn.data.batch import LinkBatch, Reader, TripleBatch
from largegnn.data.compression import as_stream, compression_of, read_chunks
from largegnn.data.headers import LINKS, NAMES, TRIPLES, Roles, find_predicate
from largegnn.data.rows import find_key, row_batch
from largegnn.data.shown import listed, shown
from largegnn.data.tables import keep_links, named_entities, split_literals
from largegnn.errors import InputError

__all__ = ["PARQUET"]

_log = logging.getLogger(__name__)
_ROWS = 500_000
_MAGIC = b"PAR1"
_CHECK = Path(__file__).with_name("parquet_check.py")
_PREDICATE = "predicate"
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
_Pick = Callable[[list[tuple[str, str]]], dict[str, str]]


def read_parquet_triples(path: Path) -> Iterator[TripleBatch]:
    """Triples of a Parquet file."""
    for frame, first_row in _read(path, TRIPLES):
        yield split_literals(frame, _where(path, first_row))


def read_parquet_links(path: Path) -> Iterator[LinkBatch]:
    """Links of a Parquet file."""
    for frame, first_row in _read(path, LINKS):
        yield keep_links(frame, _where(path, first_row))


def read_parquet_names(path: Path) -> Iterator[TripleBatch]:
    """Names of a Parquet file."""
    for frame, first_row in _read(path, NAMES):
        yield named_entities(frame, _where(path, first_row))


def read_parquet_rows(path: Path, key: str) -> Iterator[TripleBatch]:
    """Rows of a Parquet file as entities; columns that hold no plain values are left out."""
    with _unpacked(path) as plain:
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
        for frame, first in _frames(path, plain, columns, num_rows):
            keys = frame[words[key_index]]
            _refuse_missing(path, "key", keys, first)
            yield row_batch(frame, words, key_index, _where(path, first), datatypes)


def _read(path: Path, roles: Roles) -> Iterator[tuple[pl.DataFrame, int]]:
    with _unpacked(path) as plain:
        columns, num_rows = _check(path, plain, lambda found: _pick(path, found, roles))
        for frame, first_row in _frames(path, plain, columns, num_rows):
            if roles is NAMES:
                frame = frame.with_columns(pl.col("name").fill_null(""))
            for name in roles.names:
                _refuse_missing(path, name, frame[name], first_row)
            yield frame, first_row


def _frames(path: Path, plain: Path, columns: Mapping[str, str], num_rows: int) -> Iterator[tuple[pl.DataFrame, int]]:
    """The columns as text, by our names for them, some rows at a time, and the number of rows before."""
    table = pl.scan_parquet(plain, glob=False).select(
        pl.col(column).cast(pl.String).alias(name) for name, column in columns.items()
    )
    for first_row in range(0, num_rows, _ROWS):
        try:
            frame = table.slice(first_row, _ROWS).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise _damaged(path, str(error)) from None
        yield frame, first_row


def _where(path: Path, first_row: int) -> Callable[[int], str]:
    """What names the place of a row of a frame, which has `first_row` rows before it."""
    return lambda row: f"{path}, row {first_row + row + 1:,}"


def _refuse_missing(path: Path, name: str, column: pl.Series, first_row: int) -> None:
    if column.null_count():
        row = first_row + int(column.is_null().arg_max() or 0) + 1
        raise InputError(f"the {name} is missing", where=f"{path}, row {row:,}", expected="a name")


def _refuse_no_names(path: Path, name: str, dtype: str) -> None:
    if not dtype.startswith(("String", "Categorical", "Enum", "Int", "UInt")):
        raise InputError(
            f"the column {shown(name)} holds no names",
            where=str(path),
            expected="text or whole numbers",
            found=shown(dtype),
        )


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The path of a plain Parquet file: the one given, or what is packed in it, written to a scratch file."""
    if compression_of(path) is None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.parquet"
        with plain.open("wb") as file, as_stream(read_chunks(path)) as stream:
            shutil.copyfileobj(stream, file, 1 << 20)
        yield plain


def _check(path: Path, plain: Path, pick: _Pick) -> tuple[dict[str, str], int]:
    """Have the file read by another process: which columns are wanted, and how many rows there are."""
    with plain.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - len(_MAGIC)))
        if file.read() != _MAGIC:
            raise InputError(
                "the file is not valid Parquet, or not complete",
                where=str(path),
                expected=f"a file that ends with {_MAGIC.decode()}",
                fix="fetch or make the file again",
            )
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [sys.executable, "-P", os.fspath(_CHECK), os.fspath(plain), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            # One thread: more would take more memory than the rows.
            env={**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"},
        )
        try:
            columns = pick(_answer(path, process, complaints)["columns"])
            wanted = json.dumps(list(columns.values())).encode("utf-8") + b"\n"
            return columns, int(_answer(path, process, complaints, wanted)["rows"])
        finally:
            process.kill()
            process.communicate()


def _answer(path: Path, process: subprocess.Popen[bytes], complaints: Any, question: bytes = b"") -> dict[str, Any]:
    """The next line of the other process; an `InputError` where it found something wrong or did not survive."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(question)
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
    except (BrokenPipeError, ValueError):
        status = process.wait()
        complaints.seek(0)
        lines = complaints.read(10_000).decode("utf-8", "replace").strip().splitlines()
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
    """Which column holds what, by our names for them."""
    words = [name for name, _ in columns]
    found = roles.find(words)
    if found is None:
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
    for index in found:
        _refuse_no_names(path, *columns[index])
    picked = {name: words[index] for name, index in zip(roles.names, found, strict=True)}
    predicate = find_predicate(words) if roles is LINKS else None
    return picked if predicate is None else {**picked, _PREDICATE: words[predicate]}


PARQUET = Reader(read_parquet_triples, read_parquet_links, (".parquet", ".pq"), read_parquet_names, read_parquet_rows)
