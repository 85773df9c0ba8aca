"""Faiss behind the same door: parameters from the data, recall measured and reached."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from largegnn.artifacts import Neighbors
from largegnn.matching import faiss_search as module
from largegnn.matching.exact_search import exact_search
from largegnn.matching.faiss_search import RecallAim, flat_search, hnsw_search, ivf_search
from largegnn.matching.unit_rows import UnitRows

APPROXIMATE = {"ivf": ivf_search, "hnsw": hnsw_search}


@pytest.fixture(scope="module")
def sides() -> tuple[UnitRows, UnitRows]:
    """4,000 rows without clusters, which is hard on lists and graphs, and 600 queries near some of them."""
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((4000, 16)).astype(np.float32)
    return UnitRows(corpus[:600] + 0.5 * rng.standard_normal((600, 16)).astype(np.float32)), UnitRows(corpus)


def recall(found: Neighbors, truth: Neighbors) -> float:
    return float(np.mean(found.scores >= truth.scores[:, -1:]))


@pytest.mark.parametrize("name", sorted(APPROXIMATE))
def test_reaches_the_recall_asked_for_and_says_so(
    name: str, sides: tuple[UnitRows, UnitRows], caplog: pytest.LogCaptureFixture
) -> None:
    queries, corpus = sides
    truth = exact_search(queries, corpus, 10)
    with caplog.at_level(logging.INFO, logger="largegnn"):
        found = APPROXIMATE[name](queries, corpus, 10, RecallAim(0.9, sample=400, most_read=1))
    assert found.record.recall is not None
    assert found.record.recall >= 0.94, "two fifths of the way to 1"
    assert recall(found, truth) == pytest.approx(found.record.recall, abs=0.03)
    assert found.record.recall_sample == 400
    assert "on 400 queries; asked for 0.9000" in caplog.text


def test_more_recall_asked_for_is_more_recall_given(sides: tuple[UnitRows, UnitRows]) -> None:
    few, many = (ivf_search(*sides, 10, RecallAim(asked, most_read=1)).record.recall for asked in (0.5, 0.99))
    assert few is not None
    assert many is not None
    assert 0.7 <= few < 0.994 <= many


@pytest.mark.parametrize("name", sorted(APPROXIMATE))
def test_says_when_the_recall_is_out_of_reach(
    name: str, sides: tuple[UnitRows, UnitRows], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_least_effort", lambda recall_of, goal, least, most: (1, recall_of(1)))
    found = APPROXIMATE[name](*sides, 10, RecallAim(1.0, most_read=1))
    assert found.record.recall is not None
    assert found.record.recall < 1
    assert [record.levelname for record in caplog.records if "less than the 1.0000 asked for" in record.message] == [
        "WARNING"
    ]


def test_lists_that_do_not_pay_are_left_for_the_exact_search(sides: tuple[UnitRows, UnitRows]) -> None:
    found, expected = ivf_search(*sides, 10, RecallAim(0.99, most_read=0.1)), exact_search(*sides, 10)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert (found.record.recall, found.record.method) == (None, "torch")


def test_an_exact_search_of_hours_does_not_take_over(
    sides: tuple[UnitRows, UnitRows], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_EXACT", 1.0)
    found = ivf_search(*sides, 10, RecallAim(0.99, most_read=0.1))
    assert found.record.recall is not None, "approximate, and it says how well"
    assert found.record.recall < 0.99
    assert "less than the 0.9900 asked for" in caplog.text


def test_the_least_effort_is_found_by_doubling_and_halving() -> None:
    tried: list[int] = []

    def recall_of(effort: int) -> float:
        tried.append(effort)
        return min(1.0, effort / 100)

    assert module._least_effort(recall_of, 0.5, 4, 1000) == (52, 0.52)
    assert tried == [4, 8, 16, 32, 64, 48, 56, 52]
    assert module._least_effort(recall_of, 0.5, 4, 20) == (20, 0.2)
    assert module._least_effort(recall_of, 0.01, 4, 20) == (4, 0.04)


@pytest.mark.parametrize("name", sorted(APPROXIMATE))
def test_the_seed_decides(name: str, sides: tuple[UnitRows, UnitRows]) -> None:
    first, second = (APPROXIMATE[name](*sides, 10, RecallAim(0.8, sample=100, most_read=1), seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.record.recall == second.record.recall


def test_threads_are_given_back(sides: tuple[UnitRows, UnitRows]) -> None:
    faiss: Any = module._faiss()
    before = faiss.omp_get_max_threads()
    hnsw_search(*sides, 2, RecallAim(0.5, sample=50))
    assert faiss.omp_get_max_threads() == before


def test_flat_equals_the_exact_search_also_in_tiles(sides: tuple[UnitRows, UnitRows]) -> None:
    expected = exact_search(*sides, 5)
    for max_bytes in (4_000_000_000, 100_000):
        found = flat_search(*sides, 5, max_bytes=max_bytes)
        np.testing.assert_array_equal(found.ids, expected.ids)
        np.testing.assert_array_equal(found.scores, expected.scores)


def test_flat_settles_ties_beyond_its_candidates() -> None:
    corpus = UnitRows(np.tile(np.array([[1.0, 2.0], [2.0, -1.0]]), (50, 1)))
    found = flat_search(UnitRows(corpus.vectors[:2]), corpus, 3)
    np.testing.assert_array_equal(found.ids, [[0, 2, 4], [1, 3, 5]])
    assert found.record.num_float64 == 2
