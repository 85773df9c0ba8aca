"""What every entry of `SEARCHERS` promises, and what the door to them refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largegnn.artifacts import Neighbors
from largegnn.errors import ArtifactError, InputError
from largegnn.matching import faiss_search
from largegnn.matching.search import SearchOptions, search, search_both
from largegnn.parts import SEARCHERS
from largegnn.settings import Settings

Array = npt.NDArray[Any]
OPTIONS = SearchOptions(seed=3)


@pytest.fixture(params=sorted(SEARCHERS))
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(faiss_search, "_MAX_LISTS_READ", 1)  # so that "ivf" is IVF however little that pays here
    return str(request.param)


@pytest.fixture(scope="module")
def vectors() -> tuple[Array, Array]:
    """300 queries and 900 rows around 30 centres, of any length."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((30, 12))
    queries, corpus = (centres[rng.integers(0, 30, n)] + 0.5 * rng.standard_normal((n, 12)) for n in (300, 900))
    return (queries * rng.uniform(0.01, 100, (300, 1))).astype(np.float32), corpus.astype(np.float32)


def cosines(queries: Array, corpus: Array) -> Array:
    """All cosines (q, c) in float64, of unit vectors rounded to float32; NaN for vectors of zeros."""
    sides = [side.astype(np.float64) for side in (queries, corpus)]
    with np.errstate(invalid="ignore"):
        units = [(side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in sides]
    result: Array = units[0].astype(np.float64) @ units[1].astype(np.float64).T
    return result


def assert_in_order(result: Neighbors) -> None:
    """Best first, equal scores by row, nothing after the last that was found."""
    scores, rows = result.scores, result.ids
    assert ((rows < 0) == np.isneginf(scores)).all()
    ahead = scores[:, :-1] > scores[:, 1:]
    tied = (scores[:, :-1] == scores[:, 1:]) & ((rows[:, :-1] < rows[:, 1:]) | (rows[:, 1:] < 0))
    assert (ahead | tied).all()


def assert_same(first: Neighbors, second: Neighbors) -> None:
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)


def test_finds_the_nearest_with_their_cosines(name: str, vectors: tuple[Array, Array]) -> None:
    queries, corpus = vectors
    result = search(queries, corpus, 7, name, options=OPTIONS)
    assert result.ids.shape == result.scores.shape == (300, 7)
    assert result.ids.dtype == np.dtype(np.int32)
    assert result.scores.dtype == np.dtype(np.float32)
    assert result.record.method == name
    assert_in_order(result)
    truth = cosines(queries, corpus)
    np.testing.assert_allclose(result.scores, np.take_along_axis(truth, result.ids, axis=1), atol=1e-6)
    best = np.sort(truth, axis=1)[:, ::-1][:, :7]
    recall = float(np.mean(result.scores >= best[:, -1:] - 1e-6))
    if name == "torch":
        assert recall == 1
        assert (result.record.recall, result.record.recall_sample) == (None, 0)
    else:
        assert result.record.recall == pytest.approx(recall, abs=0.01)
        assert recall >= 0.95
        assert result.record.recall_sample == 300


def test_uncovered_rows_and_zeros_find_nothing_and_are_not_found(name: str, vectors: tuple[Array, Array]) -> None:
    queries, corpus = vectors[0].copy(), vectors[1].copy()
    query_covered, corpus_covered = np.arange(300) % 5 != 0, np.arange(900) % 3 != 0
    queries[7], corpus[10] = 0, 0
    queries[5], corpus[9] = np.nan, np.inf  # uncovered: whatever stands there is not looked at
    result = search(
        queries, corpus, 5, name, query_covered=query_covered, corpus_covered=corpus_covered, options=OPTIONS
    )
    silent = ~query_covered
    silent[7] = True
    assert (result.ids[silent] == -1).all()
    assert (result.ids[~silent] >= 0).all()
    assert corpus_covered[result.ids[~silent]].all()
    assert not (result.ids == 10).any()
    assert_in_order(result)
    alone = search(queries[~silent], np.delete(corpus[corpus_covered], 6, axis=0), 5, name, options=OPTIONS)
    np.testing.assert_array_equal(result.scores[~silent][:, 0], alone.scores[:, 0])


def test_a_small_corpus_is_padded(name: str, vectors: tuple[Array, Array]) -> None:
    queries, corpus = vectors
    result = search(queries[:20], corpus[:4], 6, name, options=OPTIONS)
    np.testing.assert_array_equal(np.sort(result.ids[:, :4], axis=1), np.tile(np.arange(4), (20, 1)))
    assert (result.ids[:, 4:] == -1).all()
    assert_in_order(result)


