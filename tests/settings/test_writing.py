from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.settings import PRESETS, WORLD_PRESETS, Settings, WorldSettings, resolve, to_toml, toml_value


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_toml(preset: str, tmp_path: Path) -> None:
    changes = ["seed=7", "data.valid_share=0.125", "train.losses.fractions:Fraction=0.25", "channels=rules"]
    settings = resolve(Settings, PRESETS, preset, overrides=changes)
    (tmp_path / "saved.toml").write_text(to_toml(settings))
    assert resolve(Settings, PRESETS, file=tmp_path / "saved.toml") == settings


@pytest.mark.parametrize("preset", WORLD_PRESETS)
def test_world_presets_are_valid(preset: str) -> None:
    settings = resolve(WorldSettings, WORLD_PRESETS, preset)
    assert tomllib.loads(to_toml(settings)) == settings.model_dump()


plain = st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(plain | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=8)


@given(values)
def test_any_plain_value_reads_back(value: object) -> None:
    assert tomllib.loads(f"value = {toml_value(value)}")["value"] == value
