"""Flags and options of a run become one request, checked as settings are."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from largegnn.cli import options
from largegnn.cli.align import align_command, train_command
from largegnn.cli.data import inspect_command
from largegnn.cli.divide import divide_command
from largegnn.errors import InputError
from largegnn.settings import PRESETS, Settings, describe

received: list[tuple[options.RunRequest, bool]] = []


@click.group()
def app() -> None:
    pass


@app.command("run")
@options.takes_request(
    *options.DATA_FLAGS,
    *options.RUN_FLAGS,
    "--cap",
    folder=options.RunFolder(last="integrate"),
)
@options.json_option
def run_command(request: options.RunRequest, as_json: bool) -> None:
    """Run."""
    received.append((request, as_json))


@app.command("look")
@options.takes_request("--fold")
def look_command(request: options.RunRequest) -> None:
    """Look."""
    received.append((request, False))


def request(*arguments: str) -> options.RunRequest:
    received.clear()
    CliRunner().invoke(app, ["run", *arguments], catch_exceptions=False)
    return received[0][0]


def test_nothing_given_is_the_defaults() -> None:
    found = request("data")
    assert found.settings == Settings()
    assert found.given is not None
    assert found.given.folder == Path("data")
    assert (found.out, found.force, found.first, found.last) == (Path("run"), None, None, "integrate")
    assert received[0][1] is False


def test_every_input_option_arrives() -> None:
    links = ["--seeds", "c", "--valid-links", "d", "--test-links", "e", "--source-names", "g", "--target-names", "h"]
    found = request("a", "b", *links, "-o", "f", "--force", "train", "--from", "merge", "--to", "match", "--json").given
    assert found is not None
    paths = (found.source, found.target, found.seeds, found.valid_links, found.test_links)
    assert (*paths, found.source_names, found.target_names) == tuple(map(Path, "abcdegh"))
    got, as_json = received[0]
    assert (got.out, got.force, got.first, got.last, as_json) == (Path("f"), "train", "merge", "match", True)


def test_every_flag_sets_its_setting() -> None:
    given = [
        *("--valid-share", "0.2", "--format", "tsv", "--fold", "2", "--skip-unknown", "--seeds-from", "train+valid"),
        *("--seed", "4", "--device", "cpu", "--channels", "structure", "--rounds", "3", "--min-precision", "0.9"),
        *("--cap", "500", "--source-key", "id", "--target-key", "Product No."),
    ]
    settings = request("data", *given).settings
    assert settings.data.model_dump() == {
        "format": "tsv",
        "layout": "auto",
        "fold": 2,
        "valid_share": 0.2,
        "source_key": "id",
        "target_key": "Product No.",
        "skip_unknown": True,
    }
    assert settings.protocol.seeds_from == "train+valid"
    assert (settings.seed, settings.device, settings.channels) == (4, "cpu", ("structure",))
    assert (settings.rounds.number, settings.match.min_precision) == (3, 0.9)
    assert settings.landmarks.cap == 500


def test_flags_win_over_set_file_and_preset(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("seed = 2\n[division]\nparts = 7\n[train]\ndim = 9\n")
    given = ["--preset", "15k", "--config", str(tmp_path / "own.toml"), "--set", "seed=3", "--set", "train.dim=8"]
    settings = request("data", *given, "--seed", "4").settings
    assert (settings.seed, settings.division.parts, settings.train.dim) == (4, 7, 8)
    assert settings.landmarks.cap == PRESETS["15k"]["landmarks"]["cap"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["data", "--seed", "one"], "the setting seed has an impossible value"),
        (["data", "--seed", "9" * 5_000], "takes at most 2,000 characters"),
        (["data", "--valid-share", "nan"], r"the setting data\.valid_share"),
        (["data", "--format", "tvs"], "no format is called 'tvs'"),
        (["data", "--channels", "rules,rules"], "named twice"),
        ([], "no input was given"),
        (["data", "--resume"], "takes input and settings from the run folder"),
        (["--resume", "--out", "nowhere"], "the folder is not a run"),
    ],
)
def test_what_cannot_be_is_refused(given: list[str], problem: str) -> None:
    with pytest.raises(InputError, match=problem) as error:
        request(*given)
    assert len(str(error.value)) < 1_000


def test_a_command_without_a_run_folder_has_no_options_of_one() -> None:
    assert CliRunner().invoke(app, ["look", "data", "--fold", "2"]).exit_code == 0
    assert CliRunner().invoke(app, ["look", "data", "--out", "x"]).exit_code == 2
    assert CliRunner().invoke(app, ["look", "data", "--seed", "2"]).exit_code == 2


def test_settings_of_a_request_can_be_changed() -> None:
    first = request("data", "--seed", "3")
    second = first.with_changes(["division.parts=4", "seed=5"])
    assert (first.settings.seed, first.settings.division.parts) == (3, "auto")
    assert (second.settings.seed, second.settings.division.parts) == (5, 4)
    assert second.given == first.given


def test_the_help_of_a_flag_is_that_of_its_setting() -> None:
    known = {setting.key: setting for setting in describe(Settings)}
    shown = CliRunner().invoke(app, ["run", "--help-all"], terminal_width=400).stdout
    for flag in (*options.DATA_FLAGS, *options.RUN_FLAGS):
        line = next(line for line in shown.splitlines() if line.strip().startswith(f"{flag} "))
        setting = known[options.FLAGS[flag]]
        assert setting.help in line
        assert setting.key in line
        assert setting.kind == "switch" or setting.allowed in line


def test_help_shows_what_most_people_need_and_help_all_the_rest() -> None:
    few, every = (
        CliRunner().invoke(app, ["run", option], terminal_width=400).stdout for option in ("--help", "--help-all")
    )
    for option in ("--seeds", "--out", "--rounds", "--min-precision", "--device", "--resume", "--help-all"):
        assert f" {option} " in few
    for option in ("--valid-links", "--fold", "--set", "--config", "--force", "--cluster"):
        assert f" {option} " not in few
        assert f" {option} " in every
    assert sum(line.lstrip("│ ").startswith("--") for line in few.splitlines()) <= 13


def test_every_flag_has_a_setting_and_a_command() -> None:
    known = {setting.key for setting in describe(Settings)}
    assert set(options.FLAGS.values()) <= known
    commands = (align_command, train_command, divide_command, inspect_command)
    given = {name for command in commands for option in command.params for name in option.opts}
    assert set(options.FLAGS) <= given
