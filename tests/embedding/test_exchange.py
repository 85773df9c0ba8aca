"""Two workers on one machine; what they check and train is in `grouped_run`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
import torch.distributed as dist

from largegnn.embedding.exchange import Exchange
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.grouped_run import ALONE, train_pair
from tests.embedding.small_runs import CPU, are_equal, hits_of, save_subgraphs

ROOT = Path(__file__).parents[2]


def test_alone_there_is_nothing_to_exchange() -> None:
    exchange = Exchange()
    assert (exchange.rank, exchange.size, exchange.is_first) == (0, 1, True)
    ids, gradient = torch.tensor([3, 1]), torch.ones(2, 4)
    assert exchange.gather_rows(ids, gradient) == (ids, gradient)
    assert exchange.shard([4, 2]) == [4, 2]
    assert exchange.broadcast_value("word", CPU) == "word"
    assert exchange.mean(6.0, 3, CPU) == 2.0
    assert exchange.mean(0.0, 0, CPU) == 0.0
    assert math.isnan(exchange.mean(math.nan, 2, CPU))


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which two workers have finished."""
    if not (dist.is_available() and dist.is_gloo_available()):
        pytest.skip("torch was built without gloo, so processes cannot talk to each other here")
    folder = tmp_path_factory.mktemp("group")
    task, _, subgraphs = generated_pair(600, 4)
    more = {"all_triples": task.triples, "valid_links": task.valid_links, "test_links": task.test_links}
    more["counts"] = np.array([task.num_entities, task.num_relations])
    save_subgraphs(folder / "pair.npz", subgraphs, **more)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "tests.embedding.grouped_run", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


def tensors_of(group: Path, name: str) -> list[dict[str, torch.Tensor]]:
    return [safetensors.torch.load_file(group / f"{name}-{rank}.safetensors") for rank in (0, 1)]


def facts_of(group: Path) -> list[dict[str, Any]]:
    return [json.loads((group / f"facts-{rank}.json").read_text()) for rank in (0, 1)]


def test_workers_end_with_the_same_tables(group: Path) -> None:
    first, second = tensors_of(group, "trained")
    assert are_equal(first, second)


def test_only_the_first_validates_and_saves_and_the_others_know(group: Path) -> None:
    first, second = facts_of(group)
    assert {"last", "best"} == set(first["savers"])
    assert second["savers"] == []
    assert len(first["looks"]) == 5
    assert second["looks"] == []
    told = [record["valid_hits"] for record in second["history"]]
    assert told == [record["valid_hits"] for record in first["history"]]
    assert [hits for hits in told if hits is not None] == first["looks"]
    assert [record["loss"] for record in second["history"]] == [record["loss"] for record in first["history"]]


def test_all_workers_resume_from_what_the_first_one_finds(group: Path) -> None:
    trained, _ = tensors_of(group, "trained")
    for resumed in tensors_of(group, "resumed"):
        assert are_equal(resumed, trained)


def test_a_worker_without_a_subgraph_keeps_step(group: Path) -> None:
    first, second = tensors_of(group, "idle")
    assert are_equal(first, second)
    losses, told = (facts["idle_losses"] for facts in facts_of(group))
    assert losses == told
    # Of steps that were made, not halved by the worker that made none.
    assert min(losses) > 10


@pytest.mark.usefixtures("one_thread")
def test_two_workers_reach_what_one_reaches(group: Path, tmp_path: Path) -> None:
    alone, _ = train_pair(tmp_path, group / "pair.npz", ALONE)
    arrays = dict(np.load(group / "pair.npz"))
    measure = (int(arrays["counts"][1]), arrays["all_triples"], arrays["test_links"])
    hits = hits_of(alone.model, *measure)
    alone.model.load_tensors(tensors_of(group, "trained")[0])
    assert hits > 0.3
    assert hits_of(alone.model, *measure) > hits - 0.05
