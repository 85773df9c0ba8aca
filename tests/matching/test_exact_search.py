"""The exact search: fast scores, exact scores, the proof that the fast ones missed nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from largegnn.artifacts import Neighbors
from largegnn.machine.precision import full_precision
from largegnn.matching import exact_search as module
from largegnn.matching.exact_search import FLOAT32, HALF, Precision, exact_search
from largegnn.matching.unit_rows import NO_KEY, UnitRows, pack, unpack

Array = npt.NDArray[Any]


def random_rows(num_rows: int, dim: int, seed: int) -> UnitRows:
    return UnitRows(np.random.default_rng(seed).standard_normal((num_rows, dim)).astype(np.float32))


def sort_all(queries: UnitRows, corpus: UnitRows, k: int) -> tuple[Array, Array]:
    """The k nearest by sorting all scores, in float64 from the unit rows rounded to float32."""
    rows, others = (side.piece(0, len(side)).double().numpy() for side in (queries, corpus))
    scores = (rows @ others.T).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def assert_exact(found: Neighbors, queries: UnitRows, corpus: UnitRows, k: int) -> None:
    indices, scores = sort_all(queries, corpus, k)
    np.testing.assert_array_equal(found.ids, indices)
    np.testing.assert_array_equal(found.scores, scores)


@pytest.mark.parametrize("half", [False, True])
def test_equals_sorting_all_scores(half: bool) -> None:
    """6,000 rows are 94 blocks, more than are kept, so the maxima of blocks are put to use."""
    queries, corpus = random_rows(70, 16, 0), random_rows(6000, 16, 1)
    assert_exact(exact_search(queries, corpus, 10, half=half), queries, corpus, 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("max_bytes", [4_000_000_000, 3_000_000])
def test_a_gpu_finds_the_same(half: bool, max_bytes: int) -> None:
    queries, corpus = random_rows(700, 48, 0), random_rows(20_000, 48, 1)
    found = exact_search(queries, corpus, 10, device="cuda", half=half, max_bytes=max_bytes)
    np.testing.assert_array_equal(found.ids, exact_search(queries, corpus, 10).ids)


@pytest.mark.parametrize("half", [False, True])
def test_tiles_and_chunks_change_nothing(half: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = random_rows(40, 8, 0), random_rows(3000, 8, 1)
    monkeypatch.setattr(module, "_LOAD_ROWS", 17)
    # The least memory: tiles of 512 rows, chunks of one query.
    found = exact_search(queries, corpus, 4, half=half, max_bytes=30_000)
    assert_exact(found, queries, corpus, 4)


def test_half_precision_alone_would_err() -> None:
    """Rows that differ by less than float16 can tell, each a little nearer to the query than the one before."""
    tilt = np.linspace(0.011, 0.01, 40)
    corpus = UnitRows(np.stack([np.cos(tilt), np.sin(tilt)], axis=1))
    query = UnitRows(np.array([[1.0, 0.0]]))
    room = torch.empty(1, 40, dtype=torch.float16)
    fast = HALF.best(module._to_half(query.piece(0, 1)), module._to_half(corpus.piece(0, 40)), 40, 3, room)[1]
    found = exact_search(query, corpus, 3, half=True)
    assert_exact(found, query, corpus, 3)
    assert set(fast[0].tolist()) != set(found.ids[0].tolist())
    # All 40 are among the candidates that are scored again, so nothing is left to doubt.
    assert (found.record.num_float32, found.record.num_float64) == (0, 0)


def test_what_half_precision_cannot_prove_is_searched_in_float32() -> None:
    """300 rows on a short arc: neighbours on it differ by less than float16 can tell, but not float32."""
    arc = 1 + np.linspace(0, 1, 300)[:, None] * np.array([[0.03, 0.01, 0.02]])
    corpus = UnitRows(np.random.default_rng(0).permutation(arc))
    queries = UnitRows(np.array([[1.0, 1.05, 0.95], [1.0, 0.9, 1.1]]))
    found = exact_search(queries, corpus, 3, half=True)
    assert_exact(found, queries, corpus, 3)
    assert (found.record.num_float32, found.record.num_float64) == (2, 0)


def test_only_doubtful_queries_are_searched_again() -> None:
    """A crowd of 200 about one axis, and 5 rows at clear angles about the other."""
    crowd = np.stack([np.ones(200), np.linspace(0.01, 0.02, 200)], axis=1)
    clear = np.stack([np.linspace(0, 0.4, 5), np.ones(5)], axis=1)
    corpus, queries = UnitRows(np.concatenate([crowd, clear])), UnitRows(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 2]]))
    found = exact_search(queries, corpus, 3, half=True)
    assert_exact(found, queries, corpus, 3)
    assert found.record.num_float32 == 1


@pytest.mark.parametrize("half", [False, True])
def test_many_equal_rows_end_in_float64(half: bool) -> None:
    """More ties than spare candidates: only looking at all of them tells the smallest indices."""
    corpus = UnitRows(np.tile(np.random.default_rng(0).standard_normal((3, 24)), (200, 1)))
    queries = random_rows(9, 24, 1)
    found = exact_search(queries, corpus, 4, half=half)
    assert found.record.num_float64 == 9
    np.testing.assert_array_equal(np.diff(found.ids, axis=1), np.full((9, 3), 3))
    assert (found.ids[:, 0] < 3).all()


@pytest.mark.parametrize("scoring", [HALF, FLOAT32], ids=["half", "float32"])
@pytest.mark.parametrize("dim", [1, 7, 300])
def test_no_fast_score_is_further_off_than_the_bound(scoring: Precision, dim: int) -> None:
    queries, corpus = random_rows(60, dim, 0).piece(0, 60), random_rows(512, dim, 1).piece(0, 512)
    short_queries, short = ((rows if scoring.shorten is None else scoring.shorten(rows)) for rows in (queries, corpus))
    fast, indices = scoring.best(short_queries, short, 512, 512, torch.empty(60, 512, dtype=scoring.score_type))
    exact = (queries.double() @ corpus.double().T).gather(1, indices)
    slip = module._slips(corpus, short).max()
    for column in range(512):
        last = fast[:, column].float()
        bound = scoring.error(module._slips(queries, short_queries), slip, last, dim)
        assert bool((exact[:, column] <= last + bound).all())
        assert bool((bound < 2e-3).all()), "a bound that allows everything proves nothing"


def test_the_best_of_rows_are_those_of_sorting() -> None:
    scores = torch.randn(9, 64 * 30, generator=torch.Generator().manual_seed(0))
    for m in (1, 5, 29, 40):
        values, indices = module._best_of_rows(scores, m)
        expected = scores.topk(m, dim=1)
        torch.testing.assert_close(values, expected.values, rtol=0, atol=0)
        torch.testing.assert_close(indices, expected.indices)


def test_keys_are_in_the_order_of_scores_then_indices() -> None:
    scores = torch.tensor([[0.5, -0.5, 0.0, -0.0, 1.0, -1.0, 0.5, 1e-30]])
    indices = torch.tensor([[3, 2, 9, 5, 4_000_000_000, 0, 1, 7]])
    keys = pack(scores, indices).sort(dim=1, descending=True).values
    found_indices, found_scores = unpack(torch.cat([keys, torch.tensor([[NO_KEY]])], dim=1))
    assert found_indices.tolist() == [[4_000_000_000, 1, 3, 7, 5, 9, 2, 0, -1]]
    expected = np.array([[1, 0.5, 0.5, 1e-30, 0, 0, -0.5, -1, -np.inf]], dtype=np.float32)
    np.testing.assert_array_equal(found_scores, expected)


def test_lengths_beyond_float32_squares_have_a_direction() -> None:
    rows = UnitRows(np.array([[3e38, 3e38], [1e-40, 0.0]], dtype=np.float32))
    found = exact_search(rows, rows, 2)
    np.testing.assert_allclose(found.scores, [[1, 0.5**0.5], [1, 0.5**0.5]], rtol=1e-6)


def test_precision_is_restored() -> None:
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision
    with full_precision():
        assert (matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision) == (False, "ieee")
    assert (matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision) == before
