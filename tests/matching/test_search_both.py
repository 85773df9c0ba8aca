"""Both ways by one product: what two searches find, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import FloatArray, Neighbors
from largegnn.matching import search as module
from largegnn.matching.exact_search import exact_search_both
from largegnn.matching.search import SearchOptions, search, search_both
from largegnn.matching.unit_rows import UnitRows


def random_rows(num_rows: int, dim: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).standard_normal((num_rows, dim)).astype(np.float32)


def assert_same(found: Neighbors, wanted: Neighbors) -> None:
    np.testing.assert_array_equal(found.queries, wanted.queries)
    np.testing.assert_array_equal(found.ids, wanted.ids)
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.record.method == wanted.record.method
    assert found.record.recall is None


def assert_as_two_searches(sources: FloatArray, targets: FloatArray, k: int, **given: object) -> None:
    options = SearchOptions(max_memory_gb=float(given.pop("max_memory_gb", 4.0)))  # type: ignore[arg-type]
    both = search_both(sources, targets, k, "torch", options=options, **given)  # type: ignore[arg-type]
    turned = {name.replace("source", "query").replace("target", "corpus"): value for name, value in given.items()}
    back = {name.replace("target", "query").replace("source", "corpus"): value for name, value in given.items()}
    assert_same(both[0], search(sources, targets, k, "torch", options=options, **turned))  # type: ignore[arg-type]
    assert_same(both[1], search(targets, sources, k, "torch", options=options, **back))  # type: ignore[arg-type]


@pytest.mark.parametrize(("num_sources", "num_targets"), [(1, 1), (3, 700), (700, 3), (640, 1500), (0, 5), (5, 0)])
@pytest.mark.parametrize("k", [1, 10])
def test_both_ways_are_those_of_two_searches(num_sources: int, num_targets: int, k: int) -> None:
    assert_as_two_searches(random_rows(num_sources, 16, seed=1), random_rows(num_targets, 16, seed=2), k)


def test_several_tiles_and_chunks_are_one_search() -> None:
    sources, targets = random_rows(900, 64, seed=3), random_rows(2100, 64, seed=4)
    assert_as_two_searches(sources, targets, 7, max_memory_gb=0.0004)


def test_equal_vectors_are_settled_by_their_place() -> None:
    """Whole groups tie, so nothing is proven in float32 and all is searched for again."""
    sources = np.repeat(random_rows(5, 8, seed=5), 40, axis=0)
    targets = np.repeat(random_rows(7, 8, seed=6), 30, axis=0)
    assert_as_two_searches(sources, targets, 10)
    assert search_both(sources, targets, 10, "torch")[1].record.num_float64 == len(targets)


def test_what_has_no_direction_neither_finds_nor_is_found() -> None:
    sources, targets = random_rows(80, 16, seed=7), random_rows(60, 16, seed=8)
    sources[3], targets[5] = 0.0, 0.0
    covered = np.ones(60, dtype=bool)
    covered[:20] = False
    ids = np.arange(1000, 1060)
    assert_as_two_searches(sources, targets, 5, target_covered=covered, target_ids=ids)


def test_one_product_is_made_on_a_processor_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(sources: UnitRows, targets: UnitRows, k: int, *, max_bytes: int) -> tuple[Neighbors, Neighbors]:
        calls.append(k)
        return exact_search_both(sources, targets, k, max_bytes=max_bytes)

    monkeypatch.setattr(module, "exact_search_both", counted)
    sources, targets = random_rows(30, 8, seed=9), random_rows(30, 8, seed=10)
    search_both(sources, targets, 3)
    assert len(calls) == 1
    search_both(sources, targets, 3, "flat")
    monkeypatch.setattr(module, "can_compile", lambda: False)
    search_both(sources, targets, 3)
    assert len(calls) == 1
