"""`largegnn align` as a user meets it: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from largegnn import api
from largegnn.settings import STEPS
from tests.cli.small_runs import HASTY, QUICK, WORLD, artifacts_of, call, stages_from, started

PAGES = {"alignment.tsv", "alignment.parquet", "unmatched.tsv", "relations.tsv", "duplicates.tsv"} | {
    "report.json",
    "report.html",
}
MEASURES = {"hits@1", "hits@5", "hits@10", "mrr"}
SIDES = {"source_to_target", "target_to_source", "mean"}


def test_a_folder_and_single_files_give_the_same(pair: Path, finished: Path, tmp_path: Path) -> None:
    links = {name: pair / "721_5fold" / "1" / f"{name}_links" for name in ("train", "valid", "test")}
    ended = call(
        "align",
        pair / "rel_triples_1",
        pair / "rel_triples_2",
        "--seeds",
        links["train"],
        "--valid-links",
        links["valid"],
        "--test-links",
        links["test"],
        "--out",
        tmp_path / "run",
        *QUICK,
    )
    assert {path.name for path in (tmp_path / "run").iterdir()} >= PAGES | {"config.toml", "manifest.json"}
    assert started(ended.stderr) == [step for step in STEPS if step != "rounds"]
    assert artifacts_of(tmp_path / "run") == artifacts_of(finished)
    for words in ("ideal setting", "real setting", "Expected precision", "peak MB", "alignment.tsv"):
        assert words in ended.stdout


def test_every_entity_is_a_seed_or_has_a_pair_or_a_reason(finished: Path) -> None:
    task = api.open_run(finished).task
    pairs = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None)
    unmatched = pl.read_csv(finished / "unmatched.tsv", separator="\t", quote_char=None)
    names = api.open_run(finished).names.entities
    for side, column, total in (("source", 0, WORLD.source_entities), ("target", 1, WORLD.target_entities)):
        seeds = set(names.take(task.train_links[:, column]))
        accepted = set(pairs[side])
        others = set(unmatched.filter(pl.col("side") == side)["entity"])
        assert not seeds & accepted
        assert not seeds & others
        assert not accepted & others
        assert len(seeds | accepted | others) == total
    assert pairs["accepted"].all()
    candidates = pl.read_parquet(finished / "alignment.parquet")
    assert candidates.columns == pairs.columns
    assert candidates["accepted"].sum() == len(pairs) < len(candidates)
    reasons = json.loads((finished / "report.json").read_text())["reasons"]
    assert sum(reasons.values()) == task.num_entities
    assert reasons["aligned"] == 2 * len(pairs)


def test_json_says_all_there_is(finished: Path) -> None:
    ended = call("align", "--resume", "--out", finished, "--json")
    report = ended.json()
    assert not re.search(r"\b(NaN|Infinity)\b", ended.stdout), "no JSON for other readers"
    assert started(ended.stderr) == []
    assert report["protocol"]["seeds_from"] == "train"
    assert report["protocol"]["num_test_links"] == 60
    assert set(report["ideal"]) == {"cosine", "csls", "transport", "csls+rules", "transport+rules"}
    for figures in report["ideal"].values():
        assert figures.keys() >= SIDES
        assert all(figures[side].keys() >= MEASURES for side in SIDES)
    rows = {"mutual_5nn", "mutual_top1", "csls_mutual_top1", "scoring_mutual_top1", "accepted"}
    assert set(report["real"]) == rows
    for figures in report["real"].values():
        assert figures.keys() >= {"precision", "recall", "f1", "pairs"}
    assert list(report["stages"]) == [step for step in STEPS if step != "rounds"]
    assert all(cost["seconds"] >= 0 and cost["peak_memory_mb"] > 10 for cost in report["stages"].values())
    assert report["partition"]["train_kept"] == 1.0
    assert report["partition"]["test_kept"] == 1.0
    assert report["files"] == {
        "alignment.tsv": report["pairs"],
        "alignment.parquet": len(pl.read_parquet(finished / "alignment.parquet")),
        "unmatched.tsv": sum(report["reasons"].values()) - report["reasons"]["aligned"] - report["reasons"]["seed"],
        "relations.tsv": len((finished / "relations.tsv").read_text(encoding="utf-8").splitlines()) - 1,
        "duplicates.tsv": len((finished / "duplicates.tsv").read_text(encoding="utf-8").splitlines()) - 1,
        "report.json": 1,
        "report.html": 1,
    }
    written = json.loads((finished / "report.json").read_text())
    assert "report" not in written["stages"], "it is written before that stage ends"
    written["stages"]["report"] = report["stages"]["report"]
    assert written == {key: value for key, value in report.items() if key not in ("folder", "files")}


def test_unmatched_entities_have_a_best_candidate_and_who_has_it(finished: Path) -> None:
    unmatched = pl.read_csv(finished / "unmatched.tsv", separator="\t", quote_char=None)
    pairs = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None)
    assert unmatched.columns == ["side", "entity", "reason", "best_candidate", "matched_with", "score"]
    partner = dict(zip(pairs["source"], pairs["target"], strict=True)) | dict(
        zip(pairs["target"], pairs["source"], strict=True)
    )
    named = unmatched.filter(pl.col("best_candidate").is_not_null())
    assert len(named) > 50
    for candidate, instead in named.select("best_candidate", "matched_with").iter_rows():
        assert partner.get(candidate) == instead
    assert named["matched_with"].is_not_null().any()


def test_names_that_no_line_can_hold(pair: Path, tmp_path: Path) -> None:
    """Every source name gets a tab and a line break, which TSV has no way to say."""
    graph, seeds = tmp_path / "graph.parquet", tmp_path / "seeds.parquet"
    for name, file, columns in (
        ("rel_triples_1", graph, ["head", "relation", "tail"]),
        ("721_5fold/1/train_links", seeds, ["source", "target"]),
    ):
        frame = pl.read_csv(pair / name, separator="\t", has_header=False, quote_char=None, new_columns=columns)
        odd = pl.col([column for column in columns if column in ("head", "tail", "source")])
        frame.with_columns(odd + "\t\n").write_parquet(file)
    call("align", graph, pair / "rel_triples_2", "--seeds", seeds, "--out", tmp_path / "run", *HASTY)
    reasons = json.loads((tmp_path / "run" / "report.json").read_text())["reasons"]
    num_unmatched = sum(reasons.values()) - reasons["aligned"] - reasons["seed"]
    for table_name, column, rows in (
        ("unmatched", "entity", num_unmatched),
        ("alignment", "source", reasons["aligned"] // 2),
    ):
        table = pl.read_csv(tmp_path / "run" / f"{table_name}.tsv", separator="\t", quote_char=None)
        assert len(table) == rows
        assert table[column].str.ends_with("%09%0A").any()


def test_a_run_resumes_where_its_input_is_not(pair: Path, tmp_path: Path) -> None:
    data, run = shutil.copytree(pair, tmp_path / "data"), tmp_path / "run"
    seeds = data / "721_5fold" / "1" / "train_links"
    call(
        "align",
        data / "rel_triples_1",
        data / "rel_triples_2",
        "--seeds",
        seeds,
        "--out",
        run,
        *HASTY,
        "--to",
        "integrate",
    )
    shutil.rmtree(data)
    ended = call("align", *HASTY, tmp_path / "mistyped", "--out", run, expect=2)
    assert "there is no such folder" in ended.stderr
    ended = call("align", "--resume", "--out", run)
    assert "the input files cannot be found or read here; using what the run folder holds" in ended.stderr
    assert started(ended.stderr) == stages_from("search")


def test_without_seeds_there_must_be_names_or_values(pair: Path, tmp_path: Path) -> None:
    ended = call("align", pair / "rel_triples_1", pair / "rel_triples_2", "--out", tmp_path / "run", *HASTY, expect=2)
    assert "there is nothing to start from: no seeds" in ended.stderr
    assert "--seeds FILE" in ended.stderr
    assert started(ended.stderr) == ["load", "literals"], "refused before anything is trained"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no input was given"),
        (["--resume", "--out", "nowhere"], "the folder is not a run"),
        (["--resume", "--seeds", "x"], "--resume takes input and settings from the run folder"),
        (["nowhere"], "there is no such folder"),
        (["a", "b"], "the file does not exist"),
        (["a", "--min-precision", "2"], "match.min_precision has an impossible value"),
        (["a", "--rounds", "-1"], "rounds.number has an impossible value"),
        (["a", "--device", "tpu"], "device has an impossible value"),
        (["a", "--set", "search.k=3"], "search.k must be at least match.csls_k and match.k"),
    ],
)
def test_impossible_calls(arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("align", *arguments, expect=2)
    assert message in ended.stderr
    assert ended.stdout == ""
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_run_folder_of_another_version(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"format_version": 99, "made_by": "7.0"}))
    for words in (["align", "--resume", "--out"], ["evaluate"], ["export", "--form", "tsv"], ["explain"]):
        ended = call(*words, copy, *(["x"] if words == ["explain"] else []), expect=2)
        assert "made by another version" in ended.stderr
        assert "format 99, made by largegnn 7.0" in ended.stderr
