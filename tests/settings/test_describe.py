from __future__ import annotations

import math

import pytest

from largegnn.seams.tables import CHANNELS
from largegnn.settings import SettingInfo, Settings, WorldSettings, describe

ALL = [*describe(Settings), *describe(WorldSettings)]


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.key)
def test_every_setting_says_what_it_does_and_what_is_allowed(setting: SettingInfo) -> None:
    assert setting.help[0] in "0123456789" or setting.help[0].isupper() or ":" in setting.help
    assert setting.help.endswith(".")
    assert len(setting.help) <= 120
    assert setting.allowed not in ("", "text")


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.key)
def test_every_number_has_both_bounds(setting: SettingInfo) -> None:
    if setting.kind in ("integer", "number") or (setting.kind != "choices" and "number" in setting.allowed):
        assert "from" in setting.allowed or "above" in setting.allowed
        assert " to " in setting.allowed


def test_kinds_and_defaults() -> None:
    kinds = {setting.key: setting.kind for setting in ALL}
    assert [kinds[key] for key in ("seed", "train.dropout", "landmarks.enabled", "data.format")] == [
        "integer",
        "number",
        "switch",
        "text",
    ]
    assert (kinds["channels"], kinds["train.losses"], kinds["division.parts"]) == ("list", "weights", "text")
    for setting in describe(Settings):
        value: object = Settings()
        for name in setting.key.split("."):
            value = getattr(value, name)
        assert value == setting.default or (isinstance(value, float) and math.isclose(value, setting.default))


def test_the_names_of_parts_are_listed_with_those_of_this_process() -> None:
    allowed = {setting.key: setting for setting in ALL}["channels"]
    assert allowed.allowed == "auto, or a list of some of structure, literals, rules, or module:name"
    CHANNELS.add("names", object())  # type: ignore[arg-type]
    try:
        assert "structure, literals, rules, names" in allowed.allowed
    finally:
        CHANNELS.remove("names")
