"""The dry run: sizes of the input, seconds and memory of each stage, warnings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from largegnn.artifacts import AlignmentTask
from largegnn.data.inputs import DataInput
from largegnn.errors import InputError
from largegnn.planning import forecast as module
from largegnn.planning import seconds
from largegnn.planning.division_plan import plan_for
from largegnn.planning.forecast import Forecast, forecast
from largegnn.planning.memory import estimate_memory_mb
from largegnn.settings import PRESETS, Settings, resolve


@pytest.fixture(autouse=True)
def steady_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seconds, "_speed", lambda device: 1e11)
    monkeypatch.setattr(module, "available_memory_mb", lambda: 100_000.0)


def make(folder: Path, *overrides: str) -> Forecast:
    return forecast(DataInput(folder=folder), resolve(Settings, PRESETS, overrides=["device=cpu", *overrides]))


def test_sizes_by_hand(toy_folder: Path) -> None:
    found = make(toy_folder, "division.parts=2", "landmarks.cap=8")
    assert (found.source_entities, found.target_entities, found.triples) == (5, 6, 11)
    assert (found.seeds, found.valid_links) == (2, 1)
    assert (found.subgraphs, found.cap, found.reason) == (2, 8, "both given")
    stages = ["load", "divide", "train", "integrate", "search", "match", "evaluate"]
    assert list(found.seconds) == list(found.memory_mb) == stages
    assert found.peak_memory_mb == max(found.memory_mb.values())
    assert found.rows() == [
        ("source entities", "5"),
        ("target entities", "6"),
        ("triples", "11"),
        ("seeds", "2"),
        ("valid links", "1"),
        ("subgraphs", "2"),
        ("cap", "8"),
    ]


def test_the_protocol_decides_what_a_seed_is(toy_folder: Path) -> None:
    found = make(toy_folder, "protocol.seeds_from=train+valid")
    assert (found.seeds, found.valid_links) == (3, 0)


def test_estimates_are_those_of_the_task(toy_folder: Path, toy_task: AlignmentTask) -> None:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", "division.parts=2", "landmarks.cap=8"])
    plan = plan_for(toy_task, settings.division, settings.landmarks, settings.device)
    found = make(toy_folder, "division.parts=2", "landmarks.cap=8")
    memory = estimate_memory_mb(toy_task, settings, plan)
    assert found.memory_mb == {stage: round(mb) for stage, mb in memory.items()}
    times = seconds.estimate_seconds(toy_task, settings, plan)
    assert found.seconds == {stage: round(time, 1) for stage, time in times.items()}


def test_plain_values(toy_folder: Path) -> None:
    found = make(toy_folder)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["peak_memory_mb"] == found.peak_memory_mb
    assert plain["memory_mb"] == dict(found.memory_mb)
    assert plain["warnings"] == list(found.warnings)
    assert plain["source_entities"] == 5


def test_too_few_seeds_are_warned_of(toy_folder: Path) -> None:
    (warning,) = make(toy_folder).warnings
    assert "2 seeds to train on" in warning


def test_too_little_memory_is_warned_of(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory_mb", lambda: 500.0)
    found = make(toy_folder)
    worst = max(found.memory_mb, key=lambda stage: found.memory_mb[stage])
    assert found.warnings[1].startswith(f"the stage {worst} would take about {found.peak_memory_mb:,.0f} MB")
    assert "500 MB are free" in found.warnings[1]
    monkeypatch.setattr(module, "available_memory_mb", lambda: None)
    assert len(make(toy_folder).warnings) == 1, "nothing is said of what is not known"


def test_what_cannot_be_run_is_refused(toy_folder: Path) -> None:
    with pytest.raises(InputError, match="more parts than entities"):
        make(toy_folder, "division.parts=12")
