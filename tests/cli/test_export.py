"""`largegnn export`: every form, again and again over its own files, and never half a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import safetensors.numpy

from largegnn import api
from tests.cli.small_runs import artifacts_of, call

ROWS = {
    "tsv": "alignment.tsv",
    "parquet": "alignment.parquet",
    "sameas": "sameas.nt",
    "sssom": "alignment.sssom.tsv",
    "alignment-api": "alignment.rdf",
    "embeddings-safetensors": "embeddings.safetensors",
    "embeddings-npy": "embeddings.npy",
}


@pytest.mark.parametrize("form", ROWS)
def test_every_form_is_written_counted_and_written_again(form: str, finished: Path, tmp_path: Path) -> None:
    result = api.open_run(finished)
    expected = len(result.names.entities) if form.startswith("embeddings") else len(result.pairs)
    path = tmp_path / "out" / ROWS[form]
    printed = call("export", finished, "--form", form, "--out", tmp_path / "out").stdout
    assert f"{path}" in printed
    assert f" {expected} " in printed
    data = path.read_bytes()
    path.write_bytes(b"of an older version")
    rows = call("export", finished, "--form", form, "--out", tmp_path / "out", "--json").json()
    assert rows == {str(path): expected}
    assert path.read_bytes() == data, "its own file is replaced without a word"
    if form == "sameas":
        assert data.count(b"owl#sameAs") == expected
    if form == "embeddings-npy":
        assert np.load(path).shape == (expected, 48)
    if form == "embeddings-safetensors":
        assert np.array_equal(safetensors.numpy.load(data)["covered"], np.ones(expected, dtype=bool))
    if form.startswith("embeddings"):
        assert len(pl.read_csv(path.parent / "entities.tsv", separator="\t", quote_char=None)) == expected


@pytest.mark.parametrize("form", ROWS)
def test_a_file_is_replaced_whole_or_not_at_all(
    form: str, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("export", finished, "--form", form, "--out", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as crowded:
        crowded.setattr(os, "fsync", full)
        ended = call("export", finished, "--form", form, "--out", tmp_path, expect=3)
    assert "No space left on device" in ended.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_all_candidates_and_several_forms(finished: Path, tmp_path: Path) -> None:
    result, before = api.open_run(finished), artifacts_of(finished)
    forms = ["--form", "tsv", "--form", "parquet", "--form", "sameas"]
    rows = call("export", finished, *forms, "--all", "--out", tmp_path, "--json").json()
    assert list(rows.values()) == [len(result.candidates), len(result.candidates), len(result.pairs)]
    assert pl.read_parquet(tmp_path / "alignment.parquet").equals(result.candidates)
    ended = call("export", finished, "--form", "sameas", "--form", "xml", "--out", tmp_path / "new", expect=2)
    assert "no export form is called 'xml'" in ended.stderr
    assert not (tmp_path / "new").exists(), "all forms are known before the first is written"
    assert artifacts_of(finished) == before


def test_into_the_run_folder_over_its_own_pages(copy: Path) -> None:
    before = artifacts_of(copy)
    for _ in range(2):
        rows = call("export", copy, "--form", "tsv", "--form", "sssom", "--json").json()
        assert list(rows) == [str(copy / "alignment.tsv"), str(copy / "alignment.sssom.tsv")]
    (copy / "alignment.sssom.tsv").unlink()
    assert artifacts_of(copy) == before
    assert "started" not in call("align", "--resume", "--out", copy).stderr


def test_prefixes_that_are_none_are_refused(finished: Path, tmp_path: Path) -> None:
    ended = call("export", finished, "--out", tmp_path, "--form", "sssom", "--prefix", "nonsense", expect=2)
    assert "--prefix takes name=IRI" in ended.stderr
    assert "for example --prefix dbr=" in ended.stderr
