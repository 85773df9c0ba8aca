"""Neighbours, alignments and pairs as numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import REASONS, Alignment, Neighbors, are_among, pair_keys
from largegnn.errors import ArtifactError

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(7, 2**31 - 1) | st.integers(7, 12)), max_size=12)


def rows(pairs: list[tuple[int, int]]) -> Any:
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


@given(pairs=PAIRS, links=PAIRS)
def test_pairs_among_links_as_among_sets(pairs: list[tuple[int, int]], links: list[tuple[int, int]]) -> None:
    assert are_among(rows(pairs), rows(links)).tolist() == [pair in set(links) for pair in pairs]


@given(pairs=PAIRS)
def test_keys_are_in_the_order_of_pairs_and_tell_them_apart(pairs: list[tuple[int, int]]) -> None:
    keys = pair_keys(rows(pairs)).tolist()
    assert [pair for _, pair in sorted(zip(keys, pairs, strict=True))] == sorted(pairs)
    assert len(set(keys)) == len(set(pairs))


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
def test_neighbors_refuse_a_wrong_state(neighbors: Neighbors, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(neighbors, **{field: value})  # type: ignore[arg-type]


@pytest.fixture
def alignment() -> Alignment:
    """Source 0 prefers 3 to 4; 3 is 0's, 4 would rather have 1."""
    numbers = np.array([0.9, 0.5, 0.8], dtype=np.float32)
    return Alignment(
        pairs=np.array([(0, 3), (0, 4), (1, 4)]),
        columns=("cosine", "support"),
        evidence=np.stack([numbers, 10 * numbers]),
        scores=numbers,
        margins=numbers,
        source_ranks=np.array([1, 2, 1]),
        target_ranks=np.array([1, 40_000, 1]),
        confidence=numbers,
        accepted=np.array([True, False, True]),
        reasons=np.array([0, 0, 4, 0, 0]),
    )


def test_an_alignment(alignment: Alignment) -> None:
    assert alignment.mutual.tolist() == [True, False, True]
    assert alignment.target_ranks.tolist() == [1, 40_000, 1], "a hub has more suitors than two bytes can count"
    assert alignment.column("cosine").tolist() == pytest.approx([0.9, 0.5, 0.8])
    assert alignment.column("support").tolist() == pytest.approx([9, 5, 8])
    with pytest.raises(ArtifactError, match="no evidence 'name', only cosine, support"):
        alignment.column("name")
    with pytest.raises(ValueError, match="read-only"):
        alignment.accepted[0] = False


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pairs", np.array([0, 3]), "pairs has shape"),
        ("pairs", np.array([(0, 3)]), "evidence has shape"),
        ("evidence", np.zeros((2, 2)), "evidence has shape"),
        ("evidence", np.zeros((3, 2)), "evidence has shape"),
        ("evidence", np.zeros(6), "evidence has shape"),
        ("columns", ("cosine",), "evidence has shape"),
        *[(name, np.zeros(2), name) for name in ("scores", "margins", "confidence")],
        *[(name, np.ones(4), name) for name in ("source_ranks", "target_ranks", "accepted")],
        ("reasons", np.array([len(REASONS)]), "unknown reason"),
        ("reasons", np.zeros((2, 2)), "reasons has shape"),
    ],
)
def test_an_alignment_refuses_a_wrong_state(alignment: Alignment, field: str, value: object, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        dataclasses.replace(alignment, **{field: value})  # type: ignore[arg-type]
