"""Partial transport by hand and against slow sums; products over edges, which are scipy's to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.machine import pieces
from largegnn.matching.edge_transport import EdgeKernel, partial_plan
from tests.matching.slow_support import Edge, certain_slowly

edges = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(5, 9)), st.floats(-1, 1, width=32), min_size=1, max_size=15
)


def graph_of(scores: dict[Edge, float]) -> tuple[CandidateGraph, FloatArray]:
    ends = np.array(sorted(scores), dtype=np.int32).reshape(-1, 2)
    return CandidateGraph(ends[:, 0], ends[:, 1]), np.array([scores[edge] for edge in sorted(scores)], np.float32)


@given(scores=edges, steps=st.integers(1, 6))
def test_the_plan_is_its_definition(scores: dict[Edge, float], steps: int) -> None:
    graph, values = graph_of(scores)
    before = values.copy()
    found = partial_plan(graph, values, 0.05, steps)
    expected = certain_slowly({edge: 2 * score for edge, score in scores.items()}, 0.05, steps)
    assert found.dtype == np.float32
    assert np.exp(found).tolist() == pytest.approx([expected[edge] for edge in sorted(scores)], abs=1e-5)
    assert np.array_equal(values, before)


@given(scores=edges)
def test_an_entity_has_at_most_one_counterpart(scores: dict[Edge, float]) -> None:
    graph, values = graph_of(scores)
    plan = np.exp(partial_plan(graph, values, iterations=200))
    for ends in (graph.sources, graph.targets):
        assert np.bincount(ends, plan).max() <= 1.001


def test_none_is_a_rival_like_any_other() -> None:
    """One pair at the score of no counterpart: with p for the pair, 1 - p are left at either end; p = (1 - p)^2."""
    graph, values = graph_of({(0, 1): 0.3})
    (found,) = np.exp(partial_plan(graph, values, 0.1, 200, none=0.3)).tolist()
    assert found == pytest.approx((3 - 5**0.5) / 2, abs=1e-4)
    (sure,) = np.exp(partial_plan(graph, values, 0.1, 2000, none=-3.0)).tolist()
    assert sure > 0.99
    (hopeless,) = np.exp(partial_plan(graph, values, 0.1, 200, none=3.0)).tolist()
    assert hopeless < 1e-6


def test_the_plan_holds_as_many_as_there_are_links() -> None:
    rng = np.random.default_rng(0)
    scores = {(s, t + 40): float(rng.normal(0.1, 0.1)) for s in range(40) for t in range(40)}
    graph, values = graph_of(scores)
    for number in (10, 20, 30):
        held = np.exp(partial_plan(graph, values, iterations=200, num_links=number)).sum()
        assert held == pytest.approx(number, rel=0.02)
    all_of_them = np.exp(partial_plan(graph, values, iterations=200, num_links=1e9))
    assert 35 < all_of_them.sum() <= 40.1, "more than there can be"


def test_scores_of_any_size() -> None:
    graph, values = graph_of({(0, 5): 300.0, (0, 6): -300.0, (1, 5): 1.0, (1, 6): 0.5})
    found = partial_plan(graph, values, 0.001)
    assert bool(np.isfinite(found).all())
    assert found[0] > -1
    assert found[1] < -1000
    empty = partial_plan(CandidateGraph(np.empty(0), np.empty(0)), np.empty(0, dtype=np.float32))
    assert empty.shape == (0,)


@pytest.mark.parametrize("size", [1, 7, 1 << 14])
def test_products_are_those_of_scipy_to_the_bit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(pieces, "_SMALL", size)
    monkeypatch.setattr("largegnn.matching.edge_transport.num_processors", lambda: 3)
    rng = np.random.default_rng(5)
    matrix: Any = sparse.random_array((60, 40), density=0.2, format="csr", rng=rng)
    kernel = EdgeKernel(matrix.data, matrix.indptr, matrix.indices, 40)
    columns, rows = rng.standard_normal(40), rng.standard_normal(60)
    assert np.array_equal(kernel.times_columns(columns), matrix @ columns)
    assert np.array_equal(kernel.times_rows(rows), matrix.T @ rows)
    kernel.set_values(2 * matrix.data)
    assert np.array_equal(kernel.times_rows(rows), (2 * matrix).T @ rows)


def test_columns_may_begin_anywhere_and_values_be_short() -> None:
    """Values of float32 are summed in float64; columns are numbered from 1,000 on."""
    rng = np.random.default_rng(6)
    matrix: Any = sparse.random_array((30, 20), density=0.3, format="csr", rng=rng)
    matrix.data = matrix.data.astype(np.float32)
    kernel = EdgeKernel(matrix.data, matrix.indptr, matrix.indices + 1000, 20, 1000)
    wide = matrix.astype(np.float64)
    columns, rows = rng.standard_normal(20), rng.standard_normal(30)
    assert np.array_equal(kernel.times_columns(columns), wide @ columns)
    assert np.array_equal(kernel.times_rows(rows), wide.T @ rows)


def test_nothing_gives_nothing() -> None:
    kernel = EdgeKernel(np.empty(0), np.zeros(4, dtype=np.int64), np.empty(0, dtype=np.int32), 2)
    assert kernel.times_columns(np.ones(2)).tolist() == [0.0, 0.0, 0.0]
    assert kernel.times_rows(np.ones(3)).tolist() == [0.0, 0.0]
