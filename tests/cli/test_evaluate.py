"""What is said of finished runs, alone and side by side, and what they are written as."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import safetensors.numpy

from largegnn import api
from largegnn.runs.store import RunStore
from tests.cli.small_runs import HASTY, QUICK, artifacts_of, call, make_pair, without_costs

ROWS = {
    "tsv": "alignment.tsv",
    "parquet": "alignment.parquet",
    "sameas": "sameas.nt",
    "sssom": "alignment.sssom.tsv",
    "alignment-api": "alignment.rdf",
    "embeddings-safetensors": "embeddings.safetensors",
    "embeddings-npy": "embeddings.npy",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("evaluate") / "pair")


@pytest.fixture(scope="module")
def finished(pair: Path) -> Path:
    call("align", pair, "--out", pair.parent / "finished", *QUICK)
    return pair.parent / "finished"


@pytest.fixture(scope="module")
def untested(pair: Path) -> Path:
    """A run on two files and seeds alone: there is nothing to measure it by."""
    seeds = pair / "721_5fold" / "1" / "train_links"
    call(
        "align",
        pair / "rel_triples_1",
        pair / "rel_triples_2",
        "--seeds",
        seeds,
        "--out",
        pair.parent / "untested",
        *HASTY,
    )
    return pair.parent / "untested"


def test_evaluate_says_what_align_said(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.iterdir()}
    report = call("evaluate", finished, "--json").json()
    assert report == json.loads((finished / "report.json").read_text())
    table = call("evaluate", finished).stdout
    assert "seeds from train (45, 30% of the links), fold 1, 60 test links, structure only, rounds 0" in table
    for words in ("H@1 both ways", "mutual_5nn", "reliability by test links"):
        assert words in table
    assert {path: path.stat().st_mtime_ns for path in finished.iterdir()} == before, "it only looks"


def test_evaluate_measures_what_was_not_measured_yet(pair: Path, finished: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "run", *QUICK, "--to", "match")
    report = call("evaluate", tmp_path / "run", "--json").json()
    assert without_costs(report) == without_costs(json.loads((finished / "report.json").read_text()))
    assert "evaluate" in RunStore(tmp_path / "run").stages


def test_evaluate_refuses_what_is_not_finished(pair: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "run", *QUICK, "--to", "integrate")
    ended = call("evaluate", tmp_path / "run", expect=2)
    assert "no pairs to measure yet" in ended.stderr
    assert "stages up to integrate" in ended.stderr
    assert f"largegnn align --resume --out {tmp_path / 'run'}" in ended.stderr
    assert "no run to resume" in call("evaluate", tmp_path / "nowhere", expect=2).stderr
    for words in (["export", "--form", "tsv"], ["explain"]):
        ended = call(*words, tmp_path / "run", *(["x"] if words == ["explain"] else []), expect=2)
        assert "the run has no stage match" in ended.stderr


def test_a_run_without_test_links(untested: Path) -> None:
    ended = call("evaluate", untested)
    assert "the run has no test links to measure it by" in ended.stdout
    assert "ideal setting" not in ended.stdout
    assert "pairs put out" in ended.stdout
    report = call("evaluate", untested, "--json").json()
    assert report["ideal"] is None
    assert report["real"] is None
    assert report["protocol"]["num_test_links"] == 0


def test_compare_shows_exactly_the_settings_that_differ(pair: Path, finished: Path, untested: Path) -> None:
    other = pair.parent / "other"
    call("align", pair, "--out", other, *QUICK, "--seed", "5", "--set", "match.k=4", "--set", "train.gamma=2.0")
    facts = call("compare", finished, other, "--json").json()
    assert facts["settings"] == {
        "match.k": {str(finished): 5, str(other): 4},
        "seed": {str(finished): 0, str(other): 5},
        "train.gamma": {str(finished): 1.0, str(other): 2.0},
    }
    assert list(facts["reports"]) == [str(finished), str(other)]
    table = call("compare", finished, other, untested).stdout
    for words in ("train.gamma", "H@1 csls", "F1 mutual 5-NN", "seconds of training", "-"):
        assert words in table
    twin = shutil.copytree(finished, pair.parent / "twin")
    assert "none" in call("compare", finished, twin).stdout
    assert call("compare", finished, twin, "--json").json()["settings"] == {}


def test_one_run_is_nothing_to_compare(finished: Path) -> None:
    for runs in ([finished], [finished, finished / ".." / finished.name]):
        assert "nothing to compare" in call("compare", *runs, expect=2).stderr


@pytest.mark.parametrize("form", ROWS)
def test_every_form_is_written_once_and_counted(form: str, finished: Path, tmp_path: Path) -> None:
    result = api.open_run(finished)
    expected = len(result.names.entities) if form.startswith("embeddings") else len(result.pairs)
    path = tmp_path / "out" / ROWS[form]
    printed = call("export", finished, "--form", form, "--out", tmp_path / "out").stdout
    assert f"{path}" in printed
    assert f" {expected} " in printed
    data = path.read_bytes()
    again = call("export", finished, "--form", form, "--out", tmp_path / "out", expect=2)
    assert "the file is there already" in again.stderr
    assert "--force" in again.stderr
    assert path.read_bytes() == data
    path.write_bytes(b"mine")
    rows = call("export", finished, "--form", form, "--out", tmp_path / "out", "--force", "--json").json()
    assert rows == {str(path): expected}
    assert path.read_bytes() == data
    if form == "sameas":
        assert data.count(b"owl#sameAs") == expected
    if form == "embeddings-npy":
        assert np.load(path).shape == (expected, 48)
    if form == "embeddings-safetensors":
        assert np.array_equal(safetensors.numpy.load(data)["covered"], np.ones(expected, dtype=bool))
    if form.startswith("embeddings"):
        assert len(pl.read_csv(path.parent / "entities.tsv", separator="\t", quote_char=None)) == expected


def test_all_candidates_and_several_forms(finished: Path, tmp_path: Path) -> None:
    result, before = api.open_run(finished), artifacts_of(finished)
    forms = ["--form", "tsv", "--form", "parquet", "--form", "sameas"]
    rows = call("export", finished, *forms, "--all", "--out", tmp_path, "--json").json()
    assert list(rows.values()) == [len(result.candidates), len(result.candidates), len(result.pairs)]
    assert pl.read_parquet(tmp_path / "alignment.parquet").equals(result.candidates)
    ended = call("export", finished, *forms, expect=2)
    assert str(finished / "alignment.tsv") in ended.stderr
    assert not (finished / "sameas.nt").exists(), "all forms or none"
    assert artifacts_of(finished) == before
    assert "no form is called 'xml'" in call("export", finished, "--form", "xml", expect=2).stderr


def test_an_entity_list_of_someone_else_is_not_overwritten(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "entities.tsv").write_text("mine")
    ended = call("export", finished, "--form", "embeddings-npy", "--out", tmp_path, expect=2)
    assert "entities.tsv" in ended.stderr
    assert (tmp_path / "entities.tsv").read_text() == "mine"
    call("export", finished, "--form", "embeddings-npy", "--out", tmp_path, "--force")
    call("export", finished, "--form", "embeddings-safetensors", "--out", tmp_path)
