"""Test the search for the rows of a value against a plain comparison."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from largegnn.review.lookup import Rows, span


@given(ids=st.lists(st.integers(0, 7), max_size=30))
def test_rows_are_those_that_hold_the_value(ids: list[int]) -> None:
    values = np.array(ids, dtype=np.int32)
    rows = Rows(values, 8)
    for value in range(8):
        assert rows.of(value).tolist() == np.flatnonzero(values == value).tolist()
    ordered = np.sort(values)
    assert [span(ordered, value) for value in range(8)] == [
        (int((ordered < value).sum()), int((ordered <= value).sum())) for value in range(8)
    ]
