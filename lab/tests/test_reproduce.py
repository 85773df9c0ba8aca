"""Runs of the paper's systems on a tiny pair: records, resuming, and that nothing is ever run twice."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from lab import reproduce as reproducing
from lab.__main__ import app
from lab.records import ResultRecord, add_record, read_results
from lab.reproduce import missing_data, plan_runs, remedy, reproduce, run_system
from lab.runs import run_pipeline
from lab.systems import PaperSystem, read_systems, short_settings
from largegnn import api
from largegnn.errors import InputError
from largegnn.machine.locks import hold
from largegnn.runfolder.store import RunStore
from largegnn.settings import WorldSettings
from largegnn.version import __version__

FILE = """
[system]
name = "{name}"
dataset = "tiny"
tables = ["15k"]
training = "{training}"
[paper]
"hits@1" = 0.5
[protocol]
seeds_from = "train+valid"
[division]
partitioner = "{partitioner}"
parts = 2
[landmarks]
enabled = {landmarks}
[train]
dim = 8
epochs = {epochs}
batch_size = 16
negatives = 40
repartition_every = 0
checkpoint_seconds = 0.0
[train.losses]
cross_subgraph = {weight}
reconstruction = {weight}
[integrate]
method = "average"
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    sizes: dict[str, Any] = {"source_entities": 150, "target_entities": 150, "links": 120}
    counts: dict[str, Any] = {
        "source_triples": 600,
        "target_triples": 550,
        "source_relations": 8,
        "target_relations": 8,
    }
    api.generate(WorldSettings(**sizes, **counts), folder=folder / "tiny")
    return folder


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    folder.mkdir()
    shared = {"training": "shared", "partitioner": "metis", "landmarks": "true", "weight": 0.5, "epochs": 2}
    blocks = {"training": "blocks", "partitioner": "cps", "landmarks": "false", "weight": 0.0, "epochs": 1}
    (folder / "shared.toml").write_text(FILE.format(name="LargeGNN", **shared))
    (folder / "blocks.toml").write_text(FILE.format(name="LargeEA", **blocks))
    return folder


def by_name(configs: Path) -> dict[str, PaperSystem]:
    return {system.name: system for system in read_systems(configs)}


