from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from largegnn.errors import InputError
from largegnn.settings import PRESETS, WORLD_PRESETS, Settings, WorldSettings, describe, resolve, to_toml


def test_later_sources_win(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("seed = 3\n[data]\nfold = 2\nvalid_share = 0.25\n[division]\nparts = 8\n")
    settings = resolve(Settings, PRESETS, "15k", file, ["data.fold=4", "data.skip_unknown=true"])
    assert (settings.seed, settings.data.fold, settings.data.valid_share) == (3, 4, 0.25)
    assert settings.data.skip_unknown is True
    assert settings.division.parts == 8
    assert resolve(Settings, PRESETS, "15k").division.parts == 5
    assert settings.landmarks.cap == 7_500


@pytest.mark.parametrize(
    ("override", "problem", "expected"),
    [
        ("data.fol=2", "no setting is called data.fol", "data.fold"),
        ("fold=2", "no setting is called fold", "data.fold"),
        ("data=2", "no setting is called data", "data."),
        ("data.fold=two", "data.fold has an impossible value", "a whole number from 1 to 1,000"),
        ("data.fold=0", "data.fold has an impossible value", "a whole number from 1 to 1,000"),
        ("data.fold=1.5", "data.fold has an impossible value", "a whole number from 1 to 1,000"),
        ("data.format=xml", "no format is called 'xml'", "auto, nt, nq, ttl, tsv, csv, parquet"),
        ("data.skip_unknown=1", "data.skip_unknown has an impossible value", "true or false"),
        ("data.valid_share=1", "data.valid_share has an impossible value", "a number from 0 to below 1"),
        ("division.parts=0", "division.parts has an impossible value", "a whole number from 1 to 100,000 or auto"),
        ("division.parts=some", "division.parts has an impossible value", "a whole number from 1 to 100,000 or auto"),
        ("nonsense", "--set takes", ""),
    ],
)
def test_bad_settings_name_the_key_and_what_is_allowed(override: str, problem: str, expected: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        resolve(Settings, PRESETS, overrides=[override])
    assert expected in (error.value.expected or "")


def test_bad_files_and_presets(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no preset is called 'huge'") as error:
        resolve(Settings, PRESETS, "huge")
    assert "15k, 100k, 1m" in str(error.value.expected)
    with pytest.raises(InputError, match="cannot be read"):
        resolve(Settings, PRESETS, file=tmp_path / "none.toml")
    for text in (b"seed = ", b"seed = 1\nseed = 2", b"\xff\xfe"):
        (tmp_path / "bad.toml").write_bytes(text)
        with pytest.raises(InputError, match="not valid TOML"):
            resolve(Settings, PRESETS, file=tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text("[data]\nfoldd = 2\n")
    with pytest.raises(InputError, match=r"no setting is called data\.foldd"):
        resolve(Settings, PRESETS, file=tmp_path / "bad.toml")


def test_impossible_combinations() -> None:
    with pytest.raises(InputError, match="do not go together") as error:
        resolve(WorldSettings, WORLD_PRESETS, "15k", overrides=["links=20000"])
    assert "links must not exceed" in str(error.value.expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_toml(preset: str, tmp_path: Path) -> None:
    settings = resolve(Settings, PRESETS, preset, overrides=["seed=7", "data.valid_share=0.125"])
    (tmp_path / "saved.toml").write_text(to_toml(settings))
    assert resolve(Settings, PRESETS, file=tmp_path / "saved.toml") == settings


@pytest.mark.parametrize("preset", WORLD_PRESETS)
def test_world_presets_are_valid(preset: str) -> None:
    settings = resolve(WorldSettings, WORLD_PRESETS, preset)
    assert tomllib.loads(to_toml(settings)) == settings.model_dump()


def test_every_setting_has_help() -> None:
    for model in (Settings, WorldSettings):
        for setting in describe(model):
            assert setting.help.endswith("."), setting.key
            assert setting.allowed, setting.key
