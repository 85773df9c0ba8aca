"""Stages of a run by name: what is reused, what is refused, what is made again, and what a deleted manifest costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from largegnn.runfolder.store import RunStore
from largegnn.settings import STEPS
from tests.cli.small_runs import QUICK, artifacts_of, call, stages_from, started, without_costs


def test_another_precision_in_a_finished_folder_costs_only_the_matching(pair: Path, copy: Path) -> None:
    before = artifacts_of(copy)
    for words in (["align", pair, *QUICK], ["align", "--resume"]):
        ended = call(*words, "--out", copy, "--min-precision", "0.5", expect=2)
        assert "match.min_precision was 0.0, is 0.5" in ended.stderr
        assert "--force match" in ended.stderr
        assert artifacts_of(copy) == before
    ended = call("align", "--resume", "--out", copy, "--min-precision", "0.5", "--force", "match")
    assert started(ended.stderr) == ["match", "evaluate", "report"]
    assert "min_precision = 0.5" in (copy / "config.toml").read_text()
    ended = call("align", "--resume", "--out", copy, "--set", "search.k=15", expect=2)
    assert "search.k was 12, is 15" in ended.stderr
    assert "--force search" in ended.stderr


def test_settings_of_the_matching_matter_to_rounds_that_are_made(copy: Path) -> None:
    more = ["--rounds", "1", "--set", "rounds.epochs=1", "--force", "rounds"]
    assert started(call("align", "--resume", "--out", copy, *more).stderr) == stages_from("rounds")
    ended = call("align", "--resume", "--out", copy, "--set", "match.csls_k=5", expect=2)
    assert "match.csls_k was 10, is 5" in ended.stderr
    assert "--force rounds" in ended.stderr


def test_stage_by_stage_is_all_at_once(pair: Path, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    partial = call("align", pair, "--out", run, *QUICK, "--to", "subgraphs", "--json").json()
    assert list(partial["stages"]) == list(STEPS[: STEPS.index("train")])
    assert partial["files"] == {}
    assert partial["partition"]["train_kept"] == 1.0
    assert "integrate" in call("align", "--resume", "--out", run, "--to", "integrate").stdout
    unmeasured = call("align", "--resume", "--out", run, "--to", "match")
    assert "ideal setting" not in unmeasured.stdout
    assert "Expected precision" in unmeasured.stdout
    last = call("align", "--resume", "--out", run, "--from", "evaluate")
    assert started(last.stderr) == ["evaluate", "report"]
    assert artifacts_of(run) == artifacts_of(finished)
    reports = [json.loads((folder / "report.json").read_text()) for folder in (run, finished)]
    assert without_costs(reports[0]) == without_costs(reports[1])


def test_a_stage_that_is_missing_is_named(pair: Path, copy: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "begun", *QUICK, "--to", "integrate")
    ended = call("align", "--resume", "--out", tmp_path / "begun", "--from", "match", expect=2)
    assert "no intact step search, which --from match needs" in ended.stderr
    assert "--from search" in ended.stderr
    before = artifacts_of(copy)
    ended = call("align", "--resume", "--out", copy, "--force", "train", "--from", "match", expect=2)
    assert "--force train comes before --from match" in ended.stderr
    assert artifacts_of(copy) == before
    assert list(RunStore(copy).steps) == [step for step in STEPS if step != "rounds"], "refused before a step is lost"


def test_pages_do_not_outlive_what_they_tell_of(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"alignment.tsv", "alignment.parquet", "unmatched.tsv", "report.json"}
    before = {name: (copy / name).read_bytes() for name in pages}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as impatient:
        impatient.setattr("largegnn.matching.match.gather_candidates", interrupt)
        call("align", "--resume", "--out", copy, "--set", "match.k=4", "--force", "match", expect=130)
    assert not pages & {path.name for path in copy.iterdir()}, "they tell of another run"
    call("align", "--resume", "--out", copy)
    assert (copy / "alignment.parquet").read_bytes() != before["alignment.parquet"]
    (copy / "unmatched.tsv").unlink()
    ended = call("align", "--resume", "--out", copy)
    assert started(ended.stderr) == ["report"], "a page that was deleted is written again"
    assert (copy / "unmatched.tsv").exists()


def test_a_finished_run_without_its_manifest_is_taken_up_again(copy: Path) -> None:
    before, manifest = artifacts_of(copy), json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").unlink()
    evaluated = call("evaluate", copy, "--json")
    assert "has no manifest; taken from the records of its steps" in evaluated.stderr
    assert not (copy / "manifest.json").exists(), "looking writes nothing"
    ended = call("align", "--resume", "--out", copy)
    assert started(ended.stderr) == []
    assert artifacts_of(copy) == before
    assert json.loads((copy / "manifest.json").read_text())["settings"] == manifest["settings"]


def test_a_manifest_of_another_shape_can_be_removed(copy: Path) -> None:
    (copy / "manifest.json").write_text('{"format_version": 2, "stages": []}')
    ended = call("align", "--resume", "--out", copy, expect=2)
    assert "made by another version" in ended.stderr
    (copy / "manifest.json").unlink()
    assert started(call("align", "--resume", "--out", copy).stderr) == []


def test_a_record_that_was_damaged_costs_its_stage(copy: Path) -> None:
    before = artifacts_of(copy)
    (copy / "manifest.json").unlink()
    (path,) = copy.glob("*-search.json")
    path.write_text(path.read_text().replace('"torch"', '"ivf"'))
    ended = call("align", "--resume", "--out", copy)
    assert f"{path.name}: not used" in ended.stderr
    assert started(ended.stderr) == stages_from("search")
    assert artifacts_of(copy) == before


def test_two_at_once_are_refused(copy: Path) -> None:
    with RunStore(copy).lock():
        for command in ("align", "train"):
            assert "another process is working in" in call(command, "--resume", "--out", copy, expect=3).stderr
