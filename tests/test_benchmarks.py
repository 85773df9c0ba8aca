"""Every benchmark can be imported and says what it measures; settings are compared without test links."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from largegnn import api
from largegnn.matching.confidence.labelled_pairs import Weights
from largegnn.paper.origin import origin_of
from largegnn.settings import Settings
from tests.small_world import WORLD

SCRIPTS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_help(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    if path.stem == "figures":
        pytest.importorskip("altair")
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    module = load(path)
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
    choices = load(SCRIPTS[0].parent / "choices.py")
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


def test_a_choice_is_better_only_beyond_the_deviation_and_on_every_set() -> None:
    verdict = load(SCRIPTS[0].parent / "choices.py").verdict
    better, worse, same = (0.02, 0.01), (-0.02, 0.01), (0.01, 0.01)
    assert verdict([better, better]) == "**better**"
    assert verdict([worse, worse]) == "worse"
    assert verdict([same, same]) == "no difference"
    assert verdict([better, same]) == "better on some"
    assert verdict([worse, same]) == "worse on some"
    assert verdict([better, worse, same]) == "better and worse"


def test_weights_that_stand_in_are_judged_by_the_order_of_right_and_wrong_pairs() -> None:
    """Two features, of which the first says nothing and the second separates all but one pair."""
    stand_ins = load(SCRIPTS[0].parent / "stand_ins.py")
    features = np.array([[1, 3.0], [2, 2.5], [3, 2.0], [1, 0.5], [2, 1.0], [3, 2.2]])
    right = np.array([True, True, True, False, False, False])
    origin = origin_of(Settings(), [])

    def run(*weights: float) -> Any:
        return stand_ins.Judged("x", 0, "csls", features, right, np.ones(6), Weights(np.array(weights), 0.0), origin)

    assert stand_ins.area(run(1, 0).stand_in, run(1, 0)) == pytest.approx(0.5)
    assert stand_ins.area(run(0, 1).stand_in, run(0, 1)) == pytest.approx(8 / 9)
    found = stand_ins.fitted([run(1, 0)])
    assert found.features[1] > 0
    assert stand_ins.area(found, run(1, 0)) >= 8 / 9
