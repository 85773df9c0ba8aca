from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, MergedGraph, Partition, StringTable, Subgraph
from largegnn.errors import ArtifactError


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("triples", np.array([(0, 0, 99)]), "allowed 0..10"),
        ("triples", np.array([(0, 0, 5)]), "joins a source entity with a target entity"),
        ("triples", np.array([(0, 3, 1)]), "relation of the other side"),
        ("triples", np.array([(0, 0)]), "shape"),
        ("train_links", np.array([(5, 0)]), "allowed 0..4"),
        ("test_links", np.array([(0, 4)]), "allowed 5..10"),
    ],
)
def test_a_task_refuses_a_wrong_state(toy_task: AlignmentTask, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(toy_task, **{field: value})  # type: ignore[arg-type]


def test_nobody_can_change_what_another_made(toy_task: AlignmentTask) -> None:
    with pytest.raises(ValueError, match="read-only"):
        toy_task.triples[0, 0] = 1
    array = np.zeros((1, 2), dtype=np.int32)
    array[0, 1] = 5
    dataclasses.replace(toy_task, train_links=array)
    array[0, 1] = 6  # the caller's own array stays the caller's


def test_graphs_and_partitions_refuse_a_wrong_state() -> None:
    with pytest.raises(ArtifactError, match="climb from 0"):
        MergedGraph(np.array([0, 1]), np.array([0, 2, 1]), np.array([1]), np.array([1]), np.array([1, 1]))
    with pytest.raises(ArtifactError, match="add up"):
        MergedGraph(np.array([0, 1]), np.array([0, 1, 2]), np.array([1, 0]), np.array([1, 1]), np.array([1, 2]))
    assert Partition(5, np.array([0, 3, 1, 3, 4]), np.array([0, 2, 2, 5])).sizes.tolist() == [2, 0, 3]
    with pytest.raises(ArtifactError, match="strictly ascending"):
        Partition(5, np.array([0, 3, 3]), np.array([0, 3]))
    with pytest.raises(ArtifactError, match="allowed 0"):
        Partition(5, np.array([0, 5]), np.array([0, 2]))
    with pytest.raises(ArtifactError, match="local ids"):
        Subgraph(np.array([3, 7]), np.array([(0, 0, 2)]), np.empty((0, 2)))


def test_string_tables() -> None:
    table = StringTable.from_strings(["a", "", "é漢", "d"])
    assert len(table) == 4
    assert [table[index] for index in range(4)] == list(table) == ["a", "", "é漢", "d"]
    assert table.take([2, 0]) == ["é漢", "a"]
    with pytest.raises(IndexError):
        table[4]


def test_anchors_are_held_out_where_few_valid_links_are_given() -> None:
    """A handful of valid links is joined by every tenth anchor, surest first; thirty stand for themselves."""
    ids = np.arange(200)
    links = np.stack([ids, ids + 200], axis=1)
    task = AlignmentTask(200, 200, 1, 1, np.array([[0, 0, 1], [200, 1, 201]]), links[:5], links[5:8], links[:0])
    few = task.with_anchors(links[100:200])
    assert few.valid_links.tolist() == [*links[5:8].tolist(), *links[100:200:10].tolist()]
    assert len(few.anchors) == 90
    enough = dataclasses.replace(task, valid_links=links[5:35]).with_anchors(links[100:200])
    assert enough.valid_links.tolist() == links[5:35].tolist()
    assert len(enough.anchors) == 100
