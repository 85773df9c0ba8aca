from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from largegnn.embedding.options import TrainOptions
from largegnn.errors import ArtifactError, InputError
from largegnn.settings import TrainSettings
from tests.embedding.small_runs import train_options


def test_the_defaults_are_those_of_the_settings_and_no_others() -> None:
    assert all(field.default is field.default_factory for field in dataclasses.fields(TrainOptions))
    # Members are trained one after the other: of them a trainer knows nothing.
    defaults = TrainSettings().model_dump(exclude={"members"})
    assert dataclasses.asdict(TrainOptions(**defaults)) == defaults


@pytest.mark.parametrize(
    "wrong",
    [
        {"dim": 0},
        {"epochs": -1},
        {"validate_every": 0},
        {"repartition_every": -1},
        {"dropout": 1.0},
        {"learning_rate": math.nan},
    ],
)
def test_impossible_options_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ArtifactError, match=next(iter(wrong))):
        train_options(**wrong)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_impossible_weights_are_refused(weight: float) -> None:
    with pytest.raises(ArtifactError, match="the weight of the loss alignment"):
        train_options(losses={"alignment": weight})


@pytest.mark.parametrize("losses", [{}, {"alignment": 0.0}])
def test_training_needs_a_loss(losses: dict[str, float]) -> None:
    with pytest.raises(InputError, match="no loss has a weight"):
        train_options(losses=losses)


def test_what_was_given_can_be_changed_without_harm() -> None:
    losses: dict[str, Any] = {"alignment": 1.0}
    chosen = train_options(losses=losses)
    losses["alignment"] = 0.0
    assert chosen.losses == {"alignment": 1.0}
