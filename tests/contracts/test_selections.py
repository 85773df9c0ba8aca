"""What every entry of `SELECTIONS` promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.matching.candidates import edge_ranks
from largegnn.matching.selection import SELECTIONS, mutual_top1
from tests.matching.random_candidates import edges_of, scored_graphs

every_selection = pytest.mark.parametrize("name", sorted(SELECTIONS))


@every_selection
@given(drawn=scored_graphs(), k=st.integers(1, 6))
def test_gives_distinct_edges_in_order_within_k(name: str, drawn: tuple[CandidateGraph, FloatArray], k: int) -> None:
    graph, scores = drawn
    before = scores.copy()
    selected = SELECTIONS[name](graph, scores, k)
    assert selected.dtype.kind == "i"
    assert bool(np.all(np.diff(selected) > 0))
    assert bool(np.all((selected >= 0) & (selected < len(graph))))
    best = np.minimum(*edge_ranks(graph, scores))
    assert bool(np.all(best[selected] <= k))
    assert np.array_equal(scores, before)
    assert np.array_equal(SELECTIONS[name](graph, scores, k), selected), "the same every time"
    known = edge_ranks(graph, scores)
    assert np.array_equal(SELECTIONS[name](graph, scores, k, known), selected), "with ranks that are known already"


@every_selection
@given(drawn=scored_graphs())
def test_with_one_candidate_for_each_no_entity_is_selected_twice(
    name: str, drawn: tuple[CandidateGraph, FloatArray]
) -> None:
    graph, scores = drawn
    selected = edges_of(graph, SELECTIONS[name](graph, scores, 1))
    for side in (0, 1):
        ends = [edge[side] for edge in selected]
        assert len(set(ends)) == len(ends)


@every_selection
@given(drawn=scored_graphs(), k=st.integers(1, 6))
def test_selects_no_less_than_the_pairs_both_ends_prefer(
    name: str, drawn: tuple[CandidateGraph, FloatArray], k: int
) -> None:
    graph, scores = drawn
    assert len(SELECTIONS[name](graph, scores, k)) >= len(mutual_top1(graph, scores))


@every_selection
def test_nothing_of_nothing(name: str) -> None:
    none = np.empty(0, dtype=np.float32)
    selected = SELECTIONS[name](CandidateGraph(none, none), none, 5)
    assert selected.shape == (0,)
    assert selected.dtype.kind == "i"
