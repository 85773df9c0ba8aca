"""What every entry of `MEASURES` keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.evaluation.metrics import MEASURES

every_measure = pytest.mark.parametrize("name", tuple(MEASURES))
RANKS = st.lists(st.integers(1, 10_000), min_size=1, max_size=20)


@every_measure
@given(ranks=RANKS)
def test_gives_one_plain_number_and_changes_nothing(name: str, ranks: list[int]) -> None:
    given_ranks = np.array(ranks)
    given_ranks.flags.writeable = False
    found = MEASURES[name](given_ranks)
    assert type(found) is float
    assert math.isfinite(found)
    assert 0 <= found <= 1
    assert MEASURES[name](given_ranks) == found


@every_measure
@given(ranks=RANKS, seed=st.integers(0, 9))
def test_the_order_of_the_links_does_not_matter(name: str, ranks: list[int], seed: int) -> None:
    mixed = np.random.default_rng(seed).permutation(ranks)
    assert MEASURES[name](mixed) == pytest.approx(MEASURES[name](np.array(ranks)))


@every_measure
@given(ranks=RANKS, better=st.data())
def test_a_better_rank_is_never_worth_less(name: str, ranks: list[int], better: st.DataObject) -> None:
    link = better.draw(st.integers(0, len(ranks) - 1))
    improved = [*ranks]
    improved[link] = better.draw(st.integers(1, ranks[link]))
    assert MEASURES[name](np.array(improved)) >= MEASURES[name](np.array(ranks))


@every_measure
def test_first_everywhere_is_all_and_last_of_many_is_nearly_nothing(name: str) -> None:
    assert MEASURES[name](np.ones(7, dtype=np.int64)) == 1.0
    assert MEASURES[name](np.full(7, 1_000_000)) < 1e-5


@every_measure
@given(ranks=st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=1, max_size=20))
def test_both_directions_together_are_the_mean_of_each(name: str, ranks: list[tuple[int, int]]) -> None:
    """What a summary relies on."""
    there, back = np.array(ranks).T
    mean = (MEASURES[name](there) + MEASURES[name](back)) / 2
    assert MEASURES[name](np.concatenate([there, back])) == pytest.approx(mean)
