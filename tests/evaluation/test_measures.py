"""Measures of ranks: by hand, by their definition, and in a summary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from largegnn.artifacts import RankFigures
from largegnn.evaluation.metrics import DEFAULT_MEASURES, MEASURES, Ranks, summarise
from largegnn.settings import EvaluateSettings

RANKS = st.lists(st.integers(1, 15), min_size=1, max_size=30)


def test_summary_by_hand() -> None:
    summary = summarise(Ranks(np.array([1, 2, 6, 20]), np.array([1, 1, 1, 10])))
    assert summary.source_to_target == pytest.approx(
        {"hits@1": 0.25, "hits@5": 0.5, "hits@10": 0.75, "mrr": (1 + 1 / 2 + 1 / 6 + 1 / 20) / 4}
    )
    assert summary.mean == pytest.approx({"hits@1": 0.5, "hits@5": 0.625, "hits@10": 0.875, "mrr": 0.6020833})


@given(ranks=RANKS)
@example(ranks=[1, 2, 5, 6, 10, 11])
def test_measures_equal_their_definition(ranks: list[int]) -> None:
    found = {name: measure(np.array(ranks)) for name, measure in MEASURES.items()}
    hits = {f"hits@{k}": sum(rank <= k for rank in ranks) / len(ranks) for k in (1, 5, 10)}
    assert found == pytest.approx({**hits, "mrr": sum(1 / rank for rank in ranks) / len(ranks)})


@given(drawn=st.lists(st.tuples(st.integers(1, 15), st.integers(1, 15)), min_size=1, max_size=30))
def test_the_measure_of_both_directions_is_their_mean(drawn: list[tuple[int, int]]) -> None:
    there, back = np.array(drawn).T
    summary = summarise(Ranks(there, back))
    for name in DEFAULT_MEASURES:
        one, other = summary.source_to_target[name], summary.target_to_source[name]
        assert one is not None
        assert other is not None
        assert summary.mean[name] == pytest.approx((one + other) / 2)


def test_only_the_measures_asked_for() -> None:
    summary = summarise(Ranks(np.array([1, 3]), np.array([2, 2])), ("mrr", "hits@1"))
    assert summary.source_to_target == pytest.approx({"mrr": 2 / 3, "hits@1": 0.5})
    assert summary.mean == pytest.approx({"mrr": 7 / 12, "hits@1": 0.25})
    assert list(summary.mean) == ["mrr", "hits@1"], "in the order they were asked for"


def test_nothing_to_rank_has_no_measure() -> None:
    none = np.empty(0, dtype=np.int64)
    nothing: dict[str, float | None] = {"mrr": None}
    assert summarise(Ranks(none, none), ("mrr",)) == RankFigures(nothing, nothing, nothing)


def test_the_default_is_that_of_the_settings() -> None:
    assert EvaluateSettings().measures == DEFAULT_MEASURES
