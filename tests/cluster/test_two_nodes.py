"""What two nodes make together and survive; in one file, as every process of the tests starts nodes of its own."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from largegnn import api
from largegnn.cluster.nodes import ask_nodes, versions_here
from largegnn.cluster.pool import RayPool
from largegnn.cluster.visits import RayVisits
from largegnn.data import block_pieces
from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.trainer import Trainer
from largegnn.errors import InputError
from largegnn.literals import gram_pieces, grams, value_pieces, values_evidence
from largegnn.machine.worker_pool import using_pool, worker_pool
from largegnn.matching import search_pieces
from largegnn.matching.searchers import search_both
from largegnn.settings import CompareSettings, ProtocolSettings
from largegnn.stages.literals import literals
from tests.cli.small_runs import QUICK, WORLD, call, make_pair
from tests.cluster.conftest import Nodes
from tests.cluster.light_work import die_once, refuse
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.small_runs import (
    CPU,
    NUM_RELATIONS,
    are_equal,
    copies,
    hits_of,
    random_subgraphs,
    small_options,
    small_trainer,
    train_options,
)

SUBGRAPHS = random_subgraphs(5)
# Few enough entities that all of them are at hand for the cross-subgraph loss.
OPTIONS = small_options(cross_negatives=40)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def pool(nodes: Nodes) -> RayPool:
    return nodes.pool()


def functions_run(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the functions that pools are given from now on."""
    names: set[str] = set()
    run = RayPool.run

    def noting(self: RayPool, function: Any, pieces: Any) -> Any:
        names.add(function.__name__)
        return run(self, function, pieces)

    monkeypatch.setattr(RayPool, "run", noting)
    return names


def test_pieces_give_what_the_whole_gives(pool: RayPool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    sources, targets = (rng.normal(size=(count, 16)).astype(np.float32) for count in (1_500, 1_100))
    targets[40:60] = targets[40]  # rows that tie, on either side of a cut
    covered = rng.random(1_500) < 0.9
    targets[5] = 0
    monkeypatch.setattr(search_pieces, "_CORPUS_BYTES", 4 * 16 * 50)
    monkeypatch.setattr(search_pieces, "_FEWEST", 100)
    whole = search_both(sources, targets, 7, "torch", source_covered=covered)
    with using_pool(pool):
        assert worker_pool() is pool
        pieces = search_both(sources, targets, 7, "torch", source_covered=covered)
    assert worker_pool() is None
    for one, other in zip(whole, pieces, strict=True):
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.scores, other.scores)
        assert one.record.method == other.record.method