def test_every_run_is_made_once(data: Path, configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systems, results, work = read_systems(configs), tmp_path / "results", tmp_path / "work"
    first = reproduce(systems, data, results, work, 1, "cpu")
    assert [(record.system, record.random_seed) for record in first] == [("LargeEA", 0), ("LargeGNN", 0)]
    blocks, shared = first
    assert blocks.ideal["csls"] is None
    for record in first:
        assert record.real is not None
        assert {"mutual_5nn", "csls_mutual_top1"} <= set(record.real)
        assert record.origin is not None
        assert (record.origin.version, record.origin.random_seed) == (__version__, 0)
        assert record.origin.protocol["seeds_from"] == "train+valid"
        assert record.origin.settings["train.dim"] == 8
        assert set(record.origin.data) == {"tiny"}
        figures = record.ideal["cosine"]
        assert figures is not None
        assert 0 < figures["hits@1"] <= figures["mrr"] <= figures["hits@10"] <= 1
        assert record.partition.train_kept is not None
        assert record.partition.mean_size is not None
        assert record.training.seconds
        assert record.settings["dim"] == 8
        assert "CPU cores" in record.machine
    assert shared.partition.train_kept == 1.0
    assert not list(work.rglob("manifest.json")), "a finished run leaves no folder"

    # A finished run is not made again; a new random seed is the only one made.
    made: list[tuple[str, int]] = []
    original = run_system

    def counted(system: PaperSystem, folder: Path, work: Path, seed: int, device: str) -> ResultRecord:
        made.append((system.name, seed))
        return original(system, folder, work, seed, device)

    monkeypatch.setattr(reproducing, "run_system", counted)
    assert reproduce(systems, data, results, work, 1, "cpu") == first
    assert made == []
    second = reproduce(systems, data, results, work, 2, "cpu", keep_runs=True)
    assert made == [("LargeEA", 1), ("LargeGNN", 1)]
    assert len(second) == 4
    assert [path.parent.name for path in work.rglob("manifest.json")] == ["seed-1"]


def test_processes_share_the_runs_out(data: Path, configs: Path, tmp_path: Path) -> None:
    systems, results, work = read_systems(configs), tmp_path / "results", tmp_path / "work"
    with ThreadPoolExecutor(1) as pool:
        with hold(work / "tiny" / "largeea" / "seed-0.lock", wait=False) as held:
            assert held
            others = pool.submit(reproduce, systems, data, results, work, 1, "cpu")
            while not read_results(results) and not others.done():
                time.sleep(0.05)
            # Someone is at LargeEA: LargeGNN, which comes after it, is made first.
            assert [record.system for record in read_results(results)] == ["LargeGNN"]
        # They gave up without a record: it is made after all.
        assert sorted(record.system for record in others.result()) == ["LargeEA", "LargeGNN"]


def test_records_added_at_once_are_all_kept(data: Path, configs: Path, tmp_path: Path) -> None:
    record = run_system(by_name(configs)["LargeEA"], data / "tiny", tmp_path / "run", 0, "cpu")
    with ThreadPoolExecutor(8) as pool:
        for seed in range(40):
            pool.submit(add_record, tmp_path / "results", record.model_copy(update={"random_seed": seed}))
    assert sorted(found.random_seed for found in read_results(tmp_path / "results")) == list(range(40))


def test_a_killed_run_goes_on_and_ends_the_same(
    data: Path, configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, folder = by_name(configs)["LargeGNN"], tmp_path / "run"
    whole = run_system(system, data / "tiny", tmp_path / "other", 0, "cpu")

    def killed(*arguments: Any, **more: Any) -> Any:
        run_pipeline(*arguments, **more, last="train")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(reproducing, "run_pipeline", killed)
        with pytest.raises(KeyboardInterrupt):
            reproduce([system], data, tmp_path / "results", folder, 1, "cpu")
    assert read_results(tmp_path / "results") == []
    (manifest,) = folder.rglob("manifest.json")
    finished = RunStore(manifest.parent).steps["train"].finished
    kept = reproduce([system], data, tmp_path / "results", folder, 1, "cpu", keep_runs=True)
    assert RunStore(manifest.parent).steps["train"].finished == finished, "trained only once"
    assert kept[0].ideal == whole.ideal
    assert kept[0].real == whole.real


def test_blocks_follow_from_the_seed(data: Path, configs: Path, tmp_path: Path) -> None:
    system = by_name(configs)["LargeEA"]
    runs = [run_system(system, data / "tiny", tmp_path, seed, "cpu") for seed in (0, 0, 1)]
    assert runs[0].ideal == runs[1].ideal != runs[2].ideal
    assert "integrate" not in short_settings(system)
    assert "cap" not in short_settings(system)


def test_runs_with_other_settings_do_not_mix(data: Path, configs: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    reproduce([by_name(configs)["LargeEA"]], data, results, tmp_path / "work", 1, "cpu")
    file = configs / "blocks.toml"
    file.write_text(file.read_text().replace("dim = 8", "dim = 4"))
    with pytest.raises(InputError, match="other settings"):
        reproduce([by_name(configs)["LargeEA"]], data, results, tmp_path / "work", 2, "cpu")
    assert len(read_results(results)) == 1


def test_outdated_records_are_made_anew_once_a_reason_is_given(data: Path, configs: Path, tmp_path: Path) -> None:
    system, results, work = by_name(configs)["LargeEA"], tmp_path / "results", tmp_path / "work"
    (old,) = reproduce([system], data, results, work, 1, "cpu")
    (results / "tiny.json").unlink()
    add_record(results, old.model_copy(update={"origin": None}))
    assert reproduce([system], data, results, work, 1, "cpu")[0].origin is None, "without a reason it stays"
    (new,) = reproduce([system], data, results, work, 1, "cpu", superseded_for="no origin")
    assert new.origin is not None
    assert new.ideal == old.ideal
    (older,) = json.loads((results / "superseded" / "tiny.json").read_text())
    assert older["reason"] == "no origin"
    assert reproduce([system], data, results, work, 1, "cpu", superseded_for="again") == [new], "it has its origin"


def test_missing_data_is_said_with_a_remedy(configs: Path, tmp_path: Path) -> None:
    systems = read_systems(configs)
    assert set(missing_data(systems, tmp_path)) == {"tiny"}
    assert remedy("EN_FR_15K_V1", Path("d")) == "largegnn download EN_FR_15K_V1 --out d"
    assert remedy("dbpedia1m", Path("d")) == "largegnn generate d/dbpedia1m --preset dbpedia1m"
    assert "download dbpedia1m" in remedy("DBpedia1M_EN_FR", Path("d"))
    assert "d/ContEA_FR_EN" in remedy("ContEA_FR_EN", Path("d"))
    assert reproduce(systems, tmp_path, tmp_path / "results", tmp_path / "work", 1) == []
    assert [run.random_seed for run in plan_runs(systems[:1], [], 3)] == [0, 1, 2]


def test_the_command_ends_with_the_tables(data: Path, configs: Path, tmp_path: Path) -> None:
    common = ["--data", str(data), "--configs", str(configs), "--work", str(tmp_path / "work"), "--device", "cpu"]
    runner = CliRunner()
    planned = runner.invoke(app, ["reproduce", "--table", "15k", "--dry-run", *common])
    assert planned.exit_code == 0
    assert "| LargeEA | .500 | not run |" in planned.stdout
    ended = runner.invoke(
        app, ["reproduce", "--table", "15k", "--system", "LargeEA", "--repeats", "1", *common, "--json"]
    )
    assert ended.exit_code == 0
    row = json.loads((tmp_path / "work" / "tables.json").read_text())["15k"]["rows"][0]
    assert (row["system"], row["runs"], row["cells"]["hits@1"]["paper"]) == ("LargeEA", 1, 0.5)
    assert row["cells"]["hits@1"]["difference"] == pytest.approx(row["cells"]["hits@1"]["ours"]["mean"] - 0.5)
    assert "| LargeEA | .500 | ." in (tmp_path / "work" / "tables.md").read_text()
    for wrong, said in (
        (["--table", "2k"], "no table"),
        (["--system", "X"], "no system"),
        (["--dataset", "X"], "no data set"),
        (["--data", str(tmp_path), "--work", str(tmp_path / "new")], "none of the data sets"),
        (["--table", "1m"], "no system is left"),
        (["--device", "tpu"], "no device"),
    ):
        refused = runner.invoke(app, ["reproduce", *common, *wrong])
        assert isinstance(refused.exception, InputError)
        assert said in str(refused.exception)
