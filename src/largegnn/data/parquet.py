"""Parquet: the three columns of a triple file or the two of a link file, found by their names.

In: a path. Out: columns of names, half a million rows at a time. Text and whole numbers are accepted as names. The
columns may be called as in TSV and CSV headers, in any order; other columns are left alone.
The file is read by a process of its own (`parquet_child.py`), within bounds: whatever is wrong with it, this one lives.
The rows come over as Arrow, read once; a check in a child and a second reading here would cost twice as much.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from largegnn.data.batch import LinkBatch, Reader, TripleBatch
from largegnn.data.compression import as_stream, compression_of, read_chunks
from largegnn.data.headers import LINKS, TRIPLES, Roles, find_predicate
from largegnn.data.shown import listed, shown
from largegnn.data.tables import keep_links, split_literals
from largegnn.errors import InputError

__all__ = ["PARQUET"]

_MAGIC = b"PAR1"
_CHILD = Path(__file__).with_name("parquet_child.py")


def read_parquet_triples(path: Path) -> Iterator[TripleBatch]:
    """Triples of a Parquet file."""
    for frame, first_row in _read(path, TRIPLES):
        yield split_literals(frame, lambda row, first=first_row: f"{path}, row {first + row + 1:,}")  # type: ignore[misc]


def read_parquet_links(path: Path) -> Iterator[LinkBatch]:
    """Links of a Parquet file."""
    for frame, first_row in _read(path, LINKS):
        yield keep_links(frame, lambda row, first=first_row: f"{path}, row {first + row + 1:,}")  # type: ignore[misc]


def _read(path: Path, roles: Roles) -> Iterator[tuple[pl.DataFrame, int]]:
    with _unpacked(path) as plain, _Child(path, plain) as child:
        columns = _pick(path, json.loads(child.receive("S") or b"[]"), roles)
        child.ask(list(columns.values()))
        first_row = 0
        while (payload := child.receive("B")) is not None:
            frame = pl.read_ipc_stream(io.BytesIO(payload))
            frame = frame.select(pl.col(old).alias(new) for new, old in columns.items())
            for name in roles.names:
                if frame[name].null_count():
                    row = first_row + int(frame[name].is_null().arg_max() or 0) + 1
                    raise InputError(f"the {name} is missing", where=f"{path}, row {row:,}", expected="a name")
            yield frame, first_row
            first_row += len(frame)


def _pick(path: Path, columns: list[tuple[str, str, bool]], roles: Roles) -> dict[str, str]:
    """Which column holds what, by our names for them."""
    words = [name for name, _, _ in columns]
    found = roles.find(words)
    if found is None:
        raise InputError(
            "the Parquet file does not have the columns needed",
            where=str(path),
            expected=" or ".join(", ".join(header) for header in roles.headers[:4]),
            found=listed(words, 10) or "no columns",
            fix="rename the columns",
        )
    for index in found:
        name, dtype, holds_names = columns[index]
        if not holds_names:
            raise InputError(
                f"the column {shown(name)} holds no names",
                where=str(path),
                expected="text or whole numbers",
                found=shown(dtype),
            )
    picked = {name: words[index] for name, index in zip(roles.names, found, strict=True)}
    predicate = find_predicate(words) if roles is LINKS else None
    if predicate is not None and columns[predicate][2]:
        picked["predicate"] = words[predicate]
    return picked


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


class _Child:
    """The process that reads the file; it ends with the `with` statement, whether it has finished or not."""

    def __init__(self, path: Path, plain: Path) -> None:
        with plain.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(_MAGIC)))
            if file.read() != _MAGIC:
                raise InputError(
                    "the file is not valid Parquet, or not complete",
                    where=str(path),
                    expected=f"a file that ends with {_MAGIC.decode()}",
                    fix="fetch or make the file again",
                )
        self._path = path
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed in __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.fspath(_CHILD), os.fspath(plain)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            # More threads than one would only take memory: the rows are used one batch after another.
            env={**os.environ, "POLARS_MAX_THREADS": "1", "RUST_BACKTRACE": "0"},
        )

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()

    def ask(self, columns: list[str]) -> None:
        """Say which columns are wanted."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(columns).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._gone() from None

    def receive(self, kind: str) -> bytes | None:
        """The next message, of this kind; None when all is said."""
        assert self._process.stdout is not None
        head = self._process.stdout.read(9)
        payload = self._process.stdout.read(struct.unpack(">Q", head[1:])[0]) if len(head) == 9 else b""
        found = head[:1].decode()
        if found == kind:
            return payload
        if found == "D":
            return None
        if found == "E":
            raise self._damaged(payload.decode("utf-8", "replace"))
        raise self._gone()

    def _gone(self) -> InputError:
        """What to say of a process that ended before it was done."""
        status = self._process.wait()
        self._said.seek(0)
        said = self._said.read(10_000).decode("utf-8", "replace").strip().splitlines()
        ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
        return self._damaged(f"reading it ended with {ended}" + (f": {said[-1]}" if said else ""))

    def _damaged(self, reason: str) -> InputError:
        return InputError(
            "the Parquet file is damaged, or needs far more memory than its size says",
            where=str(self._path),
            found=shown(reason, 200),
            fix="fetch or make the file again",
        )


PARQUET = Reader(read_parquet_triples, read_parquet_links, (".parquet", ".pq"))
