"""`largegnn align` as a user meets it: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from largegnn import api
from largegnn.matching.confidence import Calibration
from largegnn.runs.store import RunStore
from largegnn.stages import STAGE_NAMES
from tests.cli.small_runs import HASTY, QUICK, WORLD, artifacts_of, call, make_pair, without_costs

FILES = {"alignment.tsv", "alignment.parquet", "left_out.tsv", "report.json", "config.toml"}
MEASURES = {"hits@1", "hits@5", "hits@10", "mrr"}
SIDES = {"source_to_target", "target_to_source", "mean"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("align") / "pair")


@pytest.fixture(scope="module")
def finished(pair: Path) -> Path:
    folder = pair.parent / "finished"
    call("align", pair, "--out", folder, *QUICK)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A finished run that may be changed."""
    return shutil.copytree(finished, tmp_path / "run")


def started(log: str) -> list[str]:
    return [name for name in STAGE_NAMES if f"{name}: started" in log]


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
    assert {path.name for path in (tmp_path / "run").iterdir()} >= FILES
    assert started(ended.stderr) == list(STAGE_NAMES)
    assert artifacts_of(tmp_path / "run") == artifacts_of(finished)
    for words in ("ideal setting", "real setting", "expected precision", "peak MB", "alignment.tsv"):
        assert words in ended.stdout


def test_every_entity_is_a_seed_or_has_a_pair_or_a_reason(finished: Path) -> None:
    task = api.open_run(finished).task
    pairs = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None)
    left_out = pl.read_csv(finished / "left_out.tsv", separator="\t", quote_char=None)
    names = api.open_run(finished).names.entities
    for side, column, total in (("source", 0, WORLD.source_entities), ("target", 1, WORLD.target_entities)):
        seeds = set(names.take(task.train_links[:, column]))
        accepted = set(pairs[side])
        others = set(left_out.filter(pl.col("side") == side)["entity"])
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
    assert report["ideal"].keys() >= {"cosine", "csls", "transport"}
    for figures in report["ideal"].values():
        assert figures.keys() >= SIDES
        assert all(figures[side].keys() >= MEASURES for side in SIDES)
    assert report["real"].keys() >= {"mutual_5nn", "decoding_mutual_top1", "threshold"}
    for figures in report["real"].values():
        assert figures.keys() == {"precision", "recall", "f1", "pairs"}
    assert list(report["stages"]) == list(STAGE_NAMES)
    assert all(cost["seconds"] >= 0 and cost["peak_memory_mb"] > 10 for cost in report["stages"].values())
    assert report["partition"]["train_kept"] == 1.0
    assert report["partition"]["test_kept"] == 1.0
    assert report["files"] == {
        "alignment.tsv": report["pairs"],
        "alignment.parquet": len(pl.read_parquet(finished / "alignment.parquet")),
        "left_out.tsv": sum(report["reasons"].values()) - report["reasons"]["aligned"] - report["reasons"]["seed"],
    }
    written = json.loads((finished / "report.json").read_text())
    assert written == {key: value for key, value in report.items() if key not in ("folder", "files")}


