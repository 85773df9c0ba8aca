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
from largegnn.matching.exact_search import FLOAT32, TF32, Precision, exact_search
from largegnn.matching.search import SearchOptions
from largegnn.matching.unit_rows import NO_KEY, UnitRows, pack, unpack

Array = npt.NDArray[Any]
OPTIONS = SearchOptions()


def random_rows(num_rows: int, dim: int, seed: int) -> UnitRows:
    return UnitRows(np.random.default_rng(seed).standard_normal((num_rows, dim)).astype(np.float32))


def everything(rows: UnitRows) -> torch.Tensor:
    return rows.read(slice(None))


def sort_all(queries: UnitRows, corpus: UnitRows, k: int) -> tuple[Array, Array]:
    """The k nearest by sorting all scores, in float64 from the unit rows rounded to float32."""
    rows, others = (everything(side).double().numpy() for side in (queries, corpus))
    scores = (rows @ others.T).astype(np.float32)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(scores, order, axis=1)


def assert_exact(found: Neighbors, queries: UnitRows, corpus: UnitRows, k: int) -> None:
    indices, scores = sort_all(queries, corpus, k)
    np.testing.assert_array_equal(found.ids, indices)
    np.testing.assert_array_equal(found.scores, scores)


def test_equals_sorting_all_scores() -> None:
    """6,000 rows are 94 blocks, more than are kept, so the maxima of blocks are put to use."""
    queries, corpus = random_rows(70, 16, 0), random_rows(6000, 16, 1)
    found = exact_search(queries, corpus, 10, OPTIONS)
    assert_exact(found, queries, corpus, 10)
    assert (found.record.num_float32, found.record.num_float64) == (0, 0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("max_memory_gb", [4, 0.003])
def test_a_gpu_finds_the_same(max_memory_gb: float) -> None:
    queries, corpus = random_rows(700, 48, 0), random_rows(20_000, 48, 1)
    found = exact_search(queries, corpus, 10, SearchOptions("cuda", max_memory_gb=max_memory_gb))
    np.testing.assert_array_equal(found.ids, exact_search(queries, corpus, 10, OPTIONS).ids)


@pytest.mark.parametrize("passes", [(FLOAT32,), (TF32, FLOAT32), ()], ids=["cpu", "gpu", "float64"])
def test_tiles_and_chunks_change_nothing(passes: tuple[Precision, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    queries, corpus = random_rows(40, 8, 0), random_rows(3000, 8, 1)
    monkeypatch.setattr(module, "_LOAD_ROWS", 17)
    monkeypatch.setitem(module._PASSES, "cpu", passes)
    # The least memory: tiles of 512 rows, chunks of one query.
    found = exact_search(queries, corpus, 4, SearchOptions(max_memory_gb=30e-6))
    assert_exact(found, queries, corpus, 4)


def test_only_doubtful_queries_are_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd of 200 that differ by less than TF32 can tell, about one axis, and 5 rows at clear angles to it."""
    monkeypatch.setitem(module._PASSES, "cpu", (TF32, FLOAT32))
    crowd = np.stack([np.ones(200), np.linspace(0, 0.05, 200)], axis=1)
    clear = np.stack([np.linspace(0, 0.4, 5), np.ones(5)], axis=1)
    corpus = UnitRows(np.random.default_rng(0).permutation(np.concatenate([crowd, clear])))
    queries = UnitRows(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 2]]))
    found = exact_search(queries, corpus, 3, OPTIONS)
    assert_exact(found, queries, corpus, 3)
    assert (found.record.num_float32, found.record.num_float64) == (1, 0)


@pytest.mark.parametrize("passes", [(FLOAT32,), (TF32, FLOAT32)], ids=["cpu", "gpu"])
def test_many_equal_rows_end_in_float64(passes: tuple[Precision, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """More ties than spare candidates: only looking at all of them tells the smallest indices."""
    monkeypatch.setitem(module._PASSES, "cpu", passes)
    corpus = UnitRows(np.tile(np.random.default_rng(0).standard_normal((3, 24)), (200, 1)))
    queries = random_rows(9, 24, 1)
    found = exact_search(queries, corpus, 4, OPTIONS)
    assert found.record.num_float64 == 9
    np.testing.assert_array_equal(np.diff(found.ids, axis=1), np.full((9, 3), 3))
    assert (found.ids[:, 0] < 3).all()


@pytest.mark.parametrize("precision", [TF32, FLOAT32], ids=["tf32", "float32"])
@pytest.mark.parametrize("dim", [1, 7, 300])
def test_no_fast_score_is_further_off_than_the_bound(precision: Precision, dim: int) -> None:
    queries, corpus = (everything(random_rows(count, dim, count)) for count in (60, 512))
    exact = (queries.double() @ corpus.double().T).float()
    if precision is TF32:  # a GPU reads the upper 19 bits of a factor
        queries, corpus = ((side.view(torch.int32) & ~0x1FFF).view(torch.float32) for side in (queries, corpus))
    assert bool(((exact - queries @ corpus.T).abs() <= precision.error(dim)).all())
    assert precision.error(dim) < 2.1e-3, "a bound that allows everything proves nothing"


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
    found = exact_search(rows, rows, 2, OPTIONS)
    np.testing.assert_allclose(found.scores, [[1, 0.5**0.5], [1, 0.5**0.5]], rtol=1e-6)


def test_rows_are_read_by_range_and_by_index() -> None:
    vectors = np.random.default_rng(0).standard_normal((40, 8))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for stored in (vectors, vectors.astype(np.float32), np.asfortranarray(vectors)):
        for kept in (None, np.arange(0, 40, 3)):
            rows, expected = UnitRows(stored, kept), units if kept is None else units[kept]
            numbers = np.array([[3, 1], [0, 3]])
            np.testing.assert_allclose(rows.read(slice(2, 9)), expected[2:9], rtol=1e-6)
            np.testing.assert_allclose(rows.read(numbers), expected[numbers], rtol=1e-6)
            np.testing.assert_array_equal(rows.part(slice(2, 9)).read(slice(1, 3)), rows.read(slice(3, 5)))
            np.testing.assert_array_equal(rows.part(np.array([2, 5])).read(slice(None)), rows.read(np.array([2, 5])))


def test_precision_is_restored() -> None:
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision
    with full_precision():
        assert (matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision) == (False, "ieee")
    assert (matmul.allow_fp16_reduced_precision_reduction, matmul.fp32_precision) == before
