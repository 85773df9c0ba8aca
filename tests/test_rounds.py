"""Confident pairs teach on, a round that does harm is undone, and a kill loses nothing."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn import api, rounds
from largegnn.artifacts import (
    AlignmentTask,
    DivisionPlan,
    EntityEmbeddings,
    LiteralEvidence,
    RoundRecord,
    SeedsFrom,
    TrainedModel,
)
from largegnn.data.inputs import DataInput
from largegnn.division.subgraphs import divide_again
from largegnn.embedding.train import train
from largegnn.pipeline import run_pipeline
from largegnn.rounds import RoundsOutcome
from largegnn.run import Run
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import noisy_vectors, tiny_task
from tests.small_world import WORLD

QUICK = [
    "device=cpu",
    "train.dim=8",
    "train.epochs=2",
    "train.repartition_every=1",
    "train.negatives=100",
    "train.validate_every=1",
    "train.checkpoint_seconds=0",
    "division.parts=2",
    "rounds.epochs=3",
    "rounds.min_confidence=0.2",
]


def settings_of(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=[*QUICK, *overrides])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pair and a run up to the vectors, to be copied and gone on with."""
    folder = tmp_path_factory.mktemp("rounds")
    api.generate(WORLD, folder=folder / "pair")
    run_pipeline(folder / "run", DataInput(folder=folder / "pair"), settings_of(), last="integrate")
    return folder


@pytest.fixture
def go_on(trained: Path, tmp_path: Path) -> Callable[..., Run]:
    """Goes on with the run in a copy of its own, with other settings of the rounds."""

    def run(name: str, *overrides: str) -> Run:
        if not (tmp_path / name).exists():
            shutil.copytree(trained / "run", tmp_path / name)
        return run_pipeline(tmp_path / name, DataInput(folder=trained / "pair"), settings_of(*overrides), last="rounds")

    return run


class KilledError(Exception):
    """As if the process had ended here."""


def let_harm_be(monkeypatch: pytest.MonkeyPatch, values: Iterable[bool]) -> None:
    """What the valid links say of each round."""
    found = iter(values)
    monkeypatch.setattr(rounds, "_did_harm", lambda *_: next(found))


def results(run: Run) -> tuple[Any, Any]:
    return (
        run.artifact("refined_model", TrainedModel).entity_rows,
        run.artifact("refined_embeddings", EntityEmbeddings).vectors,
    )


def assert_same(one: Run, other: Run) -> None:
    for mine, theirs in zip(results(one), results(other), strict=True):
        assert np.array_equal(mine, theirs)


def history_of(run: Run) -> list[RoundRecord]:
    return list(run.outcome("rounds", RoundsOutcome).history)


