from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

from largegnn.artifacts import EpochRecord, SubgraphSet
from largegnn.embedding.checkpoint import Checkpoints
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.trainer import Trainer
from largegnn.errors import TrainingError
from tests.embedding.killed_run import HITS, train
from tests.embedding.small_runs import (
    NUM_RELATIONS,
    are_equal,
    copies,
    random_subgraphs,
    small_model,
    small_options,
    small_trainer,
)

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("one_thread")


def run_killed(folder: Path, moments: tuple[tuple[str, str], ...]) -> list[int]:
    words = [word for moment in moments for word in moment]
    command = [sys.executable, "-m", "tests.embedding.killed_run", str(folder), *words]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=alone, check=True, timeout=300, capture_output=True, text=True)
    return [int(code) for code in ended.stdout.split()]


def test_killed_again_and_again_ends_as_if_undisturbed(tmp_path: Path) -> None:
    folders = tmp_path / "calm", tmp_path / "killed"
    for folder in folders:
        folder.mkdir()
    train(folders[0])
    # Before anything is saved; after the second epoch, before its checkpoint; while that of the third is written;
    # right after it, before the third is kept as the best (see HITS); within the fifth epoch.
    moments = (("step", "2"), ("validate", "2"), ("write", "3"), ("saved", "1"), ("step", "9"))
    assert run_killed(folders[1], moments) == [-9] * len(moments) + [0]
    calm, killed = (safetensors.torch.load_file(folder / "final.safetensors") for folder in folders)
    assert are_equal(calm, killed)
    losses = []
    for folder in folders:
        with safetensors.safe_open(folder / "final.safetensors", framework="pt") as file:
            losses.append(file.metadata()["losses"])
    assert losses[0] == losses[1]
    best = [safetensors.torch.load_file(folder / "checkpoints/epoch-000003/state.safetensors") for folder in folders]
    assert are_equal(best[0], best[1])
    assert are_equal(best[0], killed)


def test_the_valid_links_choose_the_epoch(tmp_path: Path) -> None:
    states = []

    def validate(model: EmbeddingModel) -> float:
        states.append(copies(model))
        return HITS[len(trainer.history)]

    options = small_options(epochs=len(HITS))
    subgraphs = random_subgraphs(3)
    trainer = small_trainer(subgraphs, options, validate=validate, folder=tmp_path)
    history = trainer.run()
    assert [record.valid_hits for record in history] == list(HITS)
    assert are_equal(copies(trainer.model), states[2])
    # A finished run that is resumed trains no more, and ends with the same.
    trainer = small_trainer(subgraphs, options, validate=validate, folder=tmp_path)
    assert trainer.run() == history
    assert len(states) == len(HITS)
    assert are_equal(copies(trainer.model), states[2])


def test_the_best_epoch_is_kept_where_there_is_no_folder() -> None:
    states = []

    def validate(model: EmbeddingModel) -> float:
        states.append(copies(model))
        return HITS[len(trainer.history)]

    trainer = small_trainer(random_subgraphs(3), small_options(epochs=len(HITS)), validate=validate)
    trainer.run()
    assert are_equal(copies(trainer.model), states[2])
    assert not are_equal(copies(trainer.model), states[-1])


def test_without_a_choice_the_last_epoch_is_taken(tmp_path: Path) -> None:
    states = []

    def validate(model: EmbeddingModel) -> float:
        states.append(copies(model))
        return HITS[len(trainer.history)]

    options = small_options(epochs=len(HITS))
    trainer = small_trainer(random_subgraphs(3), options, validate=validate, folder=tmp_path, choose=False)
    history = trainer.run()
    assert [record.valid_hits for record in history] == list(HITS)
    assert are_equal(copies(trainer.model), states[-1])
    assert [path.name for path in tmp_path.iterdir()] == [f"epoch-{len(HITS):06d}"]


def test_it_validates_every_few_epochs_and_at_the_end() -> None:
    trainer = small_trainer(random_subgraphs(1), small_options(epochs=5, validate_every=2), validate=lambda _: 0.5)
    assert [record.valid_hits for record in trainer.run()] == [None, 0.5, None, 0.5, 0.5]


def test_a_missing_best_epoch_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer: Trainer = small_trainer(
        random_subgraphs(1), small_options(), folder=tmp_path, validate=lambda _: -float(len(trainer.history))
    )
    restore_best = trainer._saved.restore_best

    def lose_and_restore_best(history: list[EpochRecord]) -> None:
        for path in tmp_path.rglob("*.safetensors"):
            path.unlink()
        restore_best(history)

    monkeypatch.setattr(trainer._saved, "restore_best", lose_and_restore_best)
    with caplog.at_level(logging.WARNING):
        trainer.run()
    assert "epoch 1 was best on the valid links but its checkpoint is missing" in caplog.text


def test_a_poisoned_row_stops_the_run_and_leaves_the_good_checkpoint(tmp_path: Path) -> None:
    options = small_options(repartition_every=1)
    model = small_model(random_subgraphs(2), options)
    good: dict[str, torch.Tensor] = {}

    def poison_before_third_epoch(number: int) -> SubgraphSet:
        if number == 2:
            good.update(copies(model))
            model.entities.values[3, 1] = math.nan
        return random_subgraphs(2)

    trainer = Trainer(model, poison_before_third_epoch, NUM_RELATIONS, options, 0, folder=tmp_path)
    with pytest.raises(TrainingError, match=r"diverged in epoch 3: its mean loss is nan.*--resume"):
        trainer.run()
    other = small_model(random_subgraphs(2), options)
    assert len(Checkpoints(other, tmp_path).resume()) == 2
    assert are_equal(copies(other), good)


def test_a_parameter_that_no_loss_shows_stops_the_run_too() -> None:
    subgraphs = random_subgraphs(2)
    outside = int(subgraphs.entities.max()) + 1
    trainer = small_trainer(subgraphs, small_options(losses={"alignment": 1.0, "reconstruction": 20.0}))
    trainer.model.entities.values[outside, 0] = math.inf
    with pytest.raises(TrainingError, match=r"epoch 1.*or a parameter is not finite"):
        trainer.run()


def test_a_learning_rate_beyond_reason_is_an_error() -> None:
    with pytest.raises(TrainingError, match=r"lower train\.learning_rate"):
        small_trainer(random_subgraphs(2), small_options(learning_rate=1e30)).run()