def test_nothing_to_search_or_to_search_in(name: str) -> None:
    some, none = np.ones((3, 2), dtype=np.float32), np.empty((0, 2), dtype=np.float32)
    assert search(none, some, 2, name).ids.shape == (0, 2)
    for result in (search(some, none, 2, name), search(some, 0 * some, 2, name)):
        np.testing.assert_array_equal(result.ids, np.full((3, 2), -1))
        assert np.isneginf(result.scores).all()


def test_equal_vectors_stand_by_row(name: str) -> None:
    """Four directions, ten copies each in turn: the copies of the query's own direction, smaller rows first."""
    corpus = np.tile(np.array([[1, 2, 3], [3, -1, 2], [-1, 1, 0], [0.1, 0.7, -5]], dtype=np.float32), (10, 1))
    result = search(corpus[:4], corpus, 10, name, options=OPTIONS)
    np.testing.assert_array_equal(result.ids, np.arange(4)[:, None] + 4 * np.arange(10))
    assert (result.scores == result.scores[:, :1]).all()


def test_the_same_again_and_from_memory_maps(name: str, vectors: tuple[Array, Array], tmp_path: Path) -> None:
    before = [array.copy() for array in vectors]
    for array in vectors:
        array.flags.writeable = False
    first = search(*vectors, 5, name, options=OPTIONS)
    assert_same(first, search(*vectors, 5, name, options=OPTIONS))
    for array, copy in zip(vectors, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.save(tmp_path / "queries.npy", vectors[0])
    np.save(tmp_path / "corpus.npy", vectors[1].astype(np.float64))
    queries, corpus = (np.load(tmp_path / f"{side}.npy", mmap_mode="r") for side in ("queries", "corpus"))
    assert_same(first, search(queries, corpus, 5, name, options=OPTIONS))


def test_both_directions_are_two_searches(name: str, vectors: tuple[Array, Array]) -> None:
    sources, targets = vectors
    covered = np.arange(900) % 2 == 0
    forward, backward = search_both(sources, targets, 3, name, target_covered=covered, options=OPTIONS)
    assert_same(forward, search(sources, targets, 3, name, corpus_covered=covered, options=OPTIONS))
    assert_same(backward, search(targets, sources, 3, name, query_covered=covered, options=OPTIONS))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_the_exact_searcher_agrees_with_sorting_everything(data: st.DataObject) -> None:
    """Small whole numbers, so that there are many ties, zeros and equal directions."""
    num_queries, num_rows = (data.draw(st.integers(0, most)) for most in (6, 12))
    dim = data.draw(st.integers(1, 3))
    k = data.draw(st.integers(1, 15))
    numbers = st.integers(-2, 2)
    queries, corpus = (
        np.array(data.draw(st.lists(numbers, min_size=n * dim, max_size=n * dim)), dtype=np.float32).reshape(n, dim)
        for n in (num_queries, num_rows)
    )
    truth = cosines(queries, corpus).astype(np.float32)
    expected = np.full((num_queries, k), -1)
    for row, scores in zip(expected, truth, strict=True):
        order = [i for i in np.argsort(-scores, kind="stable") if not np.isnan(scores[i])][:k]
        row[: len(order)] = order
    np.testing.assert_array_equal(search(queries, corpus, k, "torch").ids, expected)


def test_auto_is_exact_while_that_is_quick(vectors: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    assert search(*vectors, 3).record.method == "torch"
    monkeypatch.setattr("largegnn.matching.search._MAX_EXACT_ON_CPU", 1e6)
    # One list is not enough, and more are not allowed: the search is exact after all.
    result = search(*vectors, 3, options=SearchOptions(recall=1))
    monkeypatch.setattr(faiss_search, "_MAX_LISTS_READ", 1)
    assert search(*vectors, 3, options=OPTIONS).record.method == "ivf"
    assert (result.record.method, result.record.recall) == ("torch", None)


def test_refuses_what_cannot_be_searched() -> None:
    rows = np.ones((3, 2), dtype=np.float32)
    with pytest.raises(InputError, match="torch, ivf"):
        search(rows, rows, 1, "nonsense")
    with pytest.raises(InputError, match="auto, torch, ivf"):
        Settings.of({"search": {"method": "nonsense"}})
    with pytest.raises(InputError, match="at least 1"):
        search(rows, rows, 0)
    with pytest.raises(ArtifactError, match=r"\(3, 2\) and \(3, 1\)"):
        search(rows, rows[:, :1], 1)
    with pytest.raises(ArtifactError, match="mask"):
        search(rows, rows, 1, query_covered=np.ones(2, dtype=np.bool_))
    with pytest.raises(ArtifactError, match="numbers"):
        search(rows.astype(str), rows, 1)
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(ArtifactError, match="corpus holds NaN or infinity"):
            search(rows, np.array([[1, 1], [1, bad]]), 1)
