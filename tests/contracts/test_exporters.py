"""What every entry of `EXPORTERS` promises: whole files or none, and no silence about empty ones."""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl
import pytest

from largegnn.errors import InputError, StorageError
from largegnn.export import Exporter, ExportInfo, export, file_of_form
from largegnn.machine.atomic import write_text
from largegnn.parts import EXPORTERS
from tests.export.full_disk import fail_after
from tests.export.nasty import INFO, UNCALIBRATED, table_of

# Items of Wikidata on one side: what QuickStatements is for, and names like others to all else.
TABLE = table_of([(f"http://www.wikidata.org/entity/Q{row + 1}", f"http://b/{row}") for row in range(200)])
NO_PLACE_FOR_WORDS = ("tsv", "neo4j", "quickstatements")


@pytest.mark.parametrize("form", list(EXPORTERS))
@pytest.mark.parametrize("num_bytes", [0, 1000])
def test_a_full_disk_leaves_nothing(form: str, num_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_after(monkeypatch, num_bytes)
    with pytest.raises(StorageError, match="No space left on device"):
        export(form, TABLE, tmp_path / "out", INFO)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_what_was_there_survives_a_full_disk(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").write_text("before")
    fail_after(monkeypatch, 100)
    with pytest.raises(StorageError):
        export(form, TABLE, tmp_path / "out", INFO)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_a_limit_of_the_system_is_told_the_same_way(form: str, tmp_path: Path) -> None:
    """No pretending: the system itself refuses to let the file grow."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(StorageError, match="cannot write"):
            export(form, TABLE, tmp_path / "out", INFO)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_places_that_cannot_be_written(form: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (Path("/proc/nowhere/out"), tmp_path / "file" / "out", tmp_path):
        with pytest.raises(StorageError, match="cannot write"):
            export(form, TABLE, path, INFO)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert not list(tmp_path.parent.glob("*.partial"))


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_folders_are_made_and_nothing_else(form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert export(form, TABLE, tmp_path / "new" / "folder" / "out", INFO) == len(TABLE)
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["out"]
    assert not caplog.records


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_every_form_says_what_it_is(form: str) -> None:
    exporter = EXPORTERS[form]
    assert isinstance(exporter, Exporter)
    assert exporter.description
    assert file_of_form(form) == exporter.file_name
    assert sum(exporter.file_name == EXPORTERS[other].file_name for other in EXPORTERS) == 1


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_what_is_not_calibrated_is_never_called_confidence(form: str, tmp_path: Path) -> None:
    table = TABLE.with_columns(confidence=pl.lit(0.123456789, pl.Float32))
    for columns in (table, table.drop("confidence")):
        export(form, columns, tmp_path / "out", UNCALIBRATED)
        written = (tmp_path / "out").read_bytes()
        assert b"0.12345679" not in written
        assert b"\tconfidence\t" not in written
        if form == "parquet":
            assert "confidence" not in pl.read_parquet(tmp_path / "out").columns
            written = pl.read_parquet_metadata(tmp_path / "out")["description"].encode()
        if form not in NO_PLACE_FOR_WORDS:
            assert b"scores are not calibrated" in written
    export(form, table, tmp_path / "out", INFO)
    if form not in ("parquet", "sameas", "quickstatements"):
        assert b"0.12345679" in (tmp_path / "out").read_bytes()


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_the_same_table_makes_the_same_file(form: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(form, TABLE, tmp_path / name, INFO)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_parts_make_one_file(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export(form, TABLE, tmp_path / "one", INFO)
    monkeypatch.setattr("largegnn.export.info.ROWS_PER_PART", 7)
    export(form, TABLE, tmp_path / "two", INFO)
    if form != "parquet":
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("form", list(EXPORTERS))
def test_no_pairs_are_said_aloud(form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert export(form, TABLE.clear(), tmp_path / "out", INFO) == 0
    assert (tmp_path / "out").stat().st_size
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "it holds no pair" in record.getMessage()


def test_pairs_left_out_are_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of([("http://a", "http://A"), ("http://b", "http://B")], [True, False])
    with caplog.at_level(logging.INFO):
        assert export("tsv", table, tmp_path / "out.tsv", INFO) == 2
        assert not caplog.records
        assert export("sssom", table, tmp_path / "out.sssom.tsv", INFO) == 1
    assert "the 1 accepted of 2 pairs" in caplog.text


def test_unknown_forms_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"(?s)'xls'.*sssom, alignment-api, rdf12, neo4j, quickstatements, sssom-relations, embeddings-",
    ):
        export("xls", TABLE, tmp_path / "out", INFO)
    with pytest.raises(InputError, match="takes embeddings"):
        export("embeddings-npy", TABLE, tmp_path / "out", INFO)
    with pytest.raises(InputError, match="is not an exporter"):
        export("math:sqrt", TABLE, tmp_path / "out", INFO)
    assert file_of_form("embeddings-npy") == "embeddings.npy"
    assert list(tmp_path.iterdir()) == []


def count_pairs(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    write_text(path, f"{len(table)} pairs of {info.title}")
    return len(table)


MINE = Exporter("count.txt", count_pairs, accepted_only=True, description="how many pairs there are")


def test_an_exporter_of_ones_own(tmp_path: Path) -> None:
    form = f"{__name__}:MINE"
    assert file_of_form(form) == "count.txt"
    table = table_of([("a", "A"), ("b", "B")], [True, False])
    assert export(form, table, tmp_path / "count.txt", INFO) == 1
    assert (tmp_path / "count.txt").read_text(encoding="utf-8") == f"1 pairs of {INFO.title}"
