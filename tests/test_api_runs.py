"""The run folder is the same whether the command line or the API made it, asked to keep it or not."""

from __future__ import annotations

import dataclasses
import gc
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import largegnn
from largegnn import api
from largegnn.artifacts import EntityEmbeddings, Evaluation, TrainedModel
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.train import TrainOutcome
from largegnn.errors import InputError
from largegnn.settings import PRESETS, STEPS, Settings, resolve
from tests.cli.small_runs import QUICK, call, make_pair

# The settings of `QUICK` as a program writes them.
VALUES = {"device": "cpu", "train.dim": 8, "train.epochs": 4, "train.repartition_every": 0}
TIMES = {"seconds", "peak_memory_mb", "peak_gpu_mb", "finished", "created"}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("runs") / "pair")


@pytest.fixture(scope="module")
def by_command(pair: Path) -> Path:
    call("align", pair, "--out", pair.parent / "by-command", *QUICK)
    return pair.parent / "by-command"


@pytest.fixture(scope="module")
def kept(pair: Path) -> largegnn.AlignmentResult:
    return largegnn.align(pair, out=pair.parent / "kept", settings=VALUES)


@pytest.fixture(scope="module")
def temporary(pair: Path) -> largegnn.AlignmentResult:
    return largegnn.align(pair, settings=VALUES)


def without_times(value: Any) -> Any:
    """Plain values without what is never the same twice."""
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def content_of(path: Path) -> Any:
    """What a file says: its bytes, or the values of one that also tells when it was made."""
    if path.suffix == ".json":
        values = json.loads(path.read_text(encoding="utf-8"))
        values.pop("sha256", None)  # of the record itself, times included
        return without_times(values)
    if path.suffix == ".html":  # seconds and memory stand among the words
        return re.sub(r"[\d.,]+", "", path.read_text(encoding="utf-8"))
    if path.suffix == ".parquet":
        facts = {key: value for key, value in pl.read_parquet_metadata(path).items() if key not in {"created"}}
        facts.pop("ARROW:schema", None)
        return facts, pl.read_parquet(path).rows()
    return path.read_bytes()


def files_of(folder: Path) -> dict[str, Any]:
    """Every file of a run folder but its lock."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): content_of(path) for path in paths}


def test_command_line_and_api_write_the_same_folder(by_command: Path, kept: largegnn.AlignmentResult) -> None:
    expected, found = files_of(by_command), files_of(kept.run.folder)
    assert list(found) == list(expected)
    assert {"manifest.json", "config.toml", "report.json", "alignment.tsv", "unmatched.tsv"} <= set(found)
    assert {f"{number:02d}-{name}.json" for number, name in enumerate(STEPS, start=1) if name != "rounds"} <= set(found)
    for name, content in expected.items():
        assert found[name] == content, name


def test_a_temporary_run_is_the_run_that_is_kept(
    kept: largegnn.AlignmentResult, temporary: largegnn.AlignmentResult
) -> None:
    expected, found = files_of(kept.run.folder), files_of(temporary.run.folder)
    assert list(found) == list(expected)
    for name, content in expected.items():
        assert found[name] == content, name
    models = [result.run.artifact("model", TrainedModel) for result in (kept, temporary)]
    assert np.array_equal(models[0].entity_rows, models[1].entity_rows)
    assert temporary.pairs.equals(kept.pairs)


def test_it_ends_with_the_best_epoch_kept_or_not(pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The valid links are made to prefer the second of four epochs; in memory the last one was kept once."""
    rows: list[Any] = []

    def prefer_the_second(*_: Any) -> Callable[[EmbeddingModel], float]:
        rows.clear()

        def validate(model: EmbeddingModel) -> float:
            rows.append(model.entities.values.clone().numpy())
            return 0.5 if len(rows) == 2 else 0.1

        return validate

    monkeypatch.setattr("largegnn.embedding.train._validator", prefer_the_second)
    monkeypatch.setattr("largegnn.embedding.train._MIN_LINKS_TO_CHOOSE", 1)
    values, results = {**VALUES, "train.validate_every": 1}, []
    for out in (None, tmp_path / "run"):
        results.append(largegnn.align(pair, settings=values, out=out))
        history = results[-1].run.outcome("train", TrainOutcome).history
        assert [epoch.valid_hits for epoch in history] == [0.1, 0.5, 0.1, 0.1]
        found = results[-1].run.artifact("model", TrainedModel).entity_rows
        assert np.array_equal(found, rows[1])
        assert not np.array_equal(found, rows[3])
    assert results[0].candidates.equals(results[1].candidates)


