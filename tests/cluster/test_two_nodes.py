"""Results and losses on a cluster of two nodes; in one file, as every process of the tests starts nodes of its own."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from largegnn import api
from largegnn.artifacts import FloatArray
from largegnn.cluster.nodes import ask_nodes, versions_here
from largegnn.cluster.workers import RayWorkers
from largegnn.data import lines, readers
from largegnn.embedding import integrate as whole_graph
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.integrate import WholeGraph
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.trainer import Trainer
from largegnn.embedding.visits import ClusterVisits
from largegnn.errors import InputError, StorageError
from largegnn.literals import grams, values_evidence
from largegnn.literals.compare import compare_literals
from largegnn.machine import pieces as machine_pieces
from largegnn.machine.pieces import current_workers, map_pieces, use_workers
from largegnn.matching import candidates, exact_search, neighbor_rows
from largegnn.matching.search import search_both
from largegnn.settings import ClusterSettings, CompareSettings, ProtocolSettings
from tests.cli.small_runs import QUICK, WORLD, call, make_pair
from tests.cluster.conftest import Nodes
from tests.cluster.light_work import die_early_and_late, die_once, full_disk, refuse, sum_range, write_note
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.random_graphs import random_rows, random_triples
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
from tests.matching.mirrored import assert_equal, matched, mirrored_task, mirrored_vectors
from tests.pickled_pool import PickledPool

SUBGRAPHS = random_subgraphs(5)
# Few enough entities that all of them are at hand for the cross-subgraph loss.
OPTIONS = small_options(cross_negatives=40)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def _all_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every graph were large, and this machine had fewer processors than the cluster."""
    monkeypatch.setattr(whole_graph, "_MIN_ENTITIES_TO_SEND", 1)
    for module in (neighbor_rows, candidates, exact_search):
        monkeypatch.setattr(module, "_WORTH_SENDING", 1)
    one_processor_here(monkeypatch)


def one_processor_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this machine had one processor, of which a cluster of two has more."""
    monkeypatch.setattr(machine_pieces, "num_processors", lambda: 1)


@pytest.fixture(scope="module")
def workers(nodes: Nodes) -> RayWorkers:
    return nodes.workers()


def functions_run(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the functions that workers are given from now on."""
    names: set[str] = set()
    compute = RayWorkers.map

    def noting(self: RayWorkers, function: Any, pieces: Any, shared: Any) -> Any:
        names.add(function.__name__)
        return compute(self, function, pieces, shared)

    monkeypatch.setattr(RayWorkers, "map", noting)
    return names


def test_pieces_give_what_the_whole_gives(workers: RayWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    sources, targets = (rng.normal(size=(count, 16)).astype(np.float32) for count in (1_500, 1_100))
    targets[40:60] = targets[40]  # rows that tie, on either side of a cut
    covered = rng.random(1_500) < 0.9
    targets[5] = 0
    monkeypatch.setattr(exact_search, "_WORTH_SENDING", 1)
    one_processor_here(monkeypatch)
    monkeypatch.setattr(exact_search, "_MIN_QUERIES", 100)
    whole = search_both(sources, targets, 7, "torch", source_covered=covered)
    with use_workers(workers):
        assert current_workers() is workers
        pieces = search_both(sources, targets, 7, "torch", source_covered=covered)
    assert current_workers() is None
    for one, other in zip(whole, pieces, strict=True):
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.scores, other.scores)
        assert one.record.method == other.record.method


