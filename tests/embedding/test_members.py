"""Ensembles: several models in one run, their cosines added; an interrupted one ends like an undisturbed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, IntArray, SubgraphSet, TrainedModel
from largegnn.embedding import train as stage
from largegnn.embedding.encode import integrate
from largegnn.embedding.train import TrainOutcome
from largegnn.errors import ArtifactError
from largegnn.parts import Table
from largegnn.planning.forecast import estimate_memory_mb, estimate_seconds
from largegnn.planning.plan import plan_for
from largegnn.repartition import Repartitioner
from largegnn.rounds import RoundsOutcome
from largegnn.run import Run
from largegnn.settings import PRESETS, Settings, resolve
from tests.small_world import WORLD

QUICK = ["train.dim=8", "train.epochs=2", "train.repartition_every=1", "train.negatives=100", "division.parts=2"]


def settings(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=[*QUICK, "train.validate_every=1", "device=cpu", *overrides])


@pytest.fixture(scope="module", autouse=True)
def divided_here() -> Iterator[None]:
    """A helper process takes longer to start than these graphs to divide."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "is_local", lambda *_: True)
        yield


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("members") / "pair"
    api.generate(WORLD, folder=folder)
    return folder


@pytest.fixture(scope="module")
def task(pair: Path) -> AlignmentTask:
    return api.load(pair).task


