"""What every entry of `ENGINES` keeps: a stage's own result, and its own errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, Partition, TaskNames
from largegnn.errors import InputError
from largegnn.runs.engines import run_here
from largegnn.runs.on_task import run_task
from largegnn.seams.tables import ENGINES
from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings, Settings
from largegnn.stages import STAGES, Stage, stage_index
from largegnn.stages.merge import MergeResult, merge

every_engine = pytest.mark.parametrize("name", ENGINES.own_names)
MERGE, PARTITION = STAGES[stage_index("merge")], STAGES[stage_index("partition")]


@every_engine
def test_returns_what_the_stage_returns(name: str, toy_task: AlignmentTask) -> None:
    arguments = {"task": toy_task, "protocol": ProtocolSettings()}
    made, expected = ENGINES[name](MERGE, arguments), merge(toy_task, ProtocolSettings())
    assert isinstance(made, MergeResult)
    assert made.outcome == expected.outcome
    for field in ("node_of_entity", "neighbor_ptr", "neighbors", "edge_weights", "node_weights"):
        assert np.array_equal(getattr(made.merged, field), getattr(expected.merged, field))
    assert arguments.keys() == {"task", "protocol"}


@every_engine
def test_errors_of_a_stage_are_its_own(name: str, toy_task: AlignmentTask) -> None:
    arguments = {
        "task": toy_task,
        "merged": merge(toy_task, ProtocolSettings()).merged,
        "protocol": ProtocolSettings(),
        "division": DivisionSettings(parts=99),
        "landmarks": LandmarkSettings(enabled=False),
        "seed": 0,
        "device": "cpu",
    }
    with pytest.raises(InputError, match="more parts than entities") as error:
        ENGINES[name](PARTITION, arguments)
    assert error.value.found == "99"


@every_engine
def test_a_run_by_any_engine_is_the_same(
    name: str, toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path
) -> None:
    settings = {"division": {"parts": 2}, "landmarks": {"enabled": False}, "device": "cpu"}
    runs = [
        run_task(tmp_path / engine, toy_task, toy_names, Settings.of({**settings, "engine": engine}), last="subgraphs")
        for engine in ("local", name)
    ]
    first, second = (run.artifact("membership", Partition) for run in runs)
    assert np.array_equal(first.entities, second.entities)
    assert np.array_equal(first.part_ptr, second.part_ptr)


SEEN: list[str] = []


def noting_engine(stage: Stage, arguments: Mapping[str, object]) -> object:
    SEEN.append(stage.name)
    return run_here(stage, arguments)


def test_an_engine_of_ones_own_is_given_every_stage(
    toy_task: AlignmentTask, toy_names: TaskNames, tmp_path: Path
) -> None:
    settings = {"division": {"parts": 2}, "landmarks": {"enabled": False}, "device": "cpu"}
    SEEN.clear()
    engine = Settings.of({**settings, "engine": f"{__name__}:noting_engine"})
    run_task(tmp_path / "run", toy_task, toy_names, engine, last="subgraphs")
    assert SEEN == ["literals", "merge", "partition", "landmarks", "subgraphs"], "load was put there"
    # What an engine makes is what any engine makes: nothing is computed again.
    run_task(tmp_path / "run", toy_task, toy_names, settings, last="subgraphs")
    assert len(SEEN) == 5
