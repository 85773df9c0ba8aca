"""Test the neighbours that a search finds: queries with a neighbour, and their rows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import Neighbors, SearchRecord
from largegnn.errors import ArtifactError

NOTHING = -np.inf


def make(ids: dict[int, list[int]], k: int) -> Neighbors:
    """Queries with their neighbours, whose scores are 1, 1/2, 1/3 and so on; missing neighbours have the id -1."""
    queries = sorted(ids)
    rows = np.full((len(queries), k), -1)
    scores = np.full((len(queries), k), NOTHING, dtype=np.float32)
    for row, query in enumerate(queries):
        number = len(ids[query])
        rows[row, :number] = ids[query]
        scores[row, :number] = 1 / np.arange(1, number + 1)
    return Neighbors(np.array(queries), rows, scores, SearchRecord("flat", num_float64=3))


def test_answered_by_hand() -> None:
    """The search for query 4 found nothing."""
    found = make({2: [20, 21], 4: [], 9: [22]}, 2)
    answered = found.answered()
    assert answered.queries.tolist() == [2, 9]
    assert answered.ids.tolist() == [[20, 21], [22, -1]]
    assert answered.scores.tolist() == [[1, 0.5], [1, NOTHING]]
    assert answered.record == SearchRecord("flat", num_float64=3), "the record of the search is kept"
    assert answered.answered() is answered, "no copy if every query has a neighbour"
    assert found.queries.tolist() == [2, 4, 9]


def test_a_query_with_a_neighbour_after_a_gap_is_kept() -> None:
    found = Neighbors(np.array([1]), np.array([[-1, 7]]), np.array([[NOTHING, 0.5]]))
    assert found.answered() is found


def test_no_queries_or_no_neighbours() -> None:
    none = make({}, 3)
    assert none.answered().ids.shape == (0, 3)
    silent = make({1: [], 2: []}, 3).answered()
    assert silent.ids.shape == silent.scores.shape == (0, 3)
    assert silent.k == 3
    assert silent.row_of(np.array([1, 2])).tolist() == [-1, -1]


@given(
    drawn=st.dictionaries(st.integers(0, 9), st.lists(st.integers(10, 19), unique=True, max_size=3)),
    wanted=st.lists(st.integers(-1, 11), max_size=6),
)
def test_answered_and_row_of_as_in_a_dictionary(drawn: dict[int, list[int]], wanted: list[int]) -> None:
    found = make(drawn, 3)
    queries = sorted(drawn)
    assert found.row_of(np.array(wanted, dtype=np.int64)).tolist() == [
        queries.index(entity) if entity in drawn else -1 for entity in wanted
    ]
    answered = found.answered()
    assert answered.queries.tolist() == [query for query in queries if drawn[query]]
    for query, ids, scores in zip(answered.queries.tolist(), answered.ids, answered.scores, strict=True):
        assert ids[ids >= 0].tolist() == drawn[query]
        assert scores[ids >= 0].tolist() == pytest.approx([1 / (number + 1) for number in range(len(drawn[query]))])


@pytest.fixture
def neighbors() -> Neighbors:
    return Neighbors(np.array([2, 5, 9]), np.array([[20, 21], [21, -1], [20, 22]]), np.array([[1, 0.5]] * 3))


def test_neighbors(neighbors: Neighbors) -> None:
    assert neighbors.k == 2
    assert neighbors.row_of(np.array([9, 2, 3, 0, 10])).tolist() == [2, 0, -1, -1, -1]
    assert neighbors.scores.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        neighbors.ids[0, 0] = 1
    empty = Neighbors(np.empty(0), np.empty((0, 4)), np.empty((0, 4), dtype=np.float32))
    assert empty.k == 4
    assert empty.row_of(np.array([3])).tolist() == [-1]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("queries", np.array([2, 9, 5]), "ascending"),
        ("queries", np.array([2, 5, 5]), "ascending"),
        ("queries", np.array([2, 5]), "ids has shape"),
        ("ids", np.array([20, 21, 22]), "ids has shape"),
        ("scores", np.zeros((3, 3)), "scores has shape"),
    ],
)
def test_neighbors_refuse_invalid_fields(neighbors: Neighbors, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(neighbors, **{field: value})  # type: ignore[arg-type]
