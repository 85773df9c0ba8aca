from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.matching.neighbor_rows import NeighborRows, neighbor_rows
from tests.matching.slow_support import make_task

Triple = tuple[int, int, int]
Entry = tuple[int, int, int]  # entity, neighbour, way
source, target = st.integers(0, 4), st.integers(5, 9)
triples = st.tuples(
    st.lists(st.tuples(source, st.integers(0, 1), source), max_size=14, unique=True),
    st.lists(st.tuples(target, st.integers(2, 3), target), max_size=14, unique=True),
)


def entries(rows: NeighborRows) -> list[Entry]:
    entities = np.repeat(np.arange(len(rows.ptr) - 1), np.diff(rows.ptr)).tolist()
    return list(zip(entities, rows.ids.tolist(), rows.directed_relations.tolist(), strict=True))


def weigh_slowly(triples: list[Triple]) -> dict[Entry, float]:
    """The weight of neighbour a for entity e by a way: the triples a has of that relation the way to e, ^ -1/4."""
    triples = [triple for triple in triples if triple[0] != triple[2]]
    weights = {}
    for head, relation, tail in triples:
        weights[tail, head, 2 * relation + 1] = sum(h == head and r == relation for h, r, _ in triples) ** -0.25
        weights[head, tail, 2 * relation] = sum(t == tail and r == relation for _, r, t in triples) ** -0.25
    return weights


@given(both=triples)
def test_rows_are_their_definition(both: tuple[list[Triple], list[Triple]]) -> None:
    task = make_task(5, 5, both[0] + both[1], [])
    for side, (own, entity, relation) in enumerate(((both[0], 0, 0), (both[1], 5, 2))):
        rows = neighbor_rows(task, side)
        moved = [(head - entity, kind - relation, tail - entity) for head, kind, tail in own]
        expected = weigh_slowly(moved)
        assert dict(zip(entries(rows), rows.weights.tolist(), strict=True)) == pytest.approx(expected)
        pairs = [(one, other) for one, other, _ in entries(rows)]
        assert pairs == sorted(pairs)
        assert [array.dtype.name for array in rows] == ["int64", "int32", "int32", "float32"]


def test_a_hub() -> None:
    """3 is the tail of a relation that 200 entities share."""
    task = make_task(204, 1, [(entity, 0, 3) for entity in range(4, 204)], [])
    rows = neighbor_rows(task, 0)
    found = dict(zip(entries(rows), rows.weights.tolist(), strict=True))
    assert len(found) == 400
    assert found[100, 3, 0] == pytest.approx(200**-0.25)
    assert found[3, 100, 1] == 1.0
    assert neighbor_rows(task, 1).ptr.tolist() == [0, 0]
