"""Every benchmark can be imported and has a help text; settings are compared without test links."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from pathlib import Path

import pytest

from lab import benchmarks
from lab.benchmarks import choices
from largegnn import api
from tests.small_world import WORLD

NAMES = sorted(path.stem for path in Path(benchmarks.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_help(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"lab.benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    assert module.__doc__
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


@pytest.mark.usefixtures("one_thread")
def test_settings_are_compared_by_valid_links_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its test links a set gives the same figures: they are not looked at."""
    monkeypatch.setitem(choices.VARIANTS, "tiny", {"train": {"dim": 8, "epochs": 2, "repartition_every": 0}})
    pair = api.generate(WORLD)
    rows = []
    for test_links in (pair.task.test_links, pair.task.test_links[:0]):
        task = choices.without_test_links(dataclasses.replace(pair.task, test_links=test_links))
        assert len(task.valid_links) == 0
        assert len(task.test_links) == len(pair.task.valid_links)
        rows.append(choices.measure(task, choices.VARIANTS["tiny"], 0, "cpu"))
    for scoring in choices.SCORINGS:
        assert rows[0][scoring] == rows[1][scoring]
        assert 0 < rows[0][scoring] <= 1
    choices.report([{"set": "x", "variant": "default", "seed": seed, **row} for seed, row in enumerate(rows)])
    assert "2 runs" in capsys.readouterr().out
