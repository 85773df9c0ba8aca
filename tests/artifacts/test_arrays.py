"""Test the checks of arrays, and pairs as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import are_among, frozen, pair_keys
from largegnn.errors import ArtifactError

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(7, 2**31 - 1) | st.integers(7, 12)), max_size=12)


def rows(pairs: list[tuple[int, int]]) -> Any:
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


@given(pairs=PAIRS, links=PAIRS)
def test_pairs_among_links_as_among_sets(pairs: list[tuple[int, int]], links: list[tuple[int, int]]) -> None:
    assert are_among(rows(pairs), rows(links)).tolist() == [pair in set(links) for pair in pairs]


@given(pairs=PAIRS)
def test_keys_are_distinct_and_in_the_order_of_pairs(pairs: list[tuple[int, int]]) -> None:
    keys = pair_keys(rows(pairs)).tolist()
    assert [pair for _, pair in sorted(zip(keys, pairs, strict=True))] == sorted(pairs)
    assert len(set(keys)) == len(set(pairs))


@pytest.mark.parametrize("shape", [(None, 2), (0, 2), (2, 0), (None, 0)])
def test_an_empty_array_takes_the_wanted_shape(shape: tuple[int | None, int]) -> None:
    """A run without pairs has as many columns of evidence as any other."""
    for empty in (np.empty(0), np.empty((0, 2)), np.empty((2, 0))):
        assert frozen(empty, np.float32, shape, "x").shape == tuple(want or 0 for want in shape)


def test_an_empty_array_is_refused_where_values_are_wanted() -> None:
    with pytest.raises(ArtifactError, match="x has shape"):
        frozen([], np.float32, (1, 2), "x")
