from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask
from largegnn.division import kaminpar, partition
from largegnn.division.kaminpar import merged_kaminpar, partition_graph
from largegnn.division.merge import merge
from largegnn.errors import InputError, StorageError
from tests.division.random_tasks import make_task
from tests.division.test_whole_parts import two_cliques

pytest.importorskip("kaminpar")


def random_graph_task(num_edges: int = 900) -> AlignmentTask:
    rng = np.random.default_rng(5)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 300, (num_edges, 2)) if a != b]
    return make_task(300, 1, edges, [])


@pytest.mark.parametrize("effort", ["default", "eco"])
def test_one_thread_gives_the_same_parts_for_a_seed_and_others_for_another(effort: kaminpar.Effort) -> None:
    graph = merge(random_graph_task())
    first, again = (partition_graph(graph, 4, seed=0, effort=effort) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != partition_graph(graph, 4, seed=1, effort=effort))
    assert partition_graph(graph, 4, seed=2**32 - 1, effort=effort).max() == 3


def test_several_threads_divide_as_evenly() -> None:
    sizes = merged_kaminpar(merge(random_graph_task()), 4, seed=0, num_threads=2).sizes
    assert sizes.sum() == 301
    assert sizes.max() <= np.ceil(1.03 * 301 / 4)


def test_parts_balance_in_entities_not_in_nodes() -> None:
    """Sixty seed pairs and sixty loners in one ring: nodes weigh two or one."""
    ring = [(i, (i + 1) % 120) for i in range(120)]
    graph = merge(make_task(120, 60, ring, [(i, 120 + i) for i in range(60)]))
    assert merged_kaminpar(graph, 4, seed=0).sizes.max() <= 1.1 * 180 / 4


def test_the_file_has_offsets_in_bytes_neighbours_and_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 - 1 - 2, the first edge two triples, entity 3 merged into node 0: words of a file written by hand."""
    monkeypatch.setattr(kaminpar, "_CHUNK", 2)
    graph = merge(make_task(3, 1, [(0, 1), (1, 0), (1, 2)], [(0, 3)]))
    path = tmp_path / "graph.parhip"
    with path.open("wb") as file:
        kaminpar._write_parhip(file, graph)
    first = 8 * (3 + 4)
    offsets = [first, first + 8, first + 24, first + 32]
    assert np.fromfile(path, dtype=np.int64).tolist() == [0, 3, 4, *offsets, 1, 0, 2, 1, 2, 1, 1, 2, 2, 1, 1]


def test_little_shared_memory_gives_way_to_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert kaminpar._choose_folder(2**60) == str(tmp_path)
    monkeypatch.setattr(kaminpar, "_SHARED_MEMORY", tmp_path / "none")
    assert kaminpar._choose_folder(1) == str(tmp_path)


def test_a_full_disk_says_what_to_do_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kaminpar, "_SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(kaminpar, "_write_parhip", full)
    with pytest.raises(StorageError, match=r"No space left on device .*division\.partitioner=metis"):
        merged_kaminpar(merge(two_cliques()), 2, seed=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_parts", [0, 9])
def test_impossible_numbers_of_parts_are_refused(num_parts: int) -> None:
    with pytest.raises(InputError, match="1 to 8 parts"):
        partition_graph(merge(make_task(4, 4, [(0, 1)], [])), num_parts, seed=0)


def test_metis_divides_where_the_wheel_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = random_graph_task()
    graph = merge(task)
    expected = partition.metis(task, graph, "train", 3, 0)
    monkeypatch.setattr(kaminpar, "is_installed", lambda: False)
    with caplog.at_level(logging.INFO):
        found = partition.auto(task, graph, "train", 3, 0)
    assert [record.levelname for record in caplog.records] == ["INFO"], "auto chose; nothing to be warned of"
    np.testing.assert_array_equal(found.entities, expected.entities)
    caplog.clear()
    found = partition.kaminpar(task, graph, "train", 3, 0)
    assert "KaMinPar is not installed" in caplog.text
    np.testing.assert_array_equal(found.part_ptr, expected.part_ptr)
