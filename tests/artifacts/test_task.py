"""Test tasks and tables of strings: invalid arrays, held-out anchors, look-ups."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, StringTable
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
def test_a_task_refuses_invalid_arrays(toy_task: AlignmentTask, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(toy_task, **{field: value})  # type: ignore[arg-type]


def test_arrays_are_read_only_and_those_of_the_caller_stay_writable(toy_task: AlignmentTask) -> None:
    with pytest.raises(ValueError, match="read-only"):
        toy_task.triples[0, 0] = 1
    array = np.zeros((1, 2), dtype=np.int32)
    array[0, 1] = 5
    dataclasses.replace(toy_task, train_links=array)
    array[0, 1] = 6  # the array of the caller is not changed


def test_string_tables() -> None:
    table = StringTable.from_strings(["a", "", "é漢", "d"])
    assert len(table) == 4
    assert [table[index] for index in range(4)] == list(table) == ["a", "", "é漢", "d"]
    assert table.take([2, 0]) == ["é漢", "a"]
    with pytest.raises(IndexError):
        table[4]


def test_anchors_are_held_out_where_few_valid_links_are_given() -> None:
    """With 3 valid links every tenth anchor becomes one; with 30 no anchor does."""
    ids = np.arange(200)
    links = np.stack([ids, ids + 200], axis=1)
    task = AlignmentTask(200, 200, 1, 1, np.array([[0, 0, 1], [200, 1, 201]]), links[:5], links[5:8], links[:0])
    few = task.with_anchors(links[100:200])
    assert few.valid_links.tolist() == [*links[5:8].tolist(), *links[100:200:10].tolist()]
    assert len(few.anchors) == 90
    enough = dataclasses.replace(task, valid_links=links[5:35]).with_anchors(links[100:200])
    assert enough.valid_links.tolist() == links[5:35].tolist()
    assert len(enough.anchors) == 100


def test_take_by_hand() -> None:
    table = StringTable.from_strings(["a", "", "é😀", "b"])
    assert table.take([2, 0, 2, 1]) == ["é😀", "a", "é😀", ""]
    assert table.take(np.array([3], dtype=np.int32)) == ["b"]
    assert table.take(range(4)) == list(table)
    assert table.take([]) == []
    assert StringTable.from_strings([]).take([]) == []
    for wrong in ([4], [0, -1]):
        with pytest.raises(IndexError):
            table.take(wrong)


def test_take_reads_only_the_wanted_strings() -> None:
    """A look-up in a table of millions must not copy it."""

    class Guarded(np.ndarray[tuple[int, ...], np.dtype[np.uint8]]):
        def tobytes(self, order: object = None) -> bytes:
            raise AssertionError("the whole table was copied")

    table = StringTable.from_strings(["a"] * 1000)
    object.__setattr__(table, "data", table.data.view(Guarded))
    assert table.take([999]) == ["a"]
