from __future__ import annotations

import csv
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import StringTable
from largegnn.data.iri import decode_names
from largegnn.data.links import read_named_links
from largegnn.data.vocabulary import name_column
from largegnn.errors import ArtifactError
from largegnn.export import COLUMNS, alignment_table, export
from largegnn.export.table import names_at, share_no_higher
from tests.export.nasty import EVIDENCE, INFO, NASTY, alignment_of, name_lists, names, nasty_pairs, table_of

SCHEMA = {
    **{name: COLUMNS[name] for name in ("source", "target", "score", "margin")},
    **dict.fromkeys(EVIDENCE, pl.Float32),
    **{name: COLUMNS[name] for name in ("confidence", "mutual", "rank", "accepted")},
}


def read_tsv(path: Path) -> pl.DataFrame:
    """Read a TSV file without quoting by Python's csv module, and unpack the names."""
    text = path.read_bytes().decode("utf-8")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE)
    # The csv module ends lines at a bare carriage return too; there is none in the file.
    assert "\r" not in text
    rows = list(reader)
    assert reader.fieldnames == list(SCHEMA)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(SCHEMA, pl.String))
    return frame.select(
        decode_names(frame["source"]).alias("source"),
        decode_names(frame["target"]).alias("target"),
        *(pl.col(name).cast(pl.Float32) for name in ("score", "margin", *EVIDENCE, "confidence")),
        pl.col("mutual") == "true",
        pl.col("rank").cast(pl.Int16),
        pl.col("accepted") == "true",
    )


def test_the_table_by_hand() -> None:
    alignment, task_names = alignment_of([("a", "A"), ("b", "B"), ("c", "C")], [True, False, True])
    table = alignment_table(alignment, task_names)
    assert dict(table.schema) == SCHEMA
    assert table["source"].to_list() == ["a", "c"]
    assert table["target"].to_list() == ["A", "C"]
    assert table["score"].to_list() == alignment.scores[[0, 2]].tolist()
    assert table["cosine"].to_list() == alignment.column("cosine")[[0, 2]].tolist()
    assert table["support"].to_list() == alignment.column("support")[[0, 2]].tolist()
    assert table["margin"].to_list() == alignment.margins[[0, 2]].tolist()
    assert table["confidence"].to_list() == alignment.confidence[[0, 2]].tolist()
    assert table["rank"].to_list() == [1, 3]
    assert table["mutual"].to_list() == [True, False]
    assert alignment_table(alignment, task_names, calibrated=False).columns == [
        name for name in SCHEMA if name != "confidence"
    ]
    whole = alignment_table(alignment, task_names, accepted_only=False)
    assert whole["accepted"].to_list() == [True, False, True]
    assert whole.filter(pl.col("accepted")).equals(table)


def test_pairs_without_names_are_a_bug() -> None:
    alignment, _ = alignment_of([("a", "A"), ("b", "B")])
    _, too_few = alignment_of([("a", "A")])
    with pytest.raises(ArtifactError, match="have names"):
        alignment_table(alignment, too_few)


@given(st.lists(names, max_size=20))
def test_a_string_table_becomes_a_column(strings: list[str]) -> None:
    assert name_column(StringTable.from_strings(strings)).to_list() == strings


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_names_come_by_number_whether_few_or_many(count: int) -> None:
    strings = [f"é{number}" * (number % 3) for number in range(20)]
    ids = np.random.default_rng(3).integers(0, 20, count)
    assert names_at(StringTable.from_strings(strings), ids).to_list() == [strings[number] for number in ids]


def test_few_pairs_read_few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    alignment, task_names = alignment_of([(f"s{row}", f"t{row}") for row in range(10)], [True] + [False] * 9)
    monkeypatch.setattr("largegnn.export.table.name_column", None)
    assert alignment_table(alignment, task_names).rows()[0][:2] == ("s0", "t0")


def test_shares_say_the_order_by_hand() -> None:
    scores = pl.Series([3.0, -1.0, 3.0, float("nan")], dtype=pl.Float32)
    assert share_no_higher(scores).to_list() == [1.0, 0.5, 1.0, 0.25]
    assert share_no_higher(scores.clear()).to_list() == []


def test_long_string_tables_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.data.vocabulary._NAMES_PER_CHUNK", 3)
    for strings in (["", "a", "", "é", "", "", "b"], ["x"] * 6, [""] * 3, [""]):
        assert name_column(StringTable.from_strings(strings)).to_list() == strings


def test_nasty_names_come_back_from_tsv(tmp_path: Path) -> None:
    table = table_of(nasty_pairs(NASTY))
    assert export("tsv", table, tmp_path / "out.tsv", INFO) == len(NASTY)
    assert read_tsv(tmp_path / "out.tsv").equals(table)


def test_plain_names_stand_in_tsv_as_they_are(tmp_path: Path) -> None:
    odd = ['"quoted"', "back\\slash", "two words", "_:blank", "é😀", "http://x.org/(a),b", "urn:x"]
    export("tsv", table_of(nasty_pairs(odd)), tmp_path / "out.tsv", INFO)
    lines = (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines[1:]] == odd


@given(name_lists)
def test_any_names_come_back_from_tsv_and_parquet(pairs: list[tuple[str, str]]) -> None:
    table = table_of(pairs)
    with TemporaryDirectory() as folder:
        export("tsv", table, Path(folder, "out.tsv"), INFO)
        export("parquet", table, Path(folder, "out.parquet"), INFO)
        assert read_tsv(Path(folder, "out.tsv")).equals(table)
        assert pl.read_parquet(Path(folder, "out.parquet")).equals(table)


@given(name_lists)
def test_our_own_reader_gives_back_the_names(pairs: list[tuple[str, str]]) -> None:
    """The first two columns of the TSV are a link file."""
    table = table_of(pairs)
    with TemporaryDirectory() as folder:
        export("tsv", table, Path(folder, "out.tsv"), INFO)
        lines = Path(folder, "out.tsv").read_bytes().split(b"\n")
        links = Path(folder, "links.tsv")
        links.write_bytes(b"\n".join(b"\t".join(line.split(b"\t")[:2]) for line in lines))
        assert read_named_links(links).frame.rows() == list(dict.fromkeys(pairs))


def test_parquet_holds_everything_and_says_where_it_comes_from(tmp_path: Path) -> None:
    table = table_of(nasty_pairs(NASTY))
    assert export("parquet", table, tmp_path / "out.parquet", INFO) == len(NASTY)
    assert pl.read_parquet(tmp_path / "out.parquet").equals(table)
    facts = pl.read_parquet_metadata(tmp_path / "out.parquet")
    assert facts["title"] == INFO.title
    assert "csls" in facts["description"]
    links = tmp_path / "links.parquet"
    export("parquet", table_of([("a b", "é"), ("c", "d")]), links, INFO)
    assert read_named_links(links).frame.rows() == [("a b", "é"), ("c", "d")]


def test_numbers_keep_every_digit(tmp_path: Path) -> None:
    table = table_of([(str(row), str(row)) for row in range(50)]).with_columns(
        pl.Series("score", np.geomspace(1e-30, 1e30, 50), dtype=pl.Float32),
        pl.Series("margin", [np.inf, -np.inf, -0.0] + [0.1] * 47, dtype=pl.Float32),
    )
    export("tsv", table, tmp_path / "out.tsv", INFO)
    assert read_tsv(tmp_path / "out.tsv").equals(table)
