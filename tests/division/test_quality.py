from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, IntArray, Partition
from largegnn.division.landmarks import add_landmarks
from largegnn.division.merge import merge
from largegnn.division.subgraphs import measure_quality, share_kept
from tests.division.random_tasks import make_partition, make_task, partitions, tasks, unhurried


def test_a_division_by_hand() -> None:
    """Source 0 - 1 - 2, target 3 - 4 - 5; links (0, 3) train, (1, 4) valid, (2, 5) test; parts {0, 1, 3}, {1, 2, 4}.

    Entity 5 is in no part, entity 1 is a landmark in the first. Of the triples 0-1 and 1-2 are kept, of the links the
    first two. Of the merged edges {0,3}-1, 1-2, {0,3}-4 and 4-5 the last two are cut.
    """
    task = make_task(3, 3, [(0, 1), (1, 2), (3, 4), (4, 5)], [(0, 3)], [(1, 4)], [(2, 5)])
    before = make_partition(6, [[0, 3], [1, 2, 4]])
    quality = measure_quality(task, merge(task), make_partition(6, [[0, 1, 3], [1, 2, 4]]), before)
    assert quality.sizes == (3, 3)
    assert quality.source_sizes == (2, 2)
    assert quality.num_landmarks == (1, 0)
    assert quality.num_uncovered == 1
    assert quality.edge_cut == 0.5
    assert quality.triples_kept == 0.5
    assert quality.train_kept == 1.0
    assert quality.valid_kept == 1.0
    assert quality.test_kept == 0.0
    assert share_kept(np.array([(0, 3), (2, 5), (1, 4), (2, 4)]), make_partition(6, [[0, 1, 3], [1, 2, 4]])) == 0.75
    assert share_kept(task.test_links[:0], before) is None


def test_a_share_of_nothing_is_none() -> None:
    task = make_task(1, 1, [], [])
    quality = measure_quality(task, merge(task), make_partition(2, [[0, 1]]))
    assert quality.num_landmarks == (0,)
    shares = (quality.edge_cut, quality.triples_kept, quality.train_kept, quality.valid_kept, quality.test_kept)
    assert shares == (None,) * 5


@unhurried
@given(task=tasks(), data=st.data())
def test_shares_equal_their_definition(task: AlignmentTask, data: st.DataObject) -> None:
    partition, graph = data.draw(partitions(task.num_entities)), merge(task)
    quality = measure_quality(task, graph, partition)
    parts = [set(partition.part(index).tolist()) for index in range(partition.num_parts)]
    node_parts = [{int(graph.node_of_entity[entity]) for entity in part} for part in parts]
    heads = np.repeat(np.arange(graph.num_nodes), np.diff(graph.neighbor_ptr))
    kept_edges = share(np.stack([heads, graph.neighbors], axis=1), node_parts)
    assert quality.edge_cut == (None if kept_edges is None else pytest.approx(1 - kept_edges))
    assert quality.triples_kept == share(task.triples[:, (0, 2)], parts)
    assert quality.train_kept == share(task.train_links, parts)
    assert quality.valid_kept == share(task.valid_links, parts)
    assert quality.test_kept == share(task.test_links, parts) == share_kept(task.test_links, partition)
    assert quality.num_uncovered == task.num_entities - len(set().union(*parts))
    assert quality.source_sizes == tuple(sum(e < task.num_source_entities for e in part) for part in parts)


def share(pairs: IntArray, parts: list[set[int]]) -> float | None:
    together = [any(a in part and b in part for part in parts) for a, b in pairs.tolist()]
    return sum(together) / len(together) if together else None


def test_landmarks_never_lower_a_share() -> None:
    rng = np.random.default_rng(3)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 200, (500, 2)) if a != b]
    task = make_task(200, 50, edges, [(i, 200 + i) for i in range(50)])
    graph, before = merge(task), Partition.from_labels(np.arange(250) % 5, 5)
    after = add_landmarks(graph, before, task.train_links, 90)
    low, high = measure_quality(task, graph, before), measure_quality(task, graph, after, before)
    assert low.triples_kept is not None
    assert high.triples_kept is not None
    assert high.triples_kept > low.triples_kept
    assert high.num_landmarks == (40,) * 5
