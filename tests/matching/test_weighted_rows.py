from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.matching.weighted_rows import WeightedRows, weigh_neighbors

Triple = tuple[int, int, int]


def as_dict(rows: WeightedRows) -> dict[tuple[int, int], float]:
    entities = np.repeat(np.arange(len(rows.ptr) - 1), np.diff(rows.ptr)).tolist()
    keys = list(zip(entities, rows.ids.tolist(), strict=True))
    assert keys == sorted(set(keys)), "rows are ascending, and nothing comes twice"
    return dict(zip(keys, rows.weights.tolist(), strict=True))


def weigh_slowly(triples: list[Triple]) -> dict[tuple[int, int], float]:
    """The weight of neighbour a for entity e: the fewest triples a has of a relation, the way it leads to e, ^ -1/4."""
    reaches: dict[tuple[int, int], int] = {}
    for head, relation, tail in triples:
        leaving = sum(h == head and r == relation for h, r, _ in triples)
        arriving = sum(t == tail and r == relation for _, r, t in triples)
        for pair, reach in (((tail, head), leaving), ((head, tail), arriving)):
            reaches[pair] = min(reach, reaches.get(pair, reach))
    return {pair: reach**-0.25 for pair, reach in reaches.items() if pair[0] != pair[1]}


@given(
    triples=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=25, unique=True),
    offset=st.sampled_from([0, 7]),
)
def test_weights_are_their_definition(triples: list[Triple], offset: int) -> None:
    moved = np.array(triples, dtype=np.int32).reshape(-1, 3) + np.array([offset, offset, offset], dtype=np.int32)
    before = moved.copy()
    rows = weigh_neighbors(moved, 6, offset)
    assert as_dict(rows) == pytest.approx(weigh_slowly(triples))
    assert np.array_equal(moved, before)
    assert [array.dtype.name for array in rows] == ["int64", "int32", "float32"]


def test_a_hub_and_a_column_that_is_a_view() -> None:
    """3 is the tail of a relation that 200 entities share; read from a wider table, columns lie apart in memory."""
    table = np.zeros((200, 5), dtype=np.int64)
    table[:, 1] = np.arange(4, 204)
    table[:, 3] = 3
    found = as_dict(weigh_neighbors(table[:, 1:4], 204, 0))
    assert len(found) == 400
    assert found[100, 3] == pytest.approx(200**-0.25)
    assert found[3, 100] == 1.0


def test_no_triples() -> None:
    rows = weigh_neighbors(np.empty((0, 3), dtype=np.int32), 3, 0)
    assert rows.ptr.tolist() == [0, 0, 0, 0]
    assert len(rows.ids) == len(rows.weights) == 0
