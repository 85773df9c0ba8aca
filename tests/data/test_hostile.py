"""Test that files made to hang or to fill memory are refused, each in its own process, within seconds and a gigabyte.

gzip and bzip2 are read in chunks of an eighth of the usual size, so that the limit on their expansion is reached after
an eighth of the bytes; the limit on time is lower accordingly.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import zstandard

from largegnn.data.rdf_text import MAX_DEPTH
from largegnn.data.readers import read_triples
from largegnn.errors import InputError

MAX_MEMORY_MB, MAX_SECONDS = 1_000, 6
SCRIPT = """
import json, resource, sys, time
from pathlib import Path
from largegnn.data.readers import read_triples
from largegnn.data.coding import code_batches
from largegnn.errors import InputError
begin, error = time.process_time(), ""
try:
    code_batches(read_triples(Path(sys.argv[1])), False)
except InputError as found:
    error = str(found)
own = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
peak = max(int(own.split()[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024
print(json.dumps([error, time.process_time() - begin, peak]))
"""
ZSTD = zstandard.ZstdCompressor(level=1)


def deep(levels: int, opening: str = "<<(", closing: str = ")>>") -> str:
    return "<a:a> <a:r> " + f"{opening} <a:a> <a:r> " * levels + "<a:b> " + f"{closing} " * levels + ".\n"


def wide_window() -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(b"a\tr\tb\n" * 1000) + packer.flush()


def bzip2(text: bytes) -> bytes:
    return bz2.compress(text * (5_000_000 // len(text))) * 2_000


def gzipped(text: bytes) -> bytes:
    return gzip.compress(text * (50_000_000 // len(text)), 9) * 200


def zstd(text: bytes, begin: bytes = b"") -> bytes:
    return ZSTD.compress(begin) + ZSTD.compress(text * (50_000_000 // len(text))) * 200


def names(declaration: str, name: str) -> bytes:
    rows = (f"<http://x#r> {name.format(number)}" for number in range(20_000))
    return (declaration.format("x" * 60_000) + "".join(f"<http://x#a> {row} .\n" for row in rows)).encode()


def as_parquet(number_of: int, head: pl.Expr) -> bytes:
    rows = (
        pl.LazyFrame().select(number=pl.int_range(number_of)).select(head=head, relation=pl.lit("r"), tail=pl.lit("b"))
    )
    buffer = io.BytesIO()
    rows.sink_parquet(buffer, compression="zstd", row_group_size=1 << 20 if number_of > 1 << 20 else 500)
    return buffer.getvalue()


def many_rows() -> bytes:
    return as_parquet(20_000_000, (pl.col("number") * 0).cast(pl.String))


def long_names() -> bytes:
    return as_parquet(20_000, pl.col("number").cast(pl.String) + "x" * 60_000)


TOO_MUCH = "at most 500 times its size"
FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "lines.tsv.bz2": (lambda: bzip2(b"a\tr\tb\n"), TOO_MUCH),
    "blanks.nt.bz2": (lambda: bzip2(b"\n"), TOO_MUCH),
    "comments.nt.gz": (lambda: gzipped(b"#\n"), TOO_MUCH),
    "one_line.csv.zst": (lambda: zstd(b"a"), "line is longer than 33,554,432 bytes"),
    "unclosed.csv.zst": (lambda: zstd(b"\n", b'a,"'), "field larger than field limit (16777216)"),
    "window.tsv.zst": (wide_window, "window of at most 128 MiB"),
    "labels": (lambda: b"_:" * 20_000, "not recognised"),
    "labels_and_dots": (lambda: b"_:." * 20_000 + b"\n" + b'_:a "' * 10_000, "not recognised"),
    "prefix.ttl": (lambda: names("@prefix x: <http://{}> .\n", "x:{}"), "names take far more memory"),
    "deep.ttl": (lambda: deep(50_000).encode(), f"at most {MAX_DEPTH} levels"),
    "deep.nt": (lambda: deep(50_000).encode(), f"at most {MAX_DEPTH} levels"),
    "literal.ttl": (lambda: b'<a:a> <a:r> "' + b"x" * 40_000_000 + b'" .\n', "longer than the parser accepts"),
    "rows.parquet": (many_rows, "rows, more than 20 for each byte of the file"),
    "long_names.parquet": (long_names, "the Parquet file is damaged, or needs far more memory"),
    "returns.tsv": (lambda: b"a\tr\tb\n" + b"\r" * 30_000_000 + b"x", "wrong number of columns"),
}


@pytest.mark.parametrize("name", FILES)
def test_refused_within_bounds(tmp_path: Path, name: str) -> None:
    make, message = FILES[name]
    path = tmp_path / name
    path.write_bytes(make())
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    error, seconds, peak_mb = json.loads(done.stdout)
    assert message in error
    assert len(error) < 2_000
    assert seconds < MAX_SECONDS
    assert peak_mb < MAX_MEMORY_MB


def read(path: Path) -> list[tuple[str, str, str]]:
    return [row for batch in read_triples(path) for row in zip(batch.heads, batch.relations, batch.tails, strict=True)]


class TestNesting:
    def test_what_is_allowed_is_read(self, tmp_path: Path) -> None:
        for name in ("t.ttl", "t.nt"):
            (tmp_path / name).write_text("<a:a> <a:r> <a:b> .\n" + deep(MAX_DEPTH))
            assert read(tmp_path / name) == [("a:a", "a:r", "a:b")]
            (tmp_path / name).write_text("<a:a> <a:r> <a:b> .\n" + deep(MAX_DEPTH + 1))
            with pytest.raises(InputError, match="nested too deep"):
                read(tmp_path / name)

    def test_many_terms_side_by_side_are_no_depth(self, tmp_path: Path) -> None:
        path = tmp_path / "t.ttl"
        path.write_text(deep(2) * 1000 + "<a:a> <a:r> <a:b> .\n")
        assert read(path) == [("a:a", "a:r", "a:b")]

    @pytest.mark.parametrize(
        "hidden",
        ['"<<("', "'<<('", '"""<<( "" <<("""', "'''<<( '' <<('''", '"\\"<<("', "<a:<<(>", "# <<( \" '\n <a:c>"],
    )
    def test_what_only_looks_like_a_term_is_none(self, tmp_path: Path, hidden: str) -> None:
        path = tmp_path / "t.ttl"
        path.write_text(f"<a:a> <a:r> {hidden} .\n" * 1000 + "<a:a> <a:r> <a:b> .\n")
        assert ("a:a", "a:r", "a:b") in read(path)
        path.write_text(f"<a:a> <a:r> {hidden} .\n" * 1000 + deep(5_000))
        with pytest.raises(InputError, match="nested too deep"):
            read(path)

    @pytest.mark.parametrize("hiding", ['<a:x"<y>', "<a:x'>", '# "\n', "# '''\n", '"\\\\"', "'\"'"])
    def test_depth_cannot_be_hidden(self, tmp_path: Path, hiding: str) -> None:
        path = tmp_path / "t.ttl"
        inner = f"<<( {hiding} <a:a> <a:r> " if hiding.startswith("#") else "<<( <a:a> <a:r> "
        first = "<a:a> <a:r> <a:c> ." if hiding.startswith("#") else f"<a:a> <a:r> {hiding} ."
        path.write_text(first + "\n<a:a> <a:r> " + inner * 5_000 + '<a:b> "')
        with pytest.raises(InputError, match="nested too deep"):
            read(path)

    def test_other_brackets_may_be_deep(self, tmp_path: Path) -> None:
        path = tmp_path / "t.ttl"
        for opening, closing in (("[ <a:p>", "]"), ("(", ")")):
            path.write_text(f"<a:a> <a:r> {opening * 20_000} <a:b> {closing * 20_000} .\n")
            assert len(read(path)) > 20_000


class TestDamagedParquet:
    def test_any_damage_is_an_input_error(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        rows = [(f"entity {n % 50}", "r", f"entity {n * 7 % 50}") for n in range(2_000)]
        pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row").write_parquet(path)
        whole = path.read_bytes()
        assert read(path) == rows
        generator = random.Random(0)
        for _ in range(6):
            damaged = bytearray(whole)
            for _ in range(generator.randint(1, 20)):
                damaged[generator.randrange(4, len(whole) - 4)] = generator.choice((0, 0xFF, generator.randrange(256)))
            path.write_bytes(damaged)
            with contextlib.suppress(InputError):
                read(path)

    def test_a_cut_file_is_said_to_be_incomplete(self, tmp_path: Path) -> None:
        path = tmp_path / "t.parquet"
        pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]}).write_parquet(path)
        path.write_bytes(path.read_bytes()[:-10])
        with pytest.raises(InputError, match="not complete") as error:
            read(path)
        assert error.value.expected == "a file that ends with PAR1"

    def test_a_death_of_the_reading_process_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path, script = tmp_path / "t.parquet", tmp_path / "dies.py"
        pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]}).write_parquet(path)
        script.write_text("import os, sys\nprint('out of memory', file=sys.stderr, flush=True)\nos.abort()\n")
        monkeypatch.setattr("largegnn.data.parquet._CHECK", script)
        with pytest.raises(InputError, match="damaged") as error:
            read(path)
        assert error.value.found == "reading it ended with SIGABRT: out of memory"