@pytest.mark.parametrize("form", ["nt", "openea"])
def test_files_in_pieces_give_what_the_whole_gives(
    workers: RayWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    api.generate(WORLD.model_copy(update={"literals": True}), folder=tmp_path, form=form)
    whole = api.load(tmp_path)
    monkeypatch.setattr(readers, "_WORTH_SENDING", 1)
    monkeypatch.setattr(lines, "_BLOCK", 20_000)
    one_processor_here(monkeypatch)
    ran = functions_run(monkeypatch)
    with use_workers(workers):
        found = api.load(tmp_path)
    assert ran
    assert found.summary == whole.summary
    for part in ("task", "names", "literals"):
        assert as_lists(getattr(found, part)) == as_lists(getattr(whole, part)), part


def as_lists(artifact: Any) -> Any:
    """An artifact as plain values, to be compared."""
    if dataclasses.is_dataclass(artifact):
        return [as_lists(getattr(artifact, field.name)) for field in dataclasses.fields(artifact)]
    return artifact.tolist() if isinstance(artifact, np.ndarray) else artifact


def test_names_and_values_in_pieces_give_what_the_whole_gives(
    workers: RayWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.generate(WORLD.model_copy(update={"literals": True}), folder=tmp_path / "pair")
    pair = api.load(tmp_path / "pair")
    options = (pair.task, pair.names, pair.literals, ("literals",), ProtocolSettings(), CompareSettings(), 0)
    whole = compare_literals(*options)
    for module in (grams, values_evidence):
        monkeypatch.setattr(module, "_WORTH_SENDING", 1)
    for name, size in (("_MIN_PIECE_TEXTS", 70), ("_CORPUS_TEXTS", 90), ("_MIN_PIECE_PAIRS", 1_000)):
        monkeypatch.setattr(grams, name, size)
    monkeypatch.setattr(values_evidence, "_PIECE_EDGES", 900)
    one_processor_here(monkeypatch)
    ran = functions_run(monkeypatch)
    with use_workers(workers):
        found = compare_literals(*options)
    assert len(ran) >= 2
    assert len(whole.outcome.correspondences) >= 3
    assert len(whole.literal_evidence.pairs) > 2_000
    assert found.outcome == whole.outcome
    for field in ("pairs", "evidence", "anchors", "duplicates"):
        assert np.array_equal(getattr(found.literal_evidence, field), getattr(whole.literal_evidence, field)), field


def test_pieces_in_order_though_a_worker_is_killed(workers: RayWorkers, tmp_path: Path) -> None:
    taken: list[int] = []

    def numbers() -> Iterator[tuple[int]]:
        for number in range(40):
            taken.append(number)
            yield (number,)

    found = workers.map(die_once, numbers(), (tmp_path,))
    assert [next(found) for _ in range(10)] == [number**2 for number in range(10)]
    assert (tmp_path / "died").exists()
    assert len(taken) <= 10 + 4 * 2, "a few pieces for each worker are under way"
    found.close()  # type: ignore[attr-defined]
    assert list(workers.map(die_once, [], (tmp_path,))) == []


@pytest.mark.usefixtures("_all_in_pieces")
def test_arrays_of_files_are_mapped_by_the_workers_and_others_sent(workers: RayWorkers, tmp_path: Path) -> None:
    np.save(tmp_path / "values.npy", np.arange(20))
    mapped, values = np.load(tmp_path / "values.npy", mmap_mode="r"), np.arange(20)
    ranges = [(0, 5), (5, 20)]
    with use_workers(workers):
        for array, is_mapped in ((mapped, True), (mapped[::2], False), (values, False)):
            found = list(map_pieces(sum_range, ranges, array))
            expected = [(int(array[start:stop].sum()), is_mapped, False) for start, stop in ranges]
            assert found == expected
        assert {here for _, _, here in map_pieces(sum_range, ranges, values, send=False)} == {True}


def test_errors_of_a_piece_are_its_own(workers: RayWorkers) -> None:
    with pytest.raises(InputError, match="not 1") as error:
        list(workers.map(refuse, [(1,)], ()))
    assert error.value.fix == "another"


class DisturbedWorkers(RayWorkers):
    """Workers whose pieces are computed by `through`, which is given the function and its arguments after `first`."""

    through: Callable[..., Any]
    first: tuple[Any, ...] = ()

    def _compute(self, function: Callable[..., Any], pieces: Iterable[tuple[Any, ...]], *more: Any) -> Iterator[Any]:
        return super()._compute(self.through, ((*self.first, function, *piece) for piece in pieces), *more)


def disturbed(nodes: Nodes, through: Callable[..., Any], *first: Any, **settings: Any) -> DisturbedWorkers:
    """The workers of a run whose pieces fail in some way."""
    found = DisturbedWorkers(nodes.ray, ClusterSettings(**settings), nodes.facts, "cpu")
    found.through, found.first = through, first
    return found


def encode_mapped(tmp_path: Path) -> FloatArray:
    """Vectors of a graph whose rows lie in a file, as those of a run do."""
    if not (tmp_path / "rows.npy").exists():
        np.save(tmp_path / "rows.npy", random_rows(2_000, 8, 0, torch.float32)[0].numpy())
    rows = np.lib.format.open_memmap(tmp_path / "rows.npy", mode="r")
    torch.manual_seed(0)
    relations = random_rows(1, 8, 0, torch.float32)[1]
    graph = WholeGraph(2_000, random_triples(2_000, 9_000, 4), len(relations) // 2, 2**22)
    return graph.encode(DualAMN(8).eval(), rows, relations)


@pytest.mark.usefixtures("_all_in_pieces")
def test_layers_in_pieces_though_workers_are_killed(nodes: Nodes, tmp_path: Path) -> None:
    alone = encode_mapped(tmp_path)
    with use_workers(disturbed(nodes, die_early_and_late, tmp_path)):
        together = encode_mapped(tmp_path)
    assert np.array_equal(together, alone)
    assert {"early", "late"} <= {path.name for path in tmp_path.iterdir()}, "both were killed"
    assert not (tmp_path / "layers").exists()


@pytest.mark.usefixtures("_all_in_pieces")
def test_search_and_rules_in_pieces_give_what_the_whole_gives(
    workers: RayWorkers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, vectors = mirrored_task(), mirrored_vectors(tmp_path)
    alone = matched(task, vectors)
    ran = functions_run(monkeypatch)
    with use_workers(workers):
        assert_equal(matched(task, vectors), alone)
    assert len(ran) >= 2


def test_a_disk_that_is_full_on_a_node(nodes: Nodes, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No space left on device") as error:
        list(disturbed(nodes, full_disk).map(write_note, [(tmp_path / "note",)], ()))
    assert any(f"on the node {node.name}" in str(error.value) for node in nodes.facts)
    assert "free some space and run again with --resume" in str(error.value)
    assert not list(tmp_path.iterdir())


def test_one_worker_makes_what_one_process_makes_whatever_is_lost(nodes: Nodes, tmp_path: Path) -> None:
    alone = small_trainer(SUBGRAPHS, OPTIONS)
    alone.run()
    workers = disturbed(nodes, die_early_and_late, tmp_path, workers=1)
    visits = ClusterVisits(workers, OPTIONS, NUM_RELATIONS)
    trainer = small_trainer(SUBGRAPHS, OPTIONS, cluster=visits, folder=tmp_path / "checkpoints")
    trainer.run()
    use = visits.use()
    assert use is not None
    assert {"early", "late"} <= {path.name for path in tmp_path.iterdir()}, "both were killed"
    assert (use.num_visits, use.num_nodes, use.most_stale, use.shared_rows) == (20, 2, 0, 0)
    assert are_equal(copies(trainer.model), copies(alone.model))
    assert [epoch.loss for epoch in trainer.history] == [epoch.loss for epoch in alone.history]
    # One process goes on with the checkpoint of a cluster.
    more = small_options(cross_negatives=40, epochs=6)
    resumed = small_trainer(SUBGRAPHS, more, folder=tmp_path / "checkpoints")
    assert [epoch.loss for epoch in resumed.run()][:4] == [epoch.loss for epoch in alone.history]


def test_a_node_is_lost_and_its_visits_are_made_by_others(nodes: Nodes) -> None:
    added = nodes.add()

    class Losing(RayWorkers):
        def visits(self, *options: Any) -> Iterator[Any]:
            for number, result in enumerate(super().visits(*options)):
                if number == 1 and self.num_nodes == 3:
                    nodes.remove(added)
                yield result

    workers = Losing(nodes.ray, ClusterSettings(workers=3), nodes.facts, "cpu")
    visits = ClusterVisits(workers, OPTIONS, NUM_RELATIONS)
    found = small_trainer(SUBGRAPHS, OPTIONS, cluster=visits)
    found.run()
    use = visits.use()
    assert use is not None
    assert use.num_nodes == 2, "three until the first was done"
    pool = ClusterVisits(PickledPool(3), OPTIONS, NUM_RELATIONS)
    pretended = small_trainer(SUBGRAPHS, OPTIONS, cluster=pool)
    pretended.run()
    assert are_equal(copies(found.model), copies(pretended.model)), "the same number at the same time"


def test_two_workers_reach_what_one_reaches(nodes: Nodes) -> None:
    task, _, subgraphs = generated_pair(600, 8)
    options = train_options(epochs=12)

    def trained(**more: Any) -> Trainer:
        model = EmbeddingModel(task.num_entities, task.num_relations, options, CPU, 0)
        trainer = Trainer(model, lambda _: subgraphs, task.num_relations, options, 0, **more)
        trainer.run()
        return trainer

    visits = ClusterVisits(nodes.workers(staleness=3), options, task.num_relations)
    together = trained(cluster=visits)
    use = visits.use()
    assert use is not None
    assert (use.num_visits, use.num_workers, use.most_stale) == (12 * 8, 2, 3)
    assert use.shared_rows > 0
    measure = (task.num_relations, task.triples, task.test_links)
    hits = hits_of(trained().model, *measure)
    assert hits > 0.3
    assert hits_of(together.model, *measure) > hits - 0.05


def test_nodes_look_for_the_folder_themselves(nodes: Nodes, tmp_path: Path) -> None:
    found = ask_nodes(nodes.ray, tmp_path)
    assert [node.sees_folder for node in found] == [True, True]
    assert {node.versions for node in found} == {versions_here()}
    assert not list(tmp_path.iterdir())


# Begins a run and dies at the first log message that starts with the moment.
KILLED = """
import logging, os, signal, sys
from largegnn.cli import main

class Killer(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)

logging.getLogger("largegnn").addHandler(Killer())
main(sys.argv[2:])
"""


def test_check_and_a_run_on_two_nodes_killed_and_resumed(nodes: Nodes, tmp_path: Path) -> None:
    checked = call("cluster", "check", nodes.address, "--run-folder", tmp_path)
    assert checked.stdout.count("yes") == 2
    assert "A run would take 2 workers" in checked.stdout
    assert len(json.loads(call("cluster", "check", "--json").stdout)) == 2
    assert "no such folder" in call("cluster", "check", "--run-folder", tmp_path / "none", expect=2).stderr
    pair, run = make_pair(tmp_path / "pair"), tmp_path / "run"
    words = [*QUICK, "--set", "division.parts=3", "--set", "report.pages=report.json", "--channels", "structure"]
    command = ["align", str(pair), "--out", str(run), "--cluster", nodes.address, *words]
    command = [sys.executable, "-c", KILLED, "train: epoch 3 of 4", *command, "--set", "train.checkpoint_seconds=0"]
    killed = subprocess.run(command, check=False, capture_output=True, timeout=200)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    resumed = call("align", "--resume", "--out", run)
    assert "train: resuming after epoch" in resumed.stderr, "the workers and shards of the killed one made room"
    assert "workers on 2 nodes" in resumed.stdout
    report = json.loads((run / "report.json").read_text())
    assert report["cluster"]["num_nodes"] == 2
    assert 3 <= report["cluster"]["num_visits"] < 12, "three in each epoch that was left"
    assert len(report["history"]) == 4
    # The cluster is no part of what a stage is made from: the same folder goes on without it.
    again = call("align", "--resume", "--out", run, "--cluster", "none")
    assert "train: reused" in again.stderr
