"""Visits to subgraphs at the same time, by hand and by a pool of pretended workers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from largegnn.artifacts import IntArray
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.visits import ClusterVisits, SharedModel, VisitState, sample_entities
from tests.embedding.small_runs import (
    NUM_RELATIONS,
    are_equal,
    copies,
    random_subgraphs,
    small_model,
    small_options,
    small_trainer,
)
from tests.pickled_pool import PickledPool

SUBGRAPHS = random_subgraphs(5)
# Few enough entities that all of them are in memory for the cross-subgraph loss.
OPTIONS = small_options(cross_negatives=40)


@pytest.fixture
def model() -> EmbeddingModel:
    """Entities of dimension 1, of which 0, 1, 2 have rows 0, 1, 2 and squares 1."""
    made = small_model(random_subgraphs(1), small_options(dim=1))
    made.entities.values[:3, 0] = torch.arange(3.0)
    made.entities.square_average[:] = 1
    return made


def ids(*entities: int) -> IntArray:
    return np.array(entities, dtype=np.int64)


def changed(taken: VisitState, *rows: float, squares: float = 1.0, dense: float = 0.0) -> VisitState:
    """A state with these rows, and this added to all dense weights."""
    values = np.array(rows, dtype=np.float32)[:, None]
    return VisitState(values, np.full_like(values, squares), taken.dense + np.float32(dense), taken.dense_squares)


def rows_of(model: EmbeddingModel) -> list[float]:
    return model.entities.values[:3, 0].tolist()


def squares_of(model: EmbeddingModel) -> list[float]:
    return model.entities.square_average[:3, 0].tolist()


def test_visits_one_after_another_replace_what_they_took(model: EmbeddingModel) -> None:
    shared = SharedModel(model)
    taken, number = shared.read(ids(0, 2))
    assert taken.rows[:, 0].tolist() == [0, 2]
    assert shared.merge(ids(0, 2), taken, number, changed(taken, 0.1, 0.2, squares=3)) == 0
    assert rows_of(model) == np.array([0.1, 1, 0.2], dtype=np.float32).tolist(), "to the bit"
    assert squares_of(model) == [3, 1, 3]


def test_changes_of_visits_at_the_same_time_add_up(model: EmbeddingModel) -> None:
    shared = SharedModel(model)
    (first, zero), (second, _) = shared.read(ids(0, 1)), shared.read(ids(1, 2))
    assert shared.merge(ids(0, 1), first, zero, changed(first, 5, 6, squares=3)) == 0
    assert shared.merge(ids(1, 2), second, zero, changed(second, -1, 7, squares=5)) == 1, "entity 1 was changed before"
    assert rows_of(model) == [5, 6 + (-1 - 1), 7]
    assert squares_of(model) == [3, (3 + 5) / 2, 5]


@pytest.mark.parametrize("number", [1, 2, 4, 5, 16])
def test_a_change_of_dense_weights_that_many_have_overtaken_counts_less(number: int, model: EmbeddingModel) -> None:
    """Each adds 1 to a weight; those that four and more others have overtaken add 4 / 5, 4 / 6, ..."""
    before, _ = model.dense_vectors()
    shared = SharedModel(model)
    for taken, at in [shared.read(ids(0)) for _ in range(number)]:
        shared.merge(ids(0), taken, at, changed(taken, 0, dense=1))
    shared.load_dense()
    expected = sum(min(1.0, 4 / (1 + others)) for others in range(number))
    assert model.dense_vectors()[0] == pytest.approx(before + expected, rel=1e-5)


def test_others_are_all_where_they_are_few() -> None:
    assert sample_entities(40, 10, 0).tolist() == list(range(40))
    some = sample_entities(1_000, 10, 0)
    assert 30 < len(some) <= 40
    assert (np.diff(some) > 0).all()
    assert not np.array_equal(some, sample_entities(1_000, 10, 1))


def test_dense_parameters_come_back_as_they_were() -> None:
    first, second = (small_model(random_subgraphs(2), small_options(), seed) for seed in (0, 1))
    second.entities = first.entities
    second.load_dense(*first.dense_vectors())
    assert are_equal(copies(first), copies(second))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("num_workers", [1, 3])
def test_one_worker_makes_what_one_process_makes_and_several_always_the_same(num_workers: int) -> None:
    alone = small_trainer(SUBGRAPHS, OPTIONS)
    alone.run()
    found = []
    for _ in range(2):
        visits = ClusterVisits(PickledPool(num_workers), OPTIONS, NUM_RELATIONS)
        trainer = small_trainer(SUBGRAPHS, OPTIONS, cluster=visits)
        trainer.run()
        use = visits.use()
        assert use is not None
        found.append((copies(trainer.model), [epoch.loss for epoch in trainer.history], use))
    assert are_equal(found[0][0], found[1][0])
    assert are_equal(found[0][0], copies(alone.model)) == (num_workers == 1)
    assert (found[0][1] == [epoch.loss for epoch in alone.history]) == (num_workers == 1)
    use = found[0][2]
    assert (use.num_visits, use.num_workers, use.most_stale) == (20, num_workers, num_workers - 1)
    assert (use.shared_rows > 0) == (num_workers > 1)
    assert use.bytes_sent > 0


@pytest.mark.parametrize(("workers", "subgraphs", "is_warned"), [(16, 32, True), (16, 128, False), (2, 5, False)])
def test_few_subgraphs_for_many_workers_are_warned_of(
    caplog: pytest.LogCaptureFixture, workers: int, subgraphs: int, is_warned: bool
) -> None:
    ClusterVisits(PickledPool(workers), OPTIONS, NUM_RELATIONS)._warn_of_staleness(subgraphs)
    assert bool(caplog.records) == is_warned
    if is_warned:
        assert "16 workers share 32 subgraphs" in caplog.text
        assert "division.parts" in caplog.text
