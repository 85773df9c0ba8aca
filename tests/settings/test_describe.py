from __future__ import annotations

import math

import pytest

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
    if setting.kind in ("integer", "number") or "number" in setting.allowed:
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


def test_the_names_that_are_allowed_are_listed() -> None:
    allowed = {setting.key: setting.allowed for setting in ALL}
    assert allowed["channels"] == "auto, or a list of some of structure, literals, rules"
    assert allowed["train.encoder"] == "one of dual_amn, gcn, or module:name"
    assert allowed["match.selection"] == "one of mutual_top1, mutual_knn, one_to_one, many_to_one"
