from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from largegnn.errors import InputError
from largegnn.settings import DataSettings, Settings, TrainSettings


def test_settings_of_what_a_caller_may_give() -> None:
    settings = Settings(seed=3)
    assert Settings.of(settings) is settings
    assert Settings.of(None) == Settings()
    assert Settings.of({"seed": 3}) == settings
    assert Settings.of({"train": {"dim": 8}}) == Settings.of({"train.dim": 8}) == Settings(train=TrainSettings(dim=8))
    assert DataSettings.of({"fold": 2}).fold == 2


@pytest.mark.parametrize("value", ["settings.toml", 5, [], DataSettings(), Settings])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="the settings are no Settings") as error:
        Settings.of(value)
    assert "a mapping" in str(error.value.expected)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"traim": {}}, "no setting is called traim"),
        ({"train": {"dims": 8}}, r"no setting is called train\.dims"),
        ({"train": {"dim": "8"}}, r"the setting train\.dim has an impossible value"),
        ({"train": 8}, "no setting is called train"),
        ({5: 8}, "the key of a setting is text"),
        ({"train": {5: 8}}, "the key of a setting is text"),
    ],
)
def test_wrong_mappings_are_refused(values: Mapping[Any, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Settings.of(values)


def test_a_section_made_by_hand_names_the_full_key() -> None:
    with pytest.raises(InputError, match=r"the setting train\.dim has an impossible value") as error:
        TrainSettings(dim=0)
    assert "from 1 to 4,096" in str(error.value.expected)
    assert error.value.found == "0"
    with pytest.raises(InputError, match=r"no setting is called train\.dims"):
        TrainSettings(dims=5)  # type: ignore[call-arg]
    for value in (float("nan"), float("inf"), 1e308, 10**5_000):
        with pytest.raises(InputError, match=r"train\.learning_rate"):
            TrainSettings(learning_rate=value)


def test_settings_are_frozen_and_can_be_copied() -> None:
    settings = Settings(seed=3)
    with pytest.raises(ValueError, match="frozen"):
        settings.seed = 4  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(settings)) == copy.deepcopy(settings) == settings


def test_the_settings_import_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from largegnn.settings import PRESETS, Settings, describe, resolve\n"
        "resolve(Settings, PRESETS, '15k')\n"
        "[setting.allowed for setting in describe(Settings)]\n"
        "heavy = {'torch', 'polars', 'scipy', 'numba', 'faiss', 'pymetis', 'kaminpar', 'pyoxigraph'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