@pytest.fixture(scope="module")
def two(task: AlignmentTask, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with two members."""
    folder = tmp_path_factory.mktemp("two") / "run"
    return api.run_task(folder, task, None, settings("train.members=2"), last="integrate")


def cosines(vectors: FloatArray, pairs: IntArray) -> Any:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (units[pairs[:, 0]] * units[pairs[:, 1]]).sum(axis=1)


def vectors_of(run: Run) -> FloatArray:
    return run.artifact("embeddings", EntityEmbeddings).vectors


def test_cosines_are_the_mean_of_the_members(task: AlignmentTask, two: Run) -> None:
    model, chosen = two.artifact("model", TrainedModel), settings()
    assert (model.members, model.entity_rows.shape) == (2, (task.num_entities, 16))
    alone = [
        integrate(
            task, model.member(index), SubgraphSet.empty(), chosen.train, chosen.integrate, device="cpu"
        ).embeddings
        for index in (0, 1)
    ]
    rng = np.random.default_rng(0)
    pairs = rng.integers(task.num_entities, size=(500, 2))
    expected = (cosines(alone[0].vectors, pairs) + cosines(alone[1].vectors, pairs)) / 2
    assert not np.allclose(cosines(alone[0].vectors, pairs), expected, atol=1e-3), "the members differ"
    assert np.allclose(cosines(vectors_of(two), pairs), expected, atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors_of(two), axis=1), 1.0, atol=1e-5)


def test_the_first_member_is_the_model_without_an_ensemble(task: AlignmentTask, two: Run, tmp_path: Path) -> None:
    one = api.run_task(tmp_path / "one", task, None, settings(), last="integrate")
    model, first = one.artifact("model", TrainedModel), two.artifact("model", TrainedModel).member(0)
    assert np.array_equal(model.entity_rows, first.entity_rows)
    assert np.array_equal(model.encoder_weights, first.encoder_weights)
    history = two.outcome("train", TrainOutcome).history
    assert [(epoch.member, epoch.epoch) for epoch in history] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    alone = one.outcome("train", TrainOutcome).history
    assert [epoch.loss for epoch in alone] == [epoch.loss for epoch in history[:2]]


def test_members_never_share_a_division(task: AlignmentTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    make = Repartitioner.__call__

    def noted(self: Repartitioner, number: int) -> SubgraphSet:
        asked.append(number)
        return make(self, number)

    monkeypatch.setattr(Repartitioner, "__call__", noted)
    api.run_task(tmp_path / "run", task, None, settings("train.members=3"), last="train")
    assert asked == [0, 1, 2, 3, 4, 5]
    asked.clear()
    still = settings("train.members=2", "train.repartition_every=0", "integrate.method=average")
    run = api.run_task(tmp_path / "still", task, None, still, last="integrate")
    assert asked == [0, 1]
    # Means of unit vectors are shorter than one; members count alike nevertheless.
    assert np.allclose(np.linalg.norm(vectors_of(run)[:, :48], axis=1), 2**-0.5, atol=1e-5)


class KilledError(Exception):
    """As if the process had ended here."""


@pytest.mark.parametrize("moment", [3, 4])
def test_interrupted_it_ends_the_same(
    moment: int, task: AlignmentTask, two: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each member has two epochs with a division before each; divisions 2 and 3 are those of the second member."""
    make, chosen = Repartitioner.__call__, settings("train.members=2")
    calls = [0]

    def dying(self: Repartitioner, number: int) -> SubgraphSet:
        calls[0] += 1
        if calls[0] == moment:
            raise KilledError
        return make(self, number)

    monkeypatch.setattr(Repartitioner, "__call__", dying)
    with pytest.raises(KilledError):
        api.run_task(tmp_path / "run", task, None, chosen, last="integrate")
    calls[0] = -10
    again = api.run_task(tmp_path / "run", task, None, chosen, last="integrate")
    assert calls[0] <= -8, "the first member was not trained again"
    assert np.array_equal(vectors_of(again), vectors_of(two))
    assert not list(again.folder.glob("work-*"))


def test_rounds_go_on_with_every_member(task: AlignmentTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[TrainedModel | None] = []
    train_member: Callable[..., Any] = stage._train_member

    def noted(*arguments: Any) -> Any:
        started.append(arguments[-1])
        return train_member(*arguments)

    monkeypatch.setattr(stage, "_train_member", noted)
    chosen = settings("train.members=2", "rounds.number=1", "rounds.epochs=2", "rounds.min_confidence=0.1")
    run = api.run_task(tmp_path / "run", task, None, chosen, last="rounds")
    model = run.artifact("model", TrainedModel)
    assert started[:2] == [None, None]
    for index, start in enumerate(started[2:]):
        assert start is not None
        assert np.array_equal(start.entity_rows, model.member(index).entity_rows)
    assert run.artifact("refined_model", TrainedModel).members == 2
    assert len(run.outcome("rounds", RoundsOutcome).history) == 1


def test_an_ensemble_is_updated_like_a_single_model(pair: Path, tmp_path: Path) -> None:
    result = api.align(pair, out=tmp_path / "run", settings=settings("train.members=2"))
    new = tmp_path / "new.tsv"
    known = result.names.entities[0]
    new.write_text(f"brand_new\tis_near\t{known}\n", encoding="utf-8")
    updated = api.update(tmp_path / "run", source_triples=new, out=tmp_path / "updated")
    before, after = (run.artifact("model", TrainedModel) for run in (result.run, updated.run))
    assert after.members == 2
    assert len(after.entity_rows) == len(before.entity_rows) + 1
    assert updated.run.artifact("embeddings", EntityEmbeddings).vectors.shape[1] == 2 * 48


def test_a_forecast_counts_every_member(task: AlignmentTask) -> None:
    plans = {}
    for members in (1, 3):
        chosen = settings(f"train.members={members}", "train.dim=64")
        plan = plan_for(task, chosen.division, chosen.landmarks, "cpu")
        plans[members] = estimate_seconds(task, chosen, plan), estimate_memory_mb(task, chosen)
    (seconds, memory), (more_seconds, more_memory) = plans[1], plans[3]
    assert more_seconds["train"] > 1.5 * seconds["train"], "three times, by a speed that is measured anew"
    vectors = 4 * task.num_entities * 6 * 64 / 2**20
    rows = 4 * task.num_entities * 64 / 2**20
    assert more_memory["search"] - memory["search"] == pytest.approx(2 * vectors + 2 * rows)
    assert more_memory["match"] - memory["match"] == pytest.approx(2 * vectors)
    assert more_memory["train"] - memory["train"] == pytest.approx(2 * rows)


def test_members_must_share_evenly() -> None:
    rows = np.zeros((4, 6), dtype=np.float32)
    with pytest.raises(ArtifactError, match="rows of 6 numbers cannot be divided among 4 members"):
        TrainedModel("dual_amn", rows, rows, np.zeros(8, dtype=np.float32), members=4)
