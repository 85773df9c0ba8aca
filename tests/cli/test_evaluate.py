"""What is said of finished runs, by their own test links or others, alone and side by side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from largegnn import api
from largegnn.runfolder.store import RunStore
from tests.cli.small_runs import QUICK, artifacts_of, call, without_costs


def test_evaluate_says_what_align_said(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.iterdir()}
    report = call("evaluate", finished, "--json").json()
    written = json.loads((finished / "report.json").read_text())
    written["stages"]["report"] = report["stages"]["report"]  # it ends after the file is written
    assert report == written
    table = call("evaluate", finished).stdout
    assert "seeds from train (45, 30% of the links), fold 1, 60 test links, channels structure+rules, rounds 0" in table
    for words in ("H@1 both ways", "mutual_5nn", "reliability by test links"):
        assert words in table
    assert {path: path.stat().st_mtime_ns for path in finished.iterdir()} == before, "it only looks"


def test_evaluate_measures_what_was_not_measured_yet(pair: Path, finished: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "run", *QUICK, "--to", "match")
    report = call("evaluate", tmp_path / "run", "--json").json()
    assert without_costs(report) == without_costs(json.loads((finished / "report.json").read_text()))
    assert {"evaluate", "report"} <= set(RunStore(tmp_path / "run").steps)


def test_evaluate_refuses_what_is_not_finished(pair: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "run", *QUICK, "--to", "integrate")
    ended = call("evaluate", tmp_path / "run", expect=2)
    assert "the run has no match yet" in ended.stderr
    assert "steps up to integrate" in ended.stderr
    assert f"largegnn align --resume --out {tmp_path / 'run'}" in ended.stderr
    assert "the folder is not a run" in call("evaluate", tmp_path / "nowhere", expect=2).stderr
    for words in (["export", "--form", "tsv"], ["explain"]):
        ended = call(*words, tmp_path / "run", *(["x"] if words == ["explain"] else []), expect=2)
        assert "the run has no match yet" in ended.stderr


def test_a_run_without_test_links(untested: Path) -> None:
    ended = call("evaluate", untested)
    assert "The run has no test links." in ended.stdout
    assert "ideal setting" not in ended.stdout
    assert "pairs accepted" in ended.stdout
    report = call("evaluate", untested, "--json").json()
    assert report["ideal"] is None
    assert report["real"] is None
    assert report["protocol"]["num_test_links"] == 0


def test_other_links_judge_a_run_and_nothing_is_written(finished: Path, pair: Path, tmp_path: Path) -> None:
    before, own = artifacts_of(finished), call("evaluate", finished, "--json").json()
    lines = (pair / "721_5fold" / "1" / "test_links").read_text().splitlines(keepends=True)
    (tmp_path / "same").write_text("".join(lines))
    assert call("evaluate", finished, "--test-links", tmp_path / "same", "--json").json() == own
    (tmp_path / "few").write_text("".join(lines[:20]))
    few = call("evaluate", finished, "--test-links", tmp_path / "few", "--json").json()
    assert (few["protocol"]["num_test_links"], few["protocol"]["gold"]) == (20, "partial")
    accepted = few["real"]["accepted"]
    assert accepted["judged"] < accepted["pairs"]
    assert accepted["partial_precision"] > accepted["precision"]
    full = call("evaluate", finished, "--test-links", tmp_path / "few", "--gold", "full", "--json").json()
    assert full["protocol"]["gold"] == "full"
    assert full["real"] == few["real"], "both readings are always in the report"
    (tmp_path / "unknown").write_text(f"no entity\tno one\n{lines[0]}")
    ended = call("evaluate", finished, "--test-links", tmp_path / "unknown", expect=2)
    assert "1 of 2 links name an entity that the run does not have" in ended.stderr
    assert "--skip-unknown" in ended.stderr
    skipped = call("evaluate", finished, "--test-links", tmp_path / "unknown", "--skip-unknown", "--json")
    assert skipped.json()["protocol"]["num_test_links"] == 1
    assert "unknown gold 'silver'" in call("evaluate", finished, "--gold", "silver", expect=2).stderr
    assert artifacts_of(finished) == before


def test_a_run_without_test_links_is_judged_by_given_ones(untested: Path, pair: Path) -> None:
    links = pair / "721_5fold" / "1" / "test_links"
    ended = call("evaluate", untested, "--test-links", links)
    assert "60 test links" in ended.stdout
    assert "ideal setting" in ended.stdout


@pytest.fixture(scope="module")
def other(pair: Path) -> Path:
    """A run with three settings changed."""
    folder = pair.parent / "other"
    call("align", pair, "--out", folder, *QUICK, "--seed", "5", "--set", "match.k=4", "--set", "train.gamma=2.0")
    return folder


def test_compare_shows_exactly_the_settings_that_differ(finished: Path, other: Path, untested: Path) -> None:
    facts = call("compare", finished, other, "--json").json()
    assert facts["settings"] == {
        "match.k": {str(finished): 5, str(other): 4},
        "seed": {str(finished): 0, str(other): 5},
        "train.gamma": {str(finished): 1.0, str(other): 2.0},
    }
    assert list(facts["reports"]) == [str(finished), str(other)]
    for folder in (finished, other):
        report, figures = facts["reports"][str(folder)], facts["figures"]
        assert figures["hits@1 csls"][str(folder)] == report["ideal"]["csls"]["source_to_target"]["hits@1"]
        assert figures["recall accepted"][str(folder)] == report["real"]["accepted"]["recall"]
        assert figures["partial f1 accepted"][str(folder)] == report["real"]["accepted"]["partial_f1"]
        assert figures["gold"][str(folder)] == "partial"
        assert figures["pairs"][str(folder)] == report["pairs"]
    table = call("compare", finished, other, untested).stdout
    for words in (
        "settings that differ",
        "train.gamma",
        "hits@1 csls",
        "recall mutual_5nn",
        "seconds of training",
        "-",
    ):
        assert words in table
    for folder in (finished, other, untested):
        assert folder.name in table


def test_compare_of_equal_runs_and_in_a_program(finished: Path, other: Path, tmp_path: Path) -> None:
    twin = shutil.copytree(finished, tmp_path / "twin")
    assert "none" in call("compare", finished, twin).stdout
    assert call("compare", finished, twin, "--json").json()["settings"] == {}
    found = api.compare(finished, other)
    assert set(found.settings) == {"match.k", "seed", "train.gamma"}
    assert found.summaries[str(other)].settings.seed == 5


def test_one_run_is_nothing_to_compare(finished: Path) -> None:
    for runs in ([finished], [finished, finished / ".." / finished.name]):
        assert "nothing to compare" in call("compare", *runs, expect=2).stderr
