from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from largegnn.artifacts import SubgraphSet
from largegnn.embedding import feeding
from largegnn.embedding.feeding import Feed, prepare_subgraph
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.machine.metering import Meter
from largegnn.runfolder.store import RunStore
from tests.embedding.small_runs import CPU, NUM_RELATIONS, random_subgraphs, small_options, small_trainer

ROOT = Path(__file__).parents[2]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The threads that built a structure, one entry for each."""
    builders: list[str] = []

    def build(*args: int) -> GraphStructure:
        builders.append(threading.current_thread().name)
        return build_structure(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(feeding, "build_structure", build)
    return builders


def test_subgraphs_come_in_order_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    subgraphs = random_subgraphs(4)
    builders = counted(monkeypatch)
    feed = Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, 0)
    order = [2, 0, 3, 0]
    for index, ready in zip(order, feed.in_order(order), strict=True):
        subgraph = subgraphs.subgraph(index)
        assert ready.entities.tolist() == subgraph.entities.tolist()
        assert ready.seeds.tolist() == subgraph.seeds.tolist()
        assert ready.graph.num_nodes == len(subgraph.entities)
    assert len(builders) == 4
    assert all(name.startswith("subgraphs") for name in builders)
    assert list(feed.in_order([])) == []


def test_the_next_one_is_prepared_while_one_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    second_is_made = threading.Event()

    def build(num_nodes: int, *rest: int) -> GraphStructure:
        if threads:
            second_is_made.set()
        threads.append(num_nodes)
        return build_structure(num_nodes, *rest)  # type: ignore[arg-type]

    threads: list[int] = []
    monkeypatch.setattr(feeding, "build_structure", build)
    ready = Feed(random_subgraphs(3), prepare_subgraph, NUM_RELATIONS, CPU, 0).in_order([0, 1, 2])
    next(ready)
    assert second_is_made.wait(timeout=30)
    ready.close()  # type: ignore[attr-defined]
    assert len(threads) == 2


def test_what_is_kept_respects_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    subgraphs = random_subgraphs(5)
    one = next(iter(Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, 0).in_order([0]))).num_bytes
    builders = counted(monkeypatch)
    for limit, kept in ((0, 0), (one // 2, 0), (2 * one + one // 2, 2), (100 * one, 5)):
        feed = Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, limit)
        builders.clear()
        for _ in range(3):
            list(feed.in_order(list(range(5))))
        assert feed.cached_bytes <= limit
        assert len(feed._cache) == kept
        assert len(builders) == kept + 3 * (5 - kept)


def test_what_fails_in_the_thread_fails_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*args: int) -> GraphStructure:
        raise MemoryError("no room")

    monkeypatch.setattr(feeding, "build_structure", build)
    with pytest.raises(MemoryError, match="no room"):
        small_trainer(random_subgraphs(3), small_options()).run()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("subgraphs")]


def test_a_step_that_fails_ends_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = small_trainer(random_subgraphs(3), small_options())
    monkeypatch.setattr(trainer._stepper, "_loss", None)
    with pytest.raises(TypeError):
        trainer.run()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("subgraphs")]


def peak_mb(folder: Path, subgraphs: SubgraphSet) -> float:
    """Peak memory of a process that trains one epoch on subgraphs mapped from a run folder."""
    folder.mkdir()
    RunStore(folder).save_scratch("subgraphs", subgraphs)
    command = [sys.executable, "-m", "tests.embedding.memory_run", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=300)
    return float(result.stdout)


def test_memory_does_not_grow_with_the_number_of_subgraphs(tmp_path: Path) -> None:
    if not Meter().read().exact:
        pytest.skip("the peak of a stretch of work cannot be told on this system")
    # Windows over one table, so that only their number differs: 10 of them, or 46 between the same ends.
    few = random_subgraphs(10, part_size=5_000, num_seeds=10, step=4_740)
    many = random_subgraphs(46, part_size=5_000, num_seeds=10, step=948)
    assert int(few.entities.max()) == int(many.entities.max())
    ready = next(iter(Feed(many, prepare_subgraph, NUM_RELATIONS, CPU, 0).in_order([0])))
    if_kept = 36 * ready.num_bytes / 2**20
    mapped = (many.triples.nbytes - few.triples.nbytes + many.entities.nbytes - few.entities.nbytes) / 2**20
    grown = peak_mb(tmp_path / "many", many) - peak_mb(tmp_path / "few", few)
    # Pages of the file count as resident until the system wants them back; the structures would be several times that.
    assert if_kept > 3 * mapped
    assert grown < mapped + 0.3 * if_kept


def test_tensors_do_not_share_memory_with_the_file() -> None:
    subgraphs = random_subgraphs(1)
    ready = next(iter(Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, 0).in_order([0])))
    ready.entities.zero_()
    assert subgraphs.entities[1] == 1
    assert ready.seeds.dtype == torch.int64
    assert np.shares_memory(subgraphs.subgraph(0).entities, subgraphs.entities)
