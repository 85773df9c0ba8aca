from __future__ import annotations

import time
from pathlib import Path

import pytest

from largegnn.errors import InputError
from largegnn.settings import DEFAULT_LOSSES, PRESETS, WORLD_PRESETS, Settings, WorldSettings, resolve


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


def test_settings_of_one_section_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InputError, match="do not go together") as error:
        resolve(Settings, PRESETS, overrides=["search.k=4"])
    assert "search.k must be at least match.csls_k" in str(error.value.expected)


def test_weights_of_losses_change_those_named(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[train.losses]\nreconstruction = 5\n")
    settings = resolve(Settings, PRESETS, file=file, overrides=["train.losses.cross_subgraph=0"])
    assert settings.train.losses == {"alignment": 1.0, "reconstruction": 5.0, "cross_subgraph": 0.0}
    settings = resolve(Settings, PRESETS, overrides=["train.losses={reconstruction = 0}"])
    assert settings.train.losses == DEFAULT_LOSSES | {"reconstruction": 0.0}


@pytest.mark.parametrize("key", ["fractions:Fraction", '"fractions:Fraction"', "'fractions:Fraction'"])
def test_a_loss_of_ones_own_is_added_by_its_address(key: str) -> None:
    settings = resolve(Settings, PRESETS, overrides=[f"train.losses.{key}=0.5"])
    assert settings.train.losses == DEFAULT_LOSSES | {"fractions:Fraction": 0.5}
    again = resolve(Settings, PRESETS, values=settings.model_dump())
    assert again == settings


def test_an_unknown_loss_and_an_impossible_weight_are_refused() -> None:
    with pytest.raises(InputError, match="no loss is called 'reconstructio'") as error:
        resolve(Settings, PRESETS, overrides=["train.losses.reconstructio=1"])
    assert error.value.where == "the setting train.losses"
    assert "reconstruction" in str(error.value.expected)
    for weight in ("-1", "nan", "inf", "many", "true", "1e9"):
        with pytest.raises(InputError, match=r"train\.losses\.reconstruction has an impossible value"):
            resolve(Settings, PRESETS, overrides=[f"train.losses.reconstruction={weight}"])
    with pytest.raises(InputError, match=r"train\.losses has an impossible value"):
        resolve(Settings, PRESETS, overrides=["train.losses=5"])
    off = [f"train.losses.{name}=0" for name in DEFAULT_LOSSES]
    with pytest.raises(InputError, match="every loss is off"):
        resolve(Settings, PRESETS, overrides=off)


def test_lists_are_written_with_commas_or_as_in_toml() -> None:
    for text in ("structure,rules", " structure , rules", '["structure", "rules"]'):
        assert resolve(Settings, PRESETS, overrides=[f"channels={text}"]).channels == ("structure", "rules")
    assert resolve(Settings, PRESETS, overrides=["channels=structure"]).channels == ("structure",)
    assert resolve(Settings, PRESETS, overrides=["report.pages="]).report.pages == ()


def test_values_may_have_dotted_keys() -> None:
    values = {"train.dim": 8, "train": {"epochs": 3}, "train.losses.reconstruction": 0.0}
    settings = resolve(Settings, PRESETS, values=values)
    assert (settings.train.dim, settings.train.epochs) == (8, 3)
    assert settings.train.losses["reconstruction"] == 0
    with pytest.raises(InputError, match=r"no setting is called train\.dimm"):
        resolve(Settings, PRESETS, values={"train.dimm": 8})


def test_the_values_given_are_left_as_they_were() -> None:
    values = {"train": {"dim": 8}}
    resolve(Settings, PRESETS, values=values, overrides=["train.epochs=3"])
    assert values == {"train": {"dim": 8}}
    before = str(PRESETS)
    resolve(Settings, PRESETS, "15k", overrides=["division.parts=9"])
    assert str(PRESETS) == before


@pytest.mark.parametrize("override", ["seed=1\ndata.fold=2", "seed=1\r2", "data.format=tsv\n[data]"])
def test_text_after_a_line_break_is_not_lost(override: str) -> None:
    with pytest.raises(InputError, match=r"an impossible value|no format is called"):
        resolve(Settings, PRESETS, overrides=[override])


def test_a_comment_is_no_value() -> None:
    with pytest.raises(InputError, match=r"data\.fold has an impossible value"):
        resolve(Settings, PRESETS, overrides=["data.fold=2#3"])


HOSTILE = {
    "many digits": "9" * 1_900,
    "deep lists": "[" * 1_900,
    "closed deep lists": "[" * 900 + "]" * 900,
    "deep tables": "{a=" * 600,
    "many parts": "{" + "a." * 900 + "a=1}",
    "no number": "nan",
    "infinite": "inf",
    "huge": "1e308",
    "long": "x" * 60_000,
    "date": "1979-05-27",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize(
    "key",
    [
        "landmarks.cap",
        "search.k",
        "train.dim",
        "train.learning_rate",
        "data.format",
        "channels",
        "train.losses",
        "device",
    ],
)
def test_hostile_values_are_refused_at_once(key: str, text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InputError) as error:
        resolve(Settings, PRESETS, overrides=[f"{key}={text}"])
    assert len(str(error.value)) < 1_500
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        "seed = " + "9" * 5_000,
        "seed = " + "[" * 20_000,
        "seed = " + "{a=" * 20_000,
        ".".join("a" * 150) + " = 1",
        "x" * 60_000 + " = 1",
        "[train]\nlosses = " + "{a=" * 90 + "1" + "}" * 90,
        "[train]\ndim = " + "[" * 90 + "]" * 90,
        "# " + "x" * 200_000,
        "train = 5",
        "[[train]]\ndim = 5",
    ],
)
def test_hostile_files_are_refused_at_once(text: str, tmp_path: Path) -> None:
    (tmp_path / "hostile.toml").write_text(text)
    start = time.perf_counter()
    with pytest.raises(InputError) as error:
        resolve(Settings, PRESETS, file=tmp_path / "hostile.toml")
    assert len(str(error.value)) < 4_000
    assert time.perf_counter() - start < 2


def test_files_that_are_no_files_are_refused(tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / ("x" * 300), Path("a\0b"), Path("/dev/zero")):
        with pytest.raises(InputError, match="the settings file"):
            resolve(Settings, PRESETS, file=file)


def test_long_unknown_keys_are_cut() -> None:
    for override in ("x" * 1_500 + "=1", "train." + "x" * 1_500 + "=1"):
        with pytest.raises(InputError, match="no setting is called") as error:
            resolve(Settings, PRESETS, overrides=[override])
        assert len(error.value.problem) < 200


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("train.dimm", "train.dim"),
        ("dim", "train.dim"),
        ("train.epoch", "train.epochs"),
        ("channel", "channels"),
        ("match.min_precison", "match.min_precision"),
    ],
)
def test_mistyped_keys_get_near_ones(key: str, near: str) -> None:
    with pytest.raises(InputError, match=f"no setting is called {key}") as error:
        resolve(Settings, PRESETS, overrides=[f"{key}=1"])
    assert near in str(error.value.expected).split(", ")
