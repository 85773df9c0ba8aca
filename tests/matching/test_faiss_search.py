"""Inverted lists: parameters from the data, recall measured and reached."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from largegnn.artifacts import Neighbors
from largegnn.matching import faiss_search as module
from largegnn.matching.exact_search import exact_search
from largegnn.matching.faiss_search import ivf_search
from largegnn.matching.search import SearchOptions
from largegnn.matching.unit_rows import UnitRows


@pytest.fixture(scope="module")
def sides() -> tuple[UnitRows, UnitRows]:
    """4,000 rows without clusters, which is hard on lists, and 600 queries near some of them."""
    rng = np.random.default_rng(0)
    corpus = rng.standard_normal((4000, 16)).astype(np.float32)
    return UnitRows(corpus[:600] + 0.5 * rng.standard_normal((600, 16)).astype(np.float32)), UnitRows(corpus)


@pytest.fixture
def _may_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_LISTS_READ", 1)


def recall(found: Neighbors, truth: Neighbors) -> float:
    return float(np.mean(found.scores >= truth.scores[:, -1:]))


@pytest.mark.usefixtures("_may_read_all")
def test_reaches_the_recall_asked_for_and_says_so(
    sides: tuple[UnitRows, UnitRows], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SAMPLE", 400)
    queries, corpus = sides
    options = SearchOptions(recall=0.9)
    truth = exact_search(queries, corpus, 10, options)
    with caplog.at_level(logging.INFO, logger="largegnn"):
        found = ivf_search(queries, corpus, 10, options)
    assert found.record.recall is not None
    assert found.record.recall >= 0.94, "two fifths of the way to 1"
    assert recall(found, truth) == pytest.approx(found.record.recall, abs=0.03)
    assert found.record.recall_sample == 400
    assert "on 400 queries; asked for 0.9000" in caplog.text


@pytest.mark.usefixtures("_may_read_all")
def test_more_recall_asked_for_is_more_recall_given(sides: tuple[UnitRows, UnitRows]) -> None:
    few, many = (ivf_search(*sides, 10, SearchOptions(recall=asked)).record.recall for asked in (0.5, 0.99))
    assert few is not None
    assert many is not None
    assert 0.7 <= few < 0.994 <= many


def test_lists_that_do_not_pay_are_left_for_the_exact_search(sides: tuple[UnitRows, UnitRows]) -> None:
    options = SearchOptions(recall=0.99)
    found, expected = ivf_search(*sides, 10, options), exact_search(*sides, 10, options)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert (found.record.recall, found.record.method) == (None, "torch")


def test_an_exact_search_of_hours_does_not_take_over(
    sides: tuple[UnitRows, UnitRows], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MAX_EXACT_MULTIPLICATIONS", 1.0)
    found = ivf_search(*sides, 10, SearchOptions(recall=0.99))
    assert found.record.recall is not None, "approximate, and it says how well"
    assert found.record.recall < 0.99
    assert "less than the 0.9900 asked for" in caplog.text


def test_the_fewest_probes_are_found_by_doubling_and_halving() -> None:
    tried: list[int] = []

    def recall_of(probes: int) -> float:
        tried.append(probes)
        return min(1.0, probes / 100)

    assert module._find_probes(recall_of, 0.5, 1000) == (52, 0.52)
    assert tried == [1, 2, 4, 8, 16, 32, 64, 48, 56, 52]
    assert module._find_probes(recall_of, 0.5, 20) == (20, 0.2)
    assert module._find_probes(recall_of, 0.01, 20) == (1, 0.01)


@pytest.mark.usefixtures("_may_read_all")
def test_the_seed_decides(sides: tuple[UnitRows, UnitRows]) -> None:
    first, second, other = (ivf_search(*sides, 10, SearchOptions(recall=0.8, seed=seed)) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.scores, second.scores)
    assert first.record == second.record
    assert (first.ids != other.ids).any()
