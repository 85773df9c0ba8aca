"""Transport against slow references: logsumexp in float64 step by step, and sums over edges; products are scipy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as matrices
from scipy.special import logsumexp

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.errors import ArtifactError
from largegnn.machine import pieces
from largegnn.matching import transport
from largegnn.matching.transport import EdgeKernel, partial_plan, transport_dense, transport_edges
from tests.matching.slow_support import Edge, certain_slowly

Matrix = npt.NDArray[np.float32]


def reference(scores: Matrix, temperature: float, iterations: int) -> npt.NDArray[np.float64]:
    """The log-plan of (q, c); rows and columns of -inf are taken out and put back."""
    result = np.full(scores.shape, -np.inf)
    place = np.ix_((scores > -np.inf).any(1), (scores > -np.inf).any(0))
    logits = scores[place].astype(np.float64) / temperature
    columns = np.zeros((1, logits.shape[1]))
    rows = np.zeros((logits.shape[0], 1))
    for _ in range(iterations if logits.size else 0):
        rows = -np.asarray(logsumexp(logits + columns, axis=1, keepdims=True))
        columns = -np.asarray(logsumexp(logits + rows, axis=0, keepdims=True))
    result[place] = logits + rows + columns
    return result


def dense(scores: Matrix, temperature: float = 0.02, iterations: int = 30) -> Matrix:
    plan = torch.from_numpy(scores.copy())
    transport_dense(plan, temperature, iterations)
    result: Matrix = plan.numpy()
    return result


def sparse(scores: Matrix, temperature: float = 0.02, iterations: int = 30) -> Matrix:
    """Over the edges that are not -inf."""
    rows, cols = np.nonzero(scores > -np.inf)
    plan = np.full_like(scores, -np.inf)
    plan[rows, cols] = transport_edges(rows, cols, scores[rows, cols], scores.shape, temperature, iterations)
    return plan


def cosines(num_rows: int, num_columns: int, seed: int, dim: int = 6) -> Matrix:
    generator = np.random.default_rng(seed)
    ends = [generator.standard_normal((n, dim)) for n in (num_rows, num_columns)]
    left, right = (e / np.linalg.norm(e, axis=1, keepdims=True) for e in ends)
    scores: Matrix = (left @ right.T).astype(np.float32)
    return scores


def assert_same(plan: Matrix, expected: npt.NDArray[np.float64], atol: float = 2e-4) -> None:
    """Equal values, and nothing better than the best of a row or column beyond rounding."""
    assert not np.isnan(plan).any()
    np.testing.assert_allclose(plan, expected, rtol=2e-6, atol=atol)
    for axis in (0, 1):
        best = np.take_along_axis(expected, plan.argmax(axis, keepdims=True), axis)
        top = expected.max(axis, keepdims=True)
        np.testing.assert_allclose(best, top, rtol=2e-6, atol=2 * atol)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.sampled_from([0.005, 0.01, 0.02, 0.1, 1.0]),
    st.integers(1, 40),
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.3, 0.9]),
)
def test_any_shape_equals_the_reference(
    num_rows: int, num_columns: int, temperature: float, iterations: int, seed: int, missing: float
) -> None:
    scores = cosines(num_rows, num_columns, seed)
    scores[np.random.default_rng(seed).random(scores.shape) < missing] = -np.inf
    expected = reference(scores, temperature, iterations)
    assert_same(dense(scores, temperature, iterations), expected)
    assert_same(sparse(scores, temperature, iterations), expected)


@pytest.mark.parametrize("temperature", [0.005, 0.02, 0.05])
@pytest.mark.parametrize("shape", [(200, 200), (150, 260), (260, 150)])
def test_ranks_equal_those_of_the_reference(
    shape: tuple[int, int], temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(transport._CHUNK_BYTES, "cpu", 4 * shape[1] * 37)  # several pieces, the last one short
    scores = cosines(*shape, seed=3, dim=12)
    expected = reference(scores, temperature, 30)
    for plan in (dense(scores, temperature), sparse(scores, temperature)):
        assert_same(plan, expected)
        for axis in (0, 1):
            second, first = np.partition(expected, -2, axis=axis).take([-2, -1], axis=axis).swapaxes(0, axis)
            clear = first - second > 1e-4  # a row that owns two columns outright has no best among them
            assert clear.mean() > 0.95
            np.testing.assert_array_equal(plan.argmax(axis)[clear], expected.argmax(axis)[clear])


def test_large_factors_become_a_part_of_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = cosines(40, 30, seed=8)
    monkeypatch.setattr(transport, "_MAX_LOG_FACTOR", 1.0)
    assert_same(dense(scores), reference(scores, 0.02, 30))
    assert_same(sparse(scores), reference(scores, 0.02, 30))


def test_a_hub_gives_way() -> None:
    """Column 0 is the best of both rows, by more for row 0; then row 1 is left with column 1."""
    scores = np.array([[0.9, 0.5], [0.9, 0.8]], dtype=np.float32)
    assert scores.argmax(1).tolist() == [0, 0]
    assert dense(scores).argmax(1).tolist() == [0, 1]
    assert sparse(scores).argmax(1).tolist() == [0, 1]


def test_equal_scores_stay_equal() -> None:
    plan = dense(np.full((7, 7), 0.3, dtype=np.float32))
    np.testing.assert_allclose(plan, -np.log(7), atol=1e-6)
    assert np.ptp(plan) == 0
    np.testing.assert_allclose(sparse(np.full((7, 7), 0.3, dtype=np.float32)), -np.log(7), atol=1e-6)


@pytest.mark.parametrize("temperature", [0.005, 0.02])
@pytest.mark.parametrize("axis", [0, 1])
def test_one_node_far_from_everything(axis: int, temperature: float) -> None:
    scores = 0.8 + 0.2 * cosines(30, 30, seed=1)
    np.moveaxis(scores, axis, 0)[4] = -1.0 + 0.001 * np.arange(30)
    expected = reference(scores, temperature, 30)
    assert_same(dense(scores, temperature), expected)
    assert_same(sparse(scores, temperature), expected)


@pytest.mark.parametrize("contrast", [1e2, 1e4])
def test_huge_contrast(contrast: float) -> None:
    """Scores of thousands, at 0.02: differences of 1e6 in the exponent, of which float32 keeps six digits."""
    scores = (contrast * cosines(25, 25, seed=2)).astype(np.float32)
    scores[3] -= np.float32(contrast)
    expected = reference(scores, 0.02, 30)
    spread = float(np.abs(expected).max())
    assert_same(dense(scores), expected, atol=2e-6 * spread)
    assert_same(sparse(scores), expected, atol=2e-6 * spread)


def test_conflict_beyond_the_kernel() -> None:
    """All rows want one column and only the next best, far below e^-86, tells them apart."""
    scores = np.where(np.eye(12, dtype=bool), -3.0, -4.0).astype(np.float32)
    scores[:, 0] = 1.0
    expected = reference(scores, 0.02, 30)
    assert_same(dense(scores), expected)
    assert_same(sparse(scores), expected)
    assert dense(scores)[1:].argmax(1).tolist() == list(range(1, 12))


def test_nodes_without_candidates_are_left_out() -> None:
    scores = cosines(9, 8, seed=4)
    scores[2], scores[:, 5] = -np.inf, -np.inf
    for plan in (dense(scores), sparse(scores), dense(scores, 0.001)):
        assert np.isneginf(plan[2]).all()
        assert np.isneginf(plan[:, 5]).all()
        assert np.isfinite(np.delete(np.delete(plan, 2, 0), 5, 1)).all()
    assert_same(dense(scores), reference(scores, 0.02, 30))
    nothing = np.full((3, 4), -np.inf, dtype=np.float32)
    assert np.isneginf(dense(nothing)).all()
    rows, cols = np.nonzero(nothing < 0)
    assert np.isneginf(transport_edges(rows, cols, nothing.ravel(), (3, 4))).all()


def test_nothing_and_one_node() -> None:
    none = np.empty(0, dtype=np.int64)
    assert transport_edges(none, none, np.empty(0, dtype=np.float32), (3, 4)).shape == (0,)
    assert transport_edges(none, none, np.empty(0, dtype=np.float32), (0, 0)).shape == (0,)
    for shape in ((0, 0), (0, 3), (3, 0)):
        assert dense(np.empty(shape, dtype=np.float32)).shape == shape
    one = np.array([[0.4]], dtype=np.float32)
    np.testing.assert_allclose(dense(one), 0.0, atol=1e-6)
    np.testing.assert_allclose(sparse(one), 0.0, atol=1e-6)
    for shape in ((1, 500), (500, 1)):
        scores = cosines(*shape, seed=6)
        assert_same(dense(scores), reference(scores, 0.02, 30))
        assert_same(sparse(scores), reference(scores, 0.02, 30))


def test_a_view_with_strides() -> None:
    scores = cosines(12, 9, seed=9)
    plan = torch.from_numpy(scores.T.copy()).T
    transport_dense(plan)
    assert_same(plan.numpy(), reference(scores, 0.02, 30))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_none_are_refused(bad: float) -> None:
    scores = np.array([[0.1, bad]], dtype=np.float32)
    with pytest.raises(ArtifactError, match="NaN or infinite"):
        dense(scores)
    with pytest.raises(ArtifactError, match="NaN or infinite"):
        transport_edges(np.array([0, 0]), np.array([0, 1]), scores[0], (1, 2))


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
    for score, low, high in ((0.0, 0.38196, 0.38198), (3.0, 0.99, 1.0), (-3.0, 0.0, 1e-6)):
        graph, values = graph_of({(0, 1): score})
        (found,) = np.exp(partial_plan(graph, values, 0.1, 2000)).tolist()
        assert low <= found <= high


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
    monkeypatch.setattr(pieces, "_MIN_ROWS", size)
    monkeypatch.setattr("largegnn.matching.transport.num_processors", lambda: 3)
    rng = np.random.default_rng(5)
    matrix: Any = matrices.random_array((60, 40), density=0.2, format="csr", rng=rng)
    kernel = EdgeKernel(matrix.data, matrix.indptr, matrix.indices, 40)
    columns, rows = rng.standard_normal(40), rng.standard_normal(60)
    assert np.array_equal(kernel.times_columns(columns), matrix @ columns)
    assert np.array_equal(kernel.times_rows(rows), matrix.T @ rows)
    kernel.set_values(2 * matrix.data)
    assert np.array_equal(kernel.times_rows(rows), (2 * matrix).T @ rows)


def test_columns_may_begin_anywhere_and_values_be_short() -> None:
    """Values of float32 are summed in float64; columns are numbered from 1,000 on."""
    rng = np.random.default_rng(6)
    matrix: Any = matrices.random_array((30, 20), density=0.3, format="csr", rng=rng)
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