@pytest.mark.parametrize("form", ["nt", "openea"])
def test_files_in_pieces_give_what_the_whole_gives(
    pool: RayPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    api.generate(WORLD.model_copy(update={"literals": True}), folder=tmp_path, form=form)
    whole = api.load(tmp_path)
    monkeypatch.setattr(block_pieces, "_WORTH_SENDING", 1)
    monkeypatch.setattr(block_pieces, "_RANGE", 20_000)
    ran = functions_run(monkeypatch)
    with using_pool(pool):
        found = api.load(tmp_path)
    assert ran == {"code_range"}
    assert found.summary == whole.summary
    for part in ("task", "names", "literals"):
        assert as_lists(getattr(found, part)) == as_lists(getattr(whole, part)), part


def as_lists(artifact: Any) -> Any:
    """An artifact as plain values, to be compared."""
    if dataclasses.is_dataclass(artifact):
        return [as_lists(getattr(artifact, field.name)) for field in dataclasses.fields(artifact)]
    return artifact.tolist() if isinstance(artifact, np.ndarray) else artifact


def test_names_and_values_in_pieces_give_what_the_whole_gives(
    pool: RayPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.generate(WORLD.model_copy(update={"literals": True}), folder=tmp_path / "pair")
    pair = api.load(tmp_path / "pair")
    how = (pair.task, pair.names, pair.literals, ("literals",), ProtocolSettings(), CompareSettings(), 0)
    whole = literals(*how)
    for module in (grams, values_evidence):
        monkeypatch.setattr(module, "_WORTH_SENDING", 1)
    for name, size in (("_MOST_TEXTS", 70), ("_CORPUS", 90), ("_MOST_PAIRS", 1_000)):
        monkeypatch.setattr(gram_pieces, name, size)
    monkeypatch.setattr(value_pieces, "_EDGES", 900)
    monkeypatch.setattr(grams, "num_processors", lambda: 1)  # of which a cluster of two has more
    ran = functions_run(monkeypatch)
    with using_pool(pool):
        found = literals(*how)
    assert ran == {"count_piece", "lengths_piece", "nearest_piece", "cosines_piece", "compare_piece"}
    assert len(whole.outcome.correspondences) >= 3
    assert len(whole.literal_evidence.pairs) > 2_000
    assert found.outcome == whole.outcome
    for field in ("pairs", "evidence", "anchors", "duplicates"):
        assert np.array_equal(getattr(found.literal_evidence, field), getattr(whole.literal_evidence, field)), field


def test_a_piece_whose_worker_is_killed_is_made_again(pool: RayPool, tmp_path: Path) -> None:
    found = dict(pool.run(die_once, ((tmp_path, number) for number in range(6))))
    assert found == {number: number**2 for number in range(6)}
    assert (tmp_path / "died").exists()


def test_errors_of_a_piece_are_its_own(pool: RayPool) -> None:
    with pytest.raises(InputError, match="not 1") as error:
        list(pool.run(refuse, [(1,)]))
    assert error.value.fix == "another"


class Disturbed(RayVisits):
    """Visits after some of which something happens."""

    after: dict[int, Callable[[RayVisits, Any], None]]

    def wait_for_all(self) -> None:
        """Begin when all workers are ready, so that they work at the same time from the start."""
        self._find_workers()
        for worker in self._workers:
            self._ray.wait([worker.starting])
            self._welcome(worker.starting)

    def _give(self, flight: Any, facts: Any) -> None:
        super()._give(flight, facts)
        happens = self.after.pop(self.tally.num_visits, None)
        if happens is not None:
            happens(self, flight)


def kill_shard(visits: RayVisits, flight: Any) -> None:
    """End the process of one shard."""
    assert visits._table is not None
    shard = visits._table._shards[0]
    os.kill(visits._ray.get(shard.process.remote()), signal.SIGKILL)


def kill_worker(visits: RayVisits, flight: Any) -> None:
    """End the worker that made a visit, as a machine without memory would."""
    os.kill(flight.worker.process, signal.SIGKILL)


def test_one_worker_makes_what_one_process_makes_whatever_is_lost(nodes: Nodes, tmp_path: Path) -> None:
    added = nodes.add()
    alone = small_trainer(SUBGRAPHS, OPTIONS)
    alone.run()
    Disturbed.after = {7: kill_shard, 17: lambda *_: nodes.remove(added)}
    with Disturbed(nodes.pool(workers=1), OPTIONS, NUM_RELATIONS) as workers:
        trainer = small_trainer(SUBGRAPHS, OPTIONS, workers=workers, checkpoints=CheckpointFolder(tmp_path))
        trainer.run()
    tally = workers.tally
    assert tally.epochs_repeated >= 1, "a shard was killed in the second epoch"
    assert tally.num_visits >= 20 + 2
    assert (tally.most_stale, tally.shared_rows) == (0, 0)
    assert are_equal(copies(trainer.model), copies(alone.model)), "repeated from the copy of the epoch before"
    assert [epoch.loss for epoch in trainer.history] == [epoch.loss for epoch in alone.history]
    # One process goes on with the checkpoint of a cluster.
    more = small_options(cross_negatives=40, epochs=6)
    resumed = small_trainer(SUBGRAPHS, more, checkpoints=CheckpointFolder(tmp_path))
    assert [epoch.loss for epoch in resumed.run()][:4] == [epoch.loss for epoch in alone.history]


def test_two_workers_reach_what_one_reaches_though_one_is_killed(nodes: Nodes) -> None:
    task, _, subgraphs = generated_pair(600, 8)
    options = train_options(epochs=12)

    def trained(**more: Any) -> Trainer:
        model = EmbeddingModel(task.num_entities, task.num_relations, options, CPU, 0)
        trainer = Trainer(model, lambda _: subgraphs, task.num_relations, options, 0, **more)
        trainer.run()
        return trainer

    Disturbed.after = {30: kill_worker}
    with Disturbed(nodes.pool(staleness=3), options, task.num_relations) as workers:
        workers.wait_for_all()
        together = trained(workers=workers)
    tally = workers.tally
    assert tally.num_visits == 12 * 8
    assert tally.num_workers == 2
    assert tally.visits_repeated <= 1, "if the killed worker had begun another visit"
    assert 1 <= tally.most_stale <= 3
    assert tally.shared_rows > 0
    assert tally.bytes_sent > 0
    measure = (task.num_relations, task.triples, task.test_links)
    hits = hits_of(trained().model, *measure)
    assert hits > 0.3
    assert hits_of(together.model, *measure) > hits - 0.05


def test_nodes_look_for_the_folder_themselves(nodes: Nodes, tmp_path: Path) -> None:
    found = ask_nodes(nodes.ray, tmp_path)
    assert [node.sees_folder for node in found] == [True, True]
    assert {node.versions for node in found} == {versions_here()}
    assert not list(tmp_path.iterdir())


def test_check_and_a_run_on_two_nodes(nodes: Nodes, tmp_path: Path) -> None:
    checked = call("cluster", "check", nodes.address, "--run-folder", tmp_path)
    assert checked.stdout.count("yes") == 2
    assert "A run would take 2 workers" in checked.stdout
    assert len(json.loads(call("cluster", "check", "--json").stdout)) == 2
    assert "no such folder" in call("cluster", "check", "--run-folder", tmp_path / "none", expect=2).stderr
    pair, runs = make_pair(tmp_path / "pair"), [tmp_path / "one", tmp_path / "two"]
    words = [*QUICK, "--set", "division.parts=3", "--set", "report.pages=report.json", "--channels", "structure"]
    for out, cluster in zip(runs, ("none", nodes.address), strict=True):
        shown = call("align", pair, "--out", out, "--cluster", cluster, *words).stdout
    assert "workers on 2 nodes" in shown
    one, two = (json.loads((out / "report.json").read_text()) for out in runs)
    assert one["cluster"] is None
    assert (two["cluster"]["num_nodes"], two["cluster"]["num_visits"]) == (2, 12)
    assert two["partition"]["sizes"] == one["partition"]["sizes"], "divisions are equal"
    # The cluster is no part of what a stage is made from: the same folder goes on without it.
    again = call("align", "--resume", "--out", runs[1], "--cluster", "none")
    assert "train: reused" in again.stderr