def test_rounds_are_recorded_and_change_the_vectors(go_on: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    let_harm_be(monkeypatch, [False, False])
    run = go_on("run", "rounds.number=2")
    history = history_of(run)
    assert [entry.round for entry in history] == [1, 2]
    assert [entry.kept for entry in history] == [True, True]
    for entry in history:
        assert entry.valid_hits is not None
        assert 0 < entry.valid_hits < 1
        assert entry.num_pseudo_seeds > 0
        assert entry.num_judged > 0
        assert entry.share_right is not None
        assert 0 <= entry.share_right <= 1
    first = run.artifact("embeddings", EntityEmbeddings).vectors
    assert not np.allclose(results(run)[1], first)
    assert np.array_equal(run.embeddings.vectors, results(run)[1])
    assert not list(run.folder.glob("work-*"))


def test_none_are_made_by_default(trained: Path) -> None:
    run = Run.open(trained / "run")
    assert "rounds" not in run.finished
    assert run.summary.rounds is None
    assert run.embeddings is run.artifact("embeddings", EntityEmbeddings)


def test_few_seeds_are_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """`tiny_task` has 100 seeds; a twentieth of its 750 targets is 37."""
    task, settings = tiny_task(), settings_of()
    few = dataclasses.replace(task, train_links=task.train_links[:20])
    for given, channels, is_said in (
        (task, ("structure", "rules"), False),
        (few, ("structure", "rules"), True),
        (few, ("structure", "literals", "rules"), False),
    ):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            rounds.advise_rounds(given, channels, settings.protocol)
        assert ("--rounds 3 finds more pairs" in caplog.text) == is_said


def test_the_first_round_that_does_harm_ends_it(go_on: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    let_harm_be(monkeypatch, [False])
    one = go_on("one", "rounds.number=1")
    let_harm_be(monkeypatch, [False, True, False])
    ended = go_on("ended", "rounds.number=3")
    assert [entry.kept for entry in history_of(ended)] == [True, False]
    assert_same(ended, one)
    let_harm_be(monkeypatch, [True])
    nothing = go_on("nothing", "rounds.number=3")
    assert [entry.kept for entry in history_of(nothing)] == [False]
    assert np.array_equal(results(nothing)[1], nothing.artifact("embeddings", EntityEmbeddings).vectors)


@pytest.mark.parametrize(
    ("lost", "gained", "harm"),
    [(0, 0, False), (1, 0, False), (2, 0, True), (6, 3, False), (7, 3, True), (3, 9, False)],
)
def test_harm_is_more_than_chance(lost: int, gained: int, harm: bool) -> None:
    """The deviation of nine tosses is three: six lost and three gained may be chance, and seven and three not."""
    before, after = np.zeros((10, 2), dtype=bool), np.zeros((10, 2), dtype=bool)
    before.ravel()[:lost] = True
    after.ravel()[lost : lost + gained] = True
    before.ravel()[-2:] = after.ravel()[-2:] = True
    assert rounds._did_harm(before, after) == harm


def test_killed_between_rounds_it_ends_the_same(go_on: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    let_harm_be(monkeypatch, itertools.repeat(False))
    clean = go_on("clean", "rounds.number=2")
    calls, divisions = [0], [0]

    def dying(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2:
            raise KilledError
        return train(*arguments, **options)

    def counting(*arguments: Any) -> Any:
        divisions[0] += 1
        return divide_again(*arguments)

    monkeypatch.setattr(rounds, "train", dying)
    monkeypatch.setattr(rounds, "divide_again", counting)
    let_harm_be(monkeypatch, itertools.repeat(False))
    with pytest.raises(KilledError):
        go_on("killed", "rounds.number=2")
    let_harm_be(monkeypatch, itertools.repeat(False))
    again = go_on("killed", "rounds.number=2")
    assert divisions[0] == 6, "no epoch of the first round was made again"
    assert history_of(again) == history_of(clean)
    assert_same(again, clean)


@pytest.mark.parametrize("moment", [2, 5, 6])
def test_killed_within_a_round_it_ends_the_same(
    moment: int, go_on: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round has three epochs, and a new division before each."""
    let_harm_be(monkeypatch, itertools.repeat(False))
    clean = go_on("clean", "rounds.number=2")
    calls = [0]

    def dying(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == moment:
            raise KilledError
        return divide_again(*arguments)

    monkeypatch.setattr(rounds, "divide_again", dying)
    let_harm_be(monkeypatch, itertools.repeat(False))
    with pytest.raises(KilledError):
        go_on("killed", "rounds.number=2")
    let_harm_be(monkeypatch, itertools.repeat(False))
    again = go_on("killed", "rounds.number=2")
    assert calls[0] < 6 + moment, "it went on from a checkpoint"
    assert history_of(again) == history_of(clean)
    assert_same(again, clean)


def test_without_valid_links_all_rounds_are_made(trained: Path, tmp_path: Path) -> None:
    pair = api.load(trained / "pair")
    settings = settings_of("rounds.number=2", "protocol.seeds_from=train+valid", "integrate.method=average")
    run = api.run_task(tmp_path / "run", pair.task, pair.names, settings, last="rounds")
    history = history_of(run)
    assert len(history) == 2
    for entry in history:
        assert entry.kept
        assert entry.valid_hits is None
        assert entry.share_right is None
        assert entry.num_judged == 0
    assert run.artifact("refined_embeddings", EntityEmbeddings).covered.all()


@pytest.mark.parametrize("least", [0.0, 0.6, 0.9])
def test_pseudo_seeds_are_sure_free_and_judged(least: float) -> None:
    task = tiny_task()
    settings = settings_of(f"rounds.min_confidence={least}", "match.min_precision=1.0")
    found = rounds_of(task, settings, ("structure", "rules")).pseudo_seeds(noisy_vectors(task, 0.8), 0)
    pseudo = found.pairs
    for side in (0, 1):
        assert len(set(pseudo[:, side].tolist())) == len(pseudo)
    assert not set(pseudo.ravel().tolist()) & set(task.train_links.ravel().tolist())
    valid = {(int(source), int(target)) for source, target in task.valid_links}
    ends = {end for link in valid for end in link}
    judged = [(int(s), int(t)) for s, t in pseudo.tolist() if s in ends or t in ends]
    assert found.num_judged == len(judged) > 20
    assert found.share_right is not None
    assert found.share_right == pytest.approx(sum(pair in valid for pair in judged) / len(judged))
    assert found.share_right > least - 0.1, "as sure as they were said to be"
    # A mutual pair is the first choice of both ends.
    both = {tuple(link) for link in task.valid_links[found.valid_found.all(axis=1)].tolist()}
    assert {pair for pair in judged if pair in valid} <= both
    assert found.valid_hits == pytest.approx(found.valid_found.mean())


def rounds_of(
    task: AlignmentTask, settings: Settings, channels: tuple[str, ...] = ("structure",)
) -> rounds._RoundRunner:
    plan = DivisionPlan(2, 900, "by hand")
    return rounds._RoundRunner(task, plan, LiteralEvidence.empty(), channels, settings, seed=0, device="cpu")


def test_a_round_sees_the_seeds_and_the_pseudo_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    task = tiny_task()
    free_source = np.setdiff1d(np.arange(task.num_source_entities), task.train_links[:, 0])[:5]
    free_target = np.setdiff1d(np.arange(task.num_source_entities, task.num_entities), task.train_links[:, 1])[:5]
    pseudo = np.stack([free_source, free_target], axis=1)
    handed: list[Any] = []

    def noting(*arguments: Any, **_: Any) -> Any:
        handed[:] = arguments
        raise KilledError

    monkeypatch.setattr(rounds, "train", noting)
    expected_valid: dict[SeedsFrom, int] = {"train": 200, "train+valid": 0}
    for seeds_from, num_valid in expected_valid.items():
        settings = settings_of(f"protocol.seeds_from={seeds_from}")
        rows = np.zeros((task.num_entities, 8), dtype=np.float32)
        model = TrainedModel("gcn", rows, rows[: 2 * task.num_relations], np.zeros(1, dtype=np.float32))
        with pytest.raises(KilledError):
            rounds_of(task, settings).train(pseudo, 1, model, None)
        more, _, protocol, options, _, _ = handed
        expected = {tuple(link) for link in task.seeds(seeds_from).tolist()}
        assert {tuple(link) for link in more.train_links.tolist()} == expected | {tuple(p) for p in pseudo.tolist()}
        assert len(more.valid_links) == num_valid
        assert options.epochs == 3
        assert protocol.seeds_from == "train"
