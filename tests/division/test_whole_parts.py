"""What METIS and KaMinPar both keep to: parts that cover the merged graph, none empty, no seed pair divided."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask
from largegnn.division import kaminpar, metis
from largegnn.division.merge import merge
from tests.division.random_tasks import make_task, tasks, unhurried

_HAS_KAMINPAR = importlib.util.find_spec("kaminpar") is not None
both = pytest.mark.parametrize(
    "door",
    [metis, pytest.param(kaminpar, marks=pytest.mark.skipif(not _HAS_KAMINPAR, reason="KaMinPar is not installed"))],
    ids=["metis", "kaminpar"],
)


def two_cliques() -> AlignmentTask:
    """Two cliques of four, one in each graph, held together by one seed pair.

    source 0 1 2 3 (all joined)      target 4 5 6 7 (all joined)      seed (3, 4)
    """
    edges = [(a, b) for clique in (range(4), range(4, 8)) for a in clique for b in clique if a < b]
    return make_task(4, 4, edges, [(3, 4)])


@both
def test_cliques_are_told_apart_and_the_seed_pair_stays_together(door: ModuleType) -> None:
    part_of_node = door.partition_graph(merge(two_cliques()), 2, seed=0)
    graph = merge(two_cliques())
    parts = {tuple(np.flatnonzero(part_of_node[graph.node_of_entity] == index).tolist()) for index in range(2)}
    assert parts in ({(0, 1, 2), (3, 4, 5, 6, 7)}, {(0, 1, 2, 3, 4), (5, 6, 7)})


@both
@unhurried
@given(task=tasks(), data=st.data())
def test_every_node_has_a_part_and_no_part_is_empty(door: ModuleType, task: AlignmentTask, data: st.DataObject) -> None:
    graph = merge(task)
    num_parts = data.draw(st.integers(1, graph.num_nodes))
    part_of_node = door.partition_graph(graph, num_parts, seed=3)
    assert part_of_node.dtype == np.int32
    assert len(part_of_node) == graph.num_nodes
    assert set(part_of_node.tolist()) == set(range(num_parts))
    for source, target in task.train_links:
        assert part_of_node[graph.node_of_entity[source]] == part_of_node[graph.node_of_entity[target]]