def test_a_dry_run_only_looks(pair: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = call("align", pair, "--dry-run", *QUICK)
    for words in ("1,900", "subgraphs", "training mb", "embeddings mb", "seconds on this machine", "train", "search"):
        assert words in table.stdout
    facts = call("align", pair, "--dry-run", "--json", *QUICK).json()
    again = call("align", "--resume", "--out", finished, "--dry-run", "--json").json()
    assert {**again, "seconds": None} == {**facts, "seconds": None}
    assert (facts["source_entities"], facts["target_entities"], facts["seeds"]) == (200, 180, 45)
    assert facts["training_mb"] > 0
    assert facts["seconds"].keys() == {"load", "divide", "train", "search", "match", "evaluate"}
    assert "started" not in table.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_epochs_and_rounds_are_expected_to_take_longer(pair: Path) -> None:
    def seconds(*settings: str) -> float:
        facts = call("align", pair, "--dry-run", "--json", *QUICK, *settings).json()
        return float(facts["seconds"]["train"])

    assert seconds("--set", "train.epochs=400") > 10 * seconds()
    assert seconds("--rounds", "20", "--set", "rounds.epochs=100") > 10 * seconds()


def test_a_reachable_precision_is_kept_an_unreachable_one_refused(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, surely = tmp_path / "run", Calibration.confidence
    with monkeypatch.context() as doubting:
        doubting.setattr(Calibration, "confidence", lambda *args: surely(*args) / 2)
        ended = call("align", pair, "--out", run, *QUICK, "--min-precision", "0.6", expect=2)
    assert "no set of pairs reaches an expected precision of 0.6" in ended.stderr
    assert re.search(r"found: at best 0\.[1-5]\d*, with \d+ pairs", ended.stderr)
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    store = RunStore(run)
    assert list(store.stages) == list(STAGE_NAMES[: STAGE_NAMES.index("match")])
    assert all(store.is_intact(name) for name in store.stages)
    assert not (run / "alignment.tsv").exists()
    second = call("align", "--resume", "--out", run, "--min-precision", "0.6", "--json")
    assert started(second.stderr) == ["match", "evaluate"]
    assert second.json()["threshold"]["expected_precision"] > 0.6 - 1e-6
    assert second.json()["settings"]["match"]["min_precision"] == 0.6


def test_another_precision_in_a_finished_folder_costs_only_the_matching(pair: Path, copy: Path) -> None:
    before = artifacts_of(copy)
    for words in (["align", pair, *QUICK], ["align", "--resume"]):
        ended = call(*words, "--out", copy, "--min-precision", "0.5", expect=2)
        assert "match.min_precision was 0.0, is 0.5" in ended.stderr
        assert "--force match" in ended.stderr
        assert artifacts_of(copy) == before
    ended = call("align", "--resume", "--out", copy, "--min-precision", "0.5", "--force", "match")
    assert started(ended.stderr) == ["match", "evaluate"]
    assert "min_precision = 0.5" in (copy / "config.toml").read_text()
    ended = call("align", "--resume", "--out", copy, "--set", "search.k=15", expect=2)
    assert "search.k was 12, is 15" in ended.stderr
    assert "--force search" in ended.stderr


def test_settings_of_the_matching_matter_to_rounds_that_are_made(copy: Path) -> None:
    ended = call("align", "--resume", "--out", copy, "--rounds", "1", expect=2)
    assert "found: rounds.number was 0, is 1\n" in ended.stderr
    assert "--force rounds" in ended.stderr
    more = ["--rounds", "1", "--set", "rounds.epochs=1", "--force", "rounds"]
    assert started(call("align", "--resume", "--out", copy, *more).stderr) == list(STAGE_NAMES[7:])
    ended = call("align", "--resume", "--out", copy, "--set", "match.csls_k=5", expect=2)
    assert "match.csls_k was 10, is 5" in ended.stderr
    assert "--force rounds" in ended.stderr


def test_stage_by_stage_is_all_at_once(pair: Path, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    partial = call("align", pair, "--out", run, *QUICK, "--to", "subgraphs", "--json").json()
    assert list(partial["stages"]) == list(STAGE_NAMES[:5])
    assert partial["files"] == {}
    assert partial["partition"]["train_kept"] == 1.0
    assert "integrate" in call("align", "--resume", "--out", run, "--to", "integrate").stdout
    unmeasured = call("align", "--resume", "--out", run, "--to", "match")
    assert "ideal setting" not in unmeasured.stdout
    assert "expected precision" in unmeasured.stdout
    assert started(call("align", "--resume", "--out", run, "--from", "evaluate").stderr) == ["evaluate"]
    assert artifacts_of(run) == artifacts_of(finished)
    reports = [json.loads((folder / "report.json").read_text()) for folder in (run, finished)]
    assert without_costs(reports[0]) == without_costs(reports[1])


def test_a_stage_that_is_missing_is_named(pair: Path, copy: Path, tmp_path: Path) -> None:
    call("align", pair, "--out", tmp_path / "begun", *QUICK, "--to", "integrate")
    ended = call("align", "--resume", "--out", tmp_path / "begun", "--from", "match", expect=2)
    assert "no intact stage rounds, which --from match needs" in ended.stderr
    assert "--from rounds" in ended.stderr
    before = artifacts_of(copy)
    ended = call("align", "--resume", "--out", copy, "--force", "train", "--from", "match", expect=2)
    assert "no intact stage train" in ended.stderr
    assert artifacts_of(copy) == before
    assert list(RunStore(copy).stages) == list(STAGE_NAMES), "refused before anything was given up"


def test_too_few_valid_links_are_said(pair: Path, tmp_path: Path) -> None:
    ended = call("align", pair, "--out", tmp_path / "hasty", *HASTY)
    assert "too few valid links were found among the pairs, so the confidence is not calibrated" in ended.stderr
    assert "not calibrated: too few valid links" in ended.stdout
    ended = call("align", pair, "--out", tmp_path / "paper", *QUICK, "--seeds-from", "train+valid")
    assert "there are no valid links, so the confidence is not calibrated" in ended.stderr
    ended = call(
        "align", "--resume", "--out", tmp_path / "hasty", "--min-precision", "0.5", "--force", "match", expect=2
    )
    assert "a precision cannot be promised without valid links" in ended.stderr
    left = {file.name for file in (tmp_path / "hasty").iterdir()}
    assert not left & {"alignment.tsv", "alignment.parquet", "left_out.tsv", "report.json"}, "they told of another run"


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
    num_left_out = sum(reasons.values()) - reasons["aligned"] - reasons["seed"]
    for table_name, column, rows in (
        ("left_out", "entity", num_left_out),
        ("alignment", "source", reasons["aligned"] // 2),
    ):
        table = pl.read_csv(tmp_path / "run" / f"{table_name}.tsv", separator="\t", quote_char=None)
        assert len(table) == rows
        assert table[column].str.ends_with("%09%0A").any()


def test_a_run_goes_on_where_its_input_is_not(pair: Path, tmp_path: Path) -> None:
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
    assert "the input files are not here; the run folder is taken as it is" in ended.stderr
    assert started(ended.stderr) == list(STAGE_NAMES[7:])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no input was given"),
        (["--resume", "--out", "nowhere"], "no run to resume"),
        (["--resume", "--seeds", "x"], "--resume takes input and settings from the run folder"),
        (["nowhere"], "there is no such folder"),
        (["a", "b"], "no seeds were given"),
        (["a", "--min-precision", "2"], "match.min_precision has an impossible value"),
        (["a", "--rounds", "-1"], "rounds.number has an impossible value"),
        (["a", "--device", "tpu"], "device has an impossible value"),
        (["a", "--set", "search.k=3"], "search.k must be at least match.csls_k and match.k"),
        (["a", "--to", "nowhere"], "no stage is called 'nowhere'"),
        (["a", "--from", "match", "--to", "load"], "--from match comes after --to load"),
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


def test_explain_shows_the_evidence_and_helps_with_names(finished: Path) -> None:
    best = pl.read_csv(finished / "alignment.tsv", separator="\t", quote_char=None).row(0, named=True)
    found = call("explain", finished, best["source"], "--json").json()
    assert [(row["source"], row["target"], row["accepted"]) for row in found if row["accepted"]] == [
        (best["source"], best["target"], True)
    ]
    shown = call("explain", finished, best["target"], "--side", "target").stdout
    assert f"{best['source']}  =  {best['target']}   put out" in shown
    assert f"confidence {best['confidence']:.3f}, score" in shown
    ended = call("explain", finished, "nobody", expect=2)
    assert "no entity is called 'nobody'" in ended.stderr
    assert "written as in its file" in ended.stderr
    assert "to do: " in ended.stderr
    assert "no side 'left'" in call("explain", finished, "nobody", "--side", "left", expect=2).stderr
    seed = api.open_run(finished).names.entities[int(api.open_run(finished).task.train_links[0, 0])]
    assert "no candidate" in call("explain", finished, seed).stdout
