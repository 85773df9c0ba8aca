"""Every setting at odd values, by `--set` and by a file; mutated settings; what is accepted can be planned with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from largegnn.settings import Settings, describe, toml_value
from tests.cli.small_runs import make_pair
from tests.fuzz.judge import Judge, Trial, require
from tests.fuzz.mutate import generator, mutate
from tests.fuzz.seed import num_inputs
from tests.fuzz.tokens import FORMATS

VALUES = {
    "zero": "0",
    "one": "1",
    "minus one": "-1",
    "1e308": "1e308",
    "inf": "inf",
    "nan": "nan",
    "10^40": "1" + "0" * 40,
    "5,000 digits": "9" * 5_000,
    "deep brackets": "[" * 50_000 + "]" * 50_000,
    "true": "true",
    "no text": '""',
    "long text": '"' + "x" * 60_000 + '"',
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge("tests.fuzz.checks:resolve_settings", [None]) as started:
        yield started


def settings() -> Iterator[tuple[str, str, str]]:
    """Key, name of the value, value as TOML writes it."""
    for setting in describe(Settings):
        for name, value in {**VALUES, "default": toml_value(setting.default)}.items():
            yield setting.key, name, value


def written(key: str, value: str) -> str:
    """A settings file with one setting."""
    *sections, last = key.split(".")
    return (f"[{'.'.join(sections)}]\n" if sections else "") + f"{last} = {value}\n"


@pytest.mark.parametrize("way", ["--set", "--config"])
def test_every_setting_at_odd_values(judge: Judge, way: str, tmp_path: Path) -> None:
    def trials() -> Iterator[Trial]:
        for number, (key, name, value) in enumerate(settings()):
            if way == "--set":
                # The command line itself takes no longer argument than 128 KB.
                yield Trial(f"{key}-{name}", [None, f"{key}={value}"])
                continue
            path = tmp_path / f"{number}.toml"
            path.write_text(written(key, value), encoding="utf-8")
            yield Trial(f"{key}-{name}", [str(path)], path)

    ended = require(judge.ask_all(trials()), "settings")
    assert all(outcome.seconds < 2 for outcome in ended[1:])
    for outcome in ended:
        if outcome.trial.name.endswith("-default"):
            assert outcome.ended == "accepted", outcome
        if outcome.ended == "refused":
            assert len(outcome.detail) < 5_000, "a message to be read"


def test_mutated_settings_files(judge: Judge, tmp_path: Path) -> None:
    whole = "\n".join(written(setting.key, toml_value(setting.default)) for setting in describe(Settings)).encode()
    # One table each: TOML allows no table twice.
    lines = [written(setting.key, toml_value(setting.default)).encode() for setting in describe(Settings)]

    def trials() -> Iterator[Trial]:
        for number in range(num_inputs(150)):
            rng = generator("toml", number)
            path = tmp_path / f"{number}.toml"
            path.write_bytes(mutate(rng, rng.choice(lines), [*lines, whole], FORMATS["toml"]))
            yield Trial(path.name, [str(path)], path)
            path.unlink()

    require(judge.ask_all(trials()), "settings")


def test_mutated_overrides(judge: Judge) -> None:
    lines = [f"{setting.key}={toml_value(setting.default)}".encode() for setting in describe(Settings)]

    def trials() -> Iterator[Trial]:
        for number in range(num_inputs(150)):
            rng = generator("set", number)
            text = mutate(rng, rng.choice(lines), lines, FORMATS["toml"]).decode("utf-8", "surrogateescape")
            yield Trial(f"set-{number}", [None, text.replace("\0", "")])

    require(judge.ask_all(trials()), "settings")


def test_the_command_line(tmp_path: Path) -> None:
    """A sample of the same through commands: `config`, and a dry run, which looks at sizes, memory and time.

    A value that no check refuses must not end in a traceback later.
    """
    pair, rng = make_pair(tmp_path / "pair"), generator("commands")
    align = ["align", str(pair), "--out", str(tmp_path / "run"), "--dry-run"]
    odd = [(f"{key}-{name}", f"{key}={value}") for key, name, value in settings() if len(value) < 10_000]
    trials = [
        Trial(f"{command[0]}-{name}", [*command, "--set", override])
        for command, count in ((["config"], num_inputs(25, 1 / 20)), (align, num_inputs(10, 1 / 20)))
        for name, override in rng.sample(odd, min(count, len(odd)))
    ]
    with Judge("tests.fuzz.checks:run_command", align) as judge:
        require(judge.ask_all(trials), "settings")
