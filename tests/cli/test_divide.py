"""`largegnn divide`: one division or several side by side, with what each keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from largegnn import api
from largegnn.settings import PRESETS, Settings, resolve
from tests.cli.small_runs import call

KEYS = {
    "seconds",
    "peak_memory_mb",
    "parts",
    "mean_size",
    "max_size",
    "triples_kept",
    "train_kept",
    "valid_kept",
    "test_kept",
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("divide") / "pair"
    api.generate("small", folder=folder)
    return folder


def test_one_division_in_memory_and_in_a_folder_are_the_same(pair: Path, tmp_path: Path) -> None:
    words: list[str | Path] = ["divide", pair, "--parts", "4", "--cap", "1900", "--seeds-from", "train+valid", "--json"]
    memory = call(*words).json()
    assert memory.keys() >= KEYS
    assert set(memory["seconds"]) == {"merge", "partition", "landmarks", "subgraphs"}
    assert (memory["method"], memory["parts"], memory["train_kept"], memory["valid_kept"]) == (
        "auto+landmarks",
        4,
        1.0,
        1.0,
    )
    assert memory["max_size"] <= 1900
    folder = call(*words, "--out", tmp_path / "run").json()
    same = KEYS - {"seconds", "peak_memory_mb"} | {"sizes", "source_sizes", "num_landmarks", "edge_cut"}
    assert {key: folder[key] for key in same} == {key: memory[key] for key in same}
    other = call("divide", "--resume", "--out", tmp_path / "run", "--parts", "5", expect=2)
    assert "division.parts was 4, is 5" in other.stderr, "settings given with --resume are never dropped"
    again = call("divide", "--resume", "--out", tmp_path / "run", "--json")
    assert "subgraphs: reused" in again.stderr
    assert again.json()["sizes"] == memory["sizes"]


def test_methods_side_by_side(pair: Path) -> None:
    rows = call("divide", pair, "--method", "csg,metis,cps,sbp", "--parts", "2,3", "--json").json()
    assert [(row["method"], row["parts"]) for row in rows] == [
        (method, parts) for method in ("csg", "metis", "cps", "sbp") for parts in (2, 3)
    ]
    kept = {(row["method"], row["parts"]): row["test_kept"] for row in rows}
    assert kept["csg", 3] > kept["metis", 3]
    assert all(row["landmarks"] == 0 for row in rows if row["method"] != "csg")
    table = call("divide", pair, "--method", "csg,cps", "--landmarks", "--parts", "3").stdout
    assert "cps+landmarks" in table


def test_landmarks_over_parts_that_are_larger_than_the_cap(pair: Path) -> None:
    """SBP's blocks overlap, so they exceed the paper's cap; the other parts still get theirs."""
    ended = call("divide", pair, "--method", "sbp", "--landmarks", "--parts", "3", "--cap", "2500", "--json")
    row = ended.json()
    assert "parts are larger than the cap of 2,500 entities" in ended.stderr
    assert (row["method"], row["parts"], row["cap"]) == ("sbp+landmarks", 3, 2500)
    for size, num_landmarks in zip(row["sizes"], row["num_landmarks"], strict=True):
        assert num_landmarks == 0 or size <= 2500
    assert max(row["sizes"]) > 2500


def test_methods_are_told_by_their_whole_name(pair: Path) -> None:
    """A name was once looked for in the names joined by commas: `s` or `cps,sb` were found there."""
    for method in ("s", "sb", "csg,", "metis,cps,x"):
        ended = call("divide", pair, "--method", method, "--parts", "2", expect=2)
        assert "no partitioner is called" in ended.stderr
        assert ended.stdout == "", "refused before the first one is made"


def test_auto_says_what_it_chose_and_why(pair: Path) -> None:
    ended = call("divide", pair, "--json")
    chosen = ended.json()
    assert f"partition: {chosen['parts']} parts, cap {chosen['cap']:,}: size law for 6,000 entities" in ended.stderr


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_pictures(pair: Path, tmp_path: Path, suffix: str) -> None:
    picture = tmp_path / f"picture.{suffix}"
    call("divide", pair, "--method", "csg,cps", "--parts", "2,3,4", "--plot", picture)
    text = picture.read_text(encoding="utf-8")
    assert text.startswith({"svg": "<svg", "html": "<!doctype html>"}[suffix])
    for word in ("landmarks", "Test links kept", "number of subgraphs", "csg", "cps"):
        assert word in text
    assert not re.search(r"<(script|link)|(src|href)=", text), "everything is inlined"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parts", "0"], "division.parts has an impossible value"),
        (["--parts", "many"], "division.parts has an impossible value"),
        (["--parts", "7000"], "more parts than entities"),
        (["--cap", "100", "--parts", "2"], "cannot hold 6,000"),
        (["--method", "kmeans"], "no partitioner is called 'kmeans'"),
        (["--method", "csg,cps", "--out", "x"], "--out keeps one division"),
        (["--plot", "x.gif"], "format of the picture is not known"),
        (["--plot", "nowhere/x.svg"], "folder of the picture does not exist"),
        (["--resume", "--out", "x"], "--resume takes input and settings from the run folder"),
        (["--device", "cuda"], "no usable GPU"),
        (["--to", "nowhere", "--out", "x"], "'nowhere' is not one of"),
    ],
)
def test_impossible_calls(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in call("divide", pair, *options, expect=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_bars_on_real_data(real_data: Callable[[str], Path]) -> None:
    """Mean of five random seeds on EN_FR_15K_V1, fold 1, seeds train + valid, n = 5, cap 7,500."""
    task = api.load(real_data("EN_FR_15K_V1")).task
    kept: dict[str, list[float]] = {"csg": [], "metis": []}
    for seed in range(5):
        for method, enabled in (("csg", True), ("metis", False)):
            values = {"seed": seed, "protocol": {"seeds_from": "train+valid"}, "landmarks": {"enabled": enabled}}
            quality = api.divide(task, resolve(Settings, PRESETS, "15k", values=values)).quality
            assert quality.train_kept == quality.valid_kept == 1.0
            assert quality.num_uncovered == 0
            assert max(quality.sizes) <= 7_500
            kept[method].append(quality.test_kept or 0.0)
    assert sum(kept["csg"]) / 5 >= 0.945
    assert sum(kept["metis"]) / 5 >= 0.915
