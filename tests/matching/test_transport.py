"""Transport against a slow reference: logsumexp in float64, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from largegnn.errors import ArtifactError
from largegnn.matching import edge_transport, transport
from largegnn.matching.edge_transport import transport_edges
from largegnn.matching.transport import transport_dense

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
    plan: Matrix = transport_dense(torch.from_numpy(scores.copy()), temperature, iterations).numpy()
    return plan


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


def test_kernel_and_logarithms_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast way, the one without it, and a change from one to the other after some steps."""
    scores = cosines(60, 90, seed=5)
    expected = reference(scores, 0.02, 30)
    steps: list[str] = []
    switch_after = 0

    def noted(name: str) -> Callable[..., torch.Tensor]:
        step = getattr(transport, name)

        def run(*arguments: object) -> torch.Tensor:
            steps.append(name)
            if len(steps) == switch_after:
                monkeypatch.setattr(transport, "_FARTHEST", 0.0)
            result: torch.Tensor = step(*arguments)
            return result

        return run

    for name in ("_step_with_kernel", "_step_with_logarithms"):
        monkeypatch.setattr(transport, name, noted(name))
    assert_same(dense(scores), expected)
    assert set(steps) == {"_step_with_kernel"}
    steps.clear()
    switch_after = 5
    assert_same(dense(scores), expected)
    assert steps == ["_step_with_kernel"] * 5 + ["_step_with_logarithms"] * 24
    monkeypatch.setattr(transport, "_LOWEST", 0.0)
    steps.clear()
    assert_same(dense(scores), expected)
    assert set(steps) == {"_step_with_logarithms"}


def test_sparse_moves_far_duals_into_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = cosines(40, 30, seed=8)
    monkeypatch.setattr(edge_transport, "_FARTHEST", 1.0)
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


def test_arguments_stay_as_they_were() -> None:
    scores = cosines(5, 6, seed=7)
    given = torch.from_numpy(scores.copy())
    transport_dense(given)
    np.testing.assert_array_equal(given.numpy(), scores)
    rows, cols, edges = np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.7])
    transport_edges(rows, cols, edges, (2, 1))
    assert edges.tolist() == [0.5, 0.7]


def test_a_view_with_strides() -> None:
    scores = cosines(12, 9, seed=9)
    assert_same(transport_dense(torch.from_numpy(scores.T.copy()).T).numpy(), reference(scores, 0.02, 30))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_none_are_refused(bad: float) -> None:
    scores = np.array([[0.1, bad]], dtype=np.float32)
    with pytest.raises(ArtifactError, match="NaN or infinite"):
        dense(scores)
    with pytest.raises(ArtifactError, match="NaN or infinite"):
        transport_edges(np.array([0, 0]), np.array([0, 1]), scores[0], (1, 2))


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ArtifactError, match="float32 matrix"):
        transport_dense(torch.zeros(2, 2, dtype=torch.float64))
    with pytest.raises(ArtifactError, match="temperature 0"):
        transport_dense(torch.zeros(2, 2), temperature=0.0)
    with pytest.raises(ArtifactError, match="0 iterations"):
        transport_dense(torch.zeros(2, 2), iterations=0)
    edge, twice = np.array([0]), np.array([0, 0])
    with pytest.raises(ArtifactError, match="strictly ascending"):
        transport_edges(twice, twice, np.zeros(2), (2, 2))
    with pytest.raises(ArtifactError, match="leaves a side"):
        transport_edges(edge, np.array([2]), np.zeros(1), (2, 2))
    with pytest.raises(ArtifactError, match="rows, columns, scores"):
        transport_edges(edge, edge, np.zeros(2), (2, 2))
    with pytest.raises(ArtifactError, match="rows, columns, scores"):
        transport_edges(edge, twice, np.zeros(2), (2, 2))
