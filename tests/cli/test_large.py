"""A run over 15,000 entities a side, its vectors drawn and not trained: explaining is quick, memory is foreseen."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import EntityEmbeddings, TrainedModel
from largegnn.data.inputs import DataInput
from largegnn.embedding.encode import IntegrateOutcome, IntegrateResult
from largegnn.embedding.train import TrainOutcome, TrainResult
from largegnn.errors import InputError
from largegnn.pipeline import run_pipeline
from largegnn.settings import Settings
from tests.cli.test_cli import largegnn
from tests.noisy_vectors import noisy_vectors

DIM = 768  # what an encoder gives by default


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "pair"
    api.generate("15k", folder=folder)
    return folder


@pytest.fixture(scope="module")
def run(pair: Path) -> Path:
    """Everything but training is computed, the searches in a process of their own."""
    folder, settings = pair.parent / "run", Settings(device="cpu")
    task = api.load(pair).task
    rows = np.zeros((task.num_entities, 8), dtype=np.float32)
    model = TrainedModel("gcn", rows, rows[: 2 * task.num_relations], np.zeros(1, dtype=np.float32))
    embeddings: EntityEmbeddings = noisy_vectors(task, 1.2, dim=DIM)
    drawn = {
        "train": lambda *_, **__: TrainResult(model, TrainOutcome(())),
        "integrate": lambda *_, **__: IntegrateResult(embeddings, IntegrateOutcome(0, DIM)),
    }
    run_pipeline(folder, DataInput(folder=pair), settings, last="integrate", overrides=drawn)
    ended = largegnn("align", "--resume", "--out", folder, "--to", "match", OMP_NUM_THREADS="1", COLUMNS="200")
    assert "train: reused" in ended.stderr
    return folder


def test_explaining_takes_a_moment_after_opening(run: Path) -> None:
    result = api.open_run(run)
    names = [str(name) for name in result.pairs["source"][:20]] + [str(name) for name in result.pairs["target"][:20]]
    assert len(names) == 40
    start = time.monotonic()
    result.explain(names[0])
    first = time.monotonic() - start
    assert first < 3, "the tables behind it are made once"
    start = time.monotonic()
    for name in names:
        assert result.explain(name).state == "aligned"
    assert time.monotonic() - start < 3, "forty entities"
    start = time.monotonic()
    with pytest.raises(InputError, match="no entity is called"):
        result.explain("Q99999999")
    assert time.monotonic() - start < 3


def test_memory_is_foreseen_within_a_factor_of_two(pair: Path, run: Path) -> None:
    plan = json.loads(largegnn("align", pair, "--dry-run", "--json", "--device", "cpu").stdout)
    costs = api.open_run(run).summary.costs
    for stage in ("search", "match"):
        foreseen, measured = plan["memory_mb"][stage], costs[stage].peak_memory_mb
        assert measured / 2 <= foreseen <= 2 * measured, (stage, foreseen, measured)
    assert plan["memory_mb"]["evaluate"] >= plan["memory_mb"]["search"]
