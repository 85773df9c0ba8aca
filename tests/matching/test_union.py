"""Candidates with more pairs against dictionaries of edges, however they are cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph
from largegnn.matching.union import grown_by, joined_with
from tests.artifacts.test_candidates import Edge, edges_of, make, rows


def test_a_join_by_hand() -> None:
    """(0, 7) is there, (0, 6) comes twice, (4, 5) is new."""
    graph = make({(0, 5): (0.5, 1), (0, 7): (0.25, 2), (3, 5): (0.75, 3)})
    joined, is_new = grown_by(graph, rows([(4, 5), (0, 6), (0, 7), (0, 6)]), missing=-1.0)
    assert joined.pairs().tolist() == [[0, 5], [0, 6], [0, 7], [3, 5], [4, 5]]
    assert is_new.tolist() == [False, True, False, False, True]
    assert joined.column("cosine").tolist() == [0.5, -1, 0.25, 0.75, -1]
    assert joined.column("name").tolist() == [1, -1, 2, 3, -1]
    assert joined_with(graph, rows([(1, 5)])).column("name").tolist() == [1, 2, 0, 3], "nothing known is 0"


@given(
    edges=st.dictionaries(st.tuples(st.integers(0, 4), st.integers(5, 9)), st.tuples(*[st.integers(-8, 8)] * 2)),
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(5, 9) | st.just(2**31 - 1)), max_size=12),
    is_by_source=st.booleans(),
)
def test_a_join_is_the_union(edges: dict[Edge, tuple[float, float]], pairs: list[Edge], is_by_source: bool) -> None:
    before = {edge: {"cosine": float(cosine), "name": float(name)} for edge, (cosine, name) in edges.items()}
    unknown = {edge: {"cosine": 0.5, "name": 0.5} for edge in pairs}
    given_pairs = sorted(pairs, key=lambda pair: pair[0]) if is_by_source else pairs
    joined, is_new = grown_by(make(edges), rows(given_pairs), 0.5)
    assert edges_of(joined) == unknown | before
    assert [tuple(pair) for pair in joined.pairs()[is_new].tolist()] == sorted(set(pairs) - set(edges))


def test_nothing_joined_with_nothing() -> None:
    nothing = CandidateGraph(np.empty(0), np.empty(0), {"cosine": np.empty(0, dtype=np.float32)})
    joined = joined_with(nothing, rows([]))
    assert len(joined) == 0
    assert joined.pairs().shape == (0, 2)
    assert joined.column("cosine").shape == (0,)
    assert joined_with(nothing, rows([(1, 5)])).pairs().tolist() == [[1, 5]]
