from __future__ import annotations

import numpy as np
import pytest

from largegnn.division import metis
from largegnn.division.merge import merge
from largegnn.division.metis import merged_metis, partition_csr, partition_graph
from largegnn.errors import InputError
from tests.division.random_tasks import make_task
from tests.division.test_whole_parts import two_cliques


def test_isolated_nodes_are_spread_evenly() -> None:
    graph = merge(make_task(500, 500, [(0, 1)], []))
    sizes = merged_metis(graph, 7, seed=0).sizes
    assert sizes.sum() == 1000
    assert sizes.max() < 1.1 * 1000 / 7


def test_same_seed_same_parts_and_another_seed_others() -> None:
    rng = np.random.default_rng(5)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 300, (900, 2)) if a != b]
    graph = merge(make_task(300, 1, edges, []))
    first = partition_graph(graph, 4, seed=0)
    np.testing.assert_array_equal(first, partition_graph(graph, 4, seed=0))
    # To the C library's generator 0 and 1 are one seed; to us they are two.
    assert np.any(first != partition_graph(graph, 4, seed=1))
    assert partition_graph(graph, 4, seed=2**32 - 1).max() == 3


def test_parts_balance_in_entities_not_in_nodes() -> None:
    """Sixty seed pairs and sixty loners in one ring: nodes weigh two or one."""
    ring = [(i, (i + 1) % 120) for i in range(120)]
    graph = merge(make_task(120, 60, ring, [(i, 120 + i) for i in range(60)]))
    sizes = merged_metis(graph, 4, seed=0).sizes
    assert sizes.max() <= 1.1 * 180 / 4


@pytest.mark.parametrize("num_parts", [0, -2, 9])
def test_impossible_numbers_of_parts_are_refused_with_the_possible_ones(num_parts: int) -> None:
    graph = merge(make_task(4, 4, [(0, 1)], []))
    with pytest.raises(InputError, match="1 to 8 parts") as caught:
        partition_graph(graph, num_parts, seed=0)
    assert str(num_parts) in str(caught.value.found)


def test_a_graph_without_nodes_is_refused() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(InputError, match="nothing to divide"):
        partition_csr(np.zeros(1, dtype=np.int64), nothing, nothing, nothing, 1, seed=0)


def test_weights_beyond_metis_integers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymetis.zero_copy_dtype", lambda: np.dtype(np.int32))
    ptr, neighbors = np.array([0, 1, 2]), np.array([1, 0])
    heavy = np.full(2, 2**31 - 1, dtype=np.int64)
    with pytest.raises(InputError, match="counts in 32 bits"):
        partition_csr(ptr, neighbors, heavy, np.ones(2, dtype=np.int64), 2, seed=0)


def test_large_graphs_are_cut_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metis, "_MAX_SMALL_EDGES", 0)
    partition = merged_metis(merge(two_cliques()), 2, seed=0)
    assert sorted(partition.sizes.tolist()) == [3, 5]
