"""`largegnn align --dry-run`: what a run would take, said before it starts, and near what it takes then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.small_runs import QUICK, call
from tests.cli.test_cli import largegnn


def test_a_dry_run_only_looks(pair: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = call("align", pair, "--dry-run", *QUICK)
    for words in ("1,900", "subgraphs", "estimate for this machine", "seconds", "peak MB", "train", "search", "all"):
        assert words in table.stdout
    facts = call("align", pair, "--dry-run", "--json", *QUICK).json()
    again = call("align", "--resume", "--out", finished, "--dry-run", "--json").json()
    assert {**again, "seconds": None} == {**facts, "seconds": None}
    assert (facts["source_entities"], facts["target_entities"], facts["seeds"]) == (200, 180, 45)
    stages = {"load", "divide", "train", "integrate", "search", "match", "evaluate"}
    assert set(facts["seconds"]) == set(facts["memory_mb"]) == stages
    assert all(mb > 0 for mb in facts["memory_mb"].values())
    assert facts["peak_memory_mb"] == max(facts["memory_mb"].values())
    assert "started" not in table.stderr
    assert list(tmp_path.iterdir()) == []


def test_few_seeds_are_warned_of_before_anything_is_trained(pair: Path) -> None:
    facts = call("align", pair, "--dry-run", "--json", *QUICK).json()
    assert ["there are 45 seeds to train on" in warning for warning in facts["warnings"]] == [True]
    assert "warning: there are 45 seeds to train on" in call("align", pair, "--dry-run", *QUICK).stderr
    plenty = call("align", pair, "--dry-run", "--json", *QUICK, "--seeds-from", "train+valid").json()
    assert not [warning for warning in plenty["warnings"] if "seeds to train on" in warning]


def test_a_run_without_input_has_nothing_to_look_at(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"input": None}))
    ended = call("align", "--resume", "--out", copy, "--dry-run", expect=2)
    assert "--dry-run needs the input files" in ended.stderr


def test_memory_is_foreseen_within_a_factor_of_two(pair: Path, tmp_path: Path) -> None:
    """In processes of their own, as memory is that of a process."""
    plan = json.loads(largegnn("align", pair, "--dry-run", "--json", *QUICK).stdout)
    report = json.loads(largegnn("align", pair, "--out", tmp_path / "run", "--json", *QUICK).stdout)
    measured = {stage: cost["peak_memory_mb"] for stage, cost in report["stages"].items()}
    foreseen, peak = plan["peak_memory_mb"], max(measured.values())
    assert peak / 2 <= foreseen <= 2 * peak, (foreseen, peak)
    for stage in ("load", "train", "match"):
        assert measured[stage] / 2 <= plan["memory_mb"][stage] <= 2 * measured[stage], (stage, measured[stage])


def test_more_epochs_and_rounds_are_expected_to_take_longer(pair: Path) -> None:
    def seconds(*settings: str) -> float:
        facts = call("align", pair, "--dry-run", "--json", *QUICK, *settings).json()
        return float(facts["seconds"]["train"])

    assert seconds("--set", "train.epochs=400") > 10 * seconds()
    assert seconds("--rounds", "20", "--set", "rounds.epochs=100") > 10 * seconds()
