"""Rows of a shard while several visits are under way, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.embedding.shards import DenseCenter, DenseState, RowState, TableShard, shard_bounds
from largegnn.embedding.visits import sample_others
from tests.embedding.small_runs import are_equal, copies, random_subgraphs, small_model, small_options

NONE = np.empty(0, dtype=np.int64)


def state(*rows: float, squares: float = 1.0) -> RowState:
    """Rows of one number each."""
    values = np.array(rows, dtype=np.float32)[:, None]
    return RowState(values, np.full_like(values, squares))


@pytest.fixture
def shard() -> TableShard:
    """Entities 10, 11, 12 with rows 0, 1, 2 and squares 1."""
    made = TableShard(10, 3, 1)
    made.fill(10, state(0, 1, 2))
    return made


def rows_of(shard: TableShard) -> list[float]:
    return [float(row) for row in shard.read(10, 13).rows[:, 0]]


def test_visits_one_after_another_replace_what_they_took(shard: TableShard) -> None:
    taken, others = shard.take(1, np.array([10, 12]), np.array([11]))
    assert taken.rows[:, 0].tolist() == [0, 2]
    assert others[:, 0].tolist() == [1]
    assert shard.give(1, state(0.1, 0.2, squares=3)) == 0
    assert rows_of(shard) == np.array([0.1, 1, 0.2], dtype=np.float32).tolist(), "to the bit"
    assert shard.read(10, 13).squares[:, 0].tolist() == [3, 1, 3]


def test_changes_of_visits_at_the_same_time_add_up(shard: TableShard) -> None:
    shard.take(1, np.array([10, 11]), NONE)
    shard.take(2, np.array([11, 12]), NONE)
    assert shard.give(1, state(5, 6, squares=3)) == 0
    assert shard.give(2, state(-1, 7, squares=5)) == 1, "entity 11 was changed by visit 1"
    assert rows_of(shard) == [5, 6 + (-1 - 1), 7]
    assert shard.read(10, 13).squares[:, 0].tolist() == [3, (3 + 5) / 2, 5]


def test_a_visit_counts_once_and_one_that_is_dropped_never(shard: TableShard) -> None:
    shard.take(1, np.array([10]), NONE)
    shard.take(2, np.array([12]), NONE)
    shard.drop(2)
    for _ in range(2):
        shard.give(1, state(4))
    shard.give(2, state(9))
    assert rows_of(shard) == [4, 1, 2]


def test_filled_again_a_shard_has_no_visit_under_way(shard: TableShard) -> None:
    shard.take(1, np.array([10]), NONE)
    shard.fill(10, state(7, 8, 9))
    shard.give(1, state(4))
    assert rows_of(shard) == [7, 8, 9]


def test_shards_share_out_all_entities() -> None:
    assert shard_bounds(10, 3).tolist() == [0, 3, 6, 10]
    assert shard_bounds(2, 3).tolist() == [0, 0, 1, 2]


def dense(*values: float) -> DenseState:
    return DenseState(np.array(values, dtype=np.float32), np.full(len(values), 2, dtype=np.float32))


def test_changes_of_dense_weights_add_up() -> None:
    center = DenseCenter(dense(1, 1))
    (first, taken), (second, _) = center.take(), center.take()
    center.give(first, taken, dense(2, 3))
    assert center.state.values.tolist() == [2, 3]
    center.give(second, taken, dense(5, 0))
    assert center.state.values.tolist() == [2 + (5 - 1), 3 + (0 - 1)]


@pytest.mark.parametrize("number", [1, 4, 5, 16])
def test_a_change_of_dense_weights_that_many_have_overtaken_counts_less(number: int) -> None:
    """Each adds 1 to a weight; those that four and more others have overtaken add 4 / 5, 4 / 6, ..."""
    center = DenseCenter(dense(0))
    taken = [center.take() for _ in range(number)]
    for version, state in taken:
        center.give(version, state, dense(1))
    expected = sum(min(1.0, 4 / (1 + others)) for others in range(number))
    assert center.state.values.tolist() == pytest.approx([expected])


def test_others_are_all_where_they_are_few() -> None:
    assert sample_others(40, 10, 0).tolist() == list(range(40))
    some = sample_others(1_000, 10, 0)
    assert 30 < len(some) <= 40
    assert (np.diff(some) > 0).all()
    assert not np.array_equal(some, sample_others(1_000, 10, 1))


def test_dense_parameters_come_back_as_they_were() -> None:
    first, second = (small_model(random_subgraphs(2), small_options(), seed) for seed in (0, 1))
    second.entities = first.entities
    second.load_dense(*first.dense_vectors())
    assert are_equal(copies(first), copies(second))