def test_a_saved_run_is_resumed_evaluated_and_exported(temporary: largegnn.AlignmentResult, tmp_path: Path) -> None:
    folder = temporary.save(tmp_path / "saved")
    assert files_of(folder) == files_of(temporary.run.folder)
    resumed = call("align", "--resume", "--out", folder)
    assert "started" not in resumed.stderr
    evaluation = largegnn.evaluate(folder)
    assert evaluation == temporary.run.outcome("evaluate", Evaluation)
    rows = call("export", folder, "--form", "sssom", "--json").json()
    assert list(rows.values()) == [len(temporary.pairs)]
    again = call("align", "--resume", "--out", folder, "--set", "match.k=4", "--force", "match")
    assert "search: reused" in again.stderr
    assert "match: started" in again.stderr
    with pytest.raises(InputError, match="the folder is there already"):
        temporary.save(folder)


def test_a_temporary_folder_goes_with_its_run(pair: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = largegnn.align(pair, settings=VALUES)
    run = result.run
    del result
    gc.collect()
    assert run.finished == [name for name in STEPS if name != "rounds"]
    assert run.folder.is_dir(), "whoever has the run has the folder"
    del run
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="no seeds"):
        largegnn.align(pair / "rel_triples_1", pair / "rel_triples_2", settings=VALUES)
    assert list(tmp_path.iterdir()) == [], "a run that fails leaves nothing either"


def test_what_a_result_looks_like(
    temporary: largegnn.AlignmentResult, kept: largegnn.AlignmentResult, pair: Path, tmp_path: Path
) -> None:
    num_pairs = len(kept.pairs)
    assert repr(kept).startswith(f"AlignmentResult('kept': {num_pairs} pairs of 200 source and 180 target entities, ")
    assert "expected precision 0." in repr(kept)
    assert "'temporary run'" in repr(temporary)
    hasty = largegnn.align(pair, settings={**VALUES, "train.epochs": 1, "protocol.seeds_from": "train+valid"})
    assert "not calibrated" in repr(hasty)
    assert not hasty.is_calibrated
    assert "confidence" not in hasty.pairs.columns


def test_settings_as_a_mapping(pair: Path) -> None:
    dotted, nested = Settings.of(VALUES), Settings.of({"device": "cpu", "train": {"dim": 8, "epochs": 4}})
    overrides = [f"{key}={value}" for key, value in VALUES.items()]
    assert dotted == resolve(Settings, PRESETS, overrides=overrides)
    assert (nested.train.dim, nested.train.epochs) == (8, 4)
    assert Settings.of(dotted) is dotted
    assert Settings.of(None) == Settings()
    for wrong, message in (
        ({"train.dimension": 8}, "no setting is called train.dimension"),
        ({"train": {"dim": 0}}, r"train.dim"),
        ({"train.dim": "many"}, r"train.dim"),
    ):
        with pytest.raises(InputError, match=message):
            largegnn.align(pair, settings=wrong)
    with pytest.raises(InputError, match="settings"):
        largegnn.align(pair, settings=[("train.dim", 8)])  # type: ignore[arg-type]


def test_steps_on_values_give_what_the_run_gives(kept: largegnn.AlignmentResult) -> None:
    task, settings = kept.task, kept.run.settings
    training = api.train(task, settings)
    vectors = kept.run.artifact("embeddings", EntityEmbeddings).vectors
    assert np.array_equal(training.embeddings.vectors, vectors)
    alignment, outcome = api.match(task, training.embeddings, settings=settings)
    assert outcome == kept.summary.match
    for field in dataclasses.fields(alignment):
        assert np.array_equal(getattr(alignment, field.name), getattr(kept.alignment, field.name)), field.name
    division = api.divide(task, settings)
    assert division.num_parts == division.parts.num_parts
    assert set(division.seconds) == {"merge", "partition", "landmarks", "subgraphs"}
    assert division.peak_memory_mb > 10
