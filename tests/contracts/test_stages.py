"""What every stage keeps: its name, what it is handed, what it gives back.

A stage's fingerprint covers the settings it declares and the stages it needs; a setting or an artifact that is read
without being declared would leave an old result in a run folder without a word.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from largegnn import settings as all_settings
from largegnn import stages
from largegnn.runs import arguments
from largegnn.runs.arguments import stage_arguments
from largegnn.runs.run import Run
from largegnn.settings import RoundSettings, Settings
from largegnn.settings.section import Section
from largegnn.stages import STAGE_NAMES, STAGES, Stage, derived_seed, stage_index

# What a stage may ask for without reading a setting that makes a difference, or an artifact.
PLAIN = {"device", "given", "folder", "work", "summary", "keep_literals"}
SEEDS = {"seed", "run_seed"}
MADE_BY = {key: stage.name for stage in STAGES for key in stage.makes}

every_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)


class RecordingRun:
    """A run that notes the artifacts and outcomes it is asked for, and gives their names."""

    def __init__(self) -> None:
        self.settings, self.given, self.folder = Settings(), None, Path("folder")
        self.artifacts: set[str] = set()
        self.outcomes: set[str] = set()

    def artifact(self, key: str, kind: type) -> str:
        self.artifacts.add(key)
        return key

    def outcome(self, stage: str, kind: type) -> str:
        self.outcomes.add(stage)
        return stage

    def task(self) -> str:
        return self.artifact("task", object)

    def task_without_test_links(self) -> str:
        return self.task()

    def channels(self) -> str:
        return "channels"

    def finished(self) -> list[str]:
        return list(STAGE_NAMES)

    def final_embeddings(self) -> str:
        self.artifact("refined_embeddings", object)
        return self.artifact("embeddings", object)

    def summary(self) -> str:
        return "summary"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> RecordingRun:
    """Divisions of any number are drawn from the merged graph by the plan; number 0 is that of the run folder."""
    recording = RecordingRun()

    def divisions(run: RecordingRun, work: Path) -> str:
        run.outcome("partition", object)
        return run.artifact("subgraphs", object) + run.artifact("merged", object)

    monkeypatch.setattr(arguments, "_divisions", divisions)
    return recording


def parameters(stage: Stage) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(stage.function).parameters)


def bound(stage: Stage, run: RecordingRun) -> dict[str, object]:
    return stage_arguments(cast(Run, run), stage, Path("work"))


def is_frozen(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


def test_there_is_a_file_for_every_stage_and_a_stage_for_every_file() -> None:
    folder = Path(stages.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(STAGE_NAMES)


@every_stage
def test_the_function_has_the_name_of_the_stage(stage: Stage) -> None:
    assert stage.function.__name__ == stage.name
    assert stage.function.__doc__
    assert stage.version >= 1


@every_stage
def test_a_stage_needs_earlier_ones_and_makes_what_nobody_else_does(stage: Stage) -> None:
    before = STAGE_NAMES[: stage_index(stage.name)]
    assert set(stage.needs) <= set(before)
    assert len(set(stage.needs)) == len(stage.needs)
    assert sum(len(one.makes) for one in STAGES) == len(MADE_BY)


@every_stage
def test_every_parameter_is_known(stage: Stage, run: RecordingRun) -> None:
    found, wanted = bound(stage, run), parameters(stage)
    unbound = wanted.keys() - found.keys()
    assert found.keys() <= wanted.keys()
    assert all(wanted[name].default is not inspect.Parameter.empty for name in unbound)


@every_stage
def test_artifacts_and_outcomes_come_from_the_stages_it_needs(stage: Stage, run: RecordingRun) -> None:
    bound(stage, run)
    assert {MADE_BY[key] for key in run.artifacts} | run.outcomes <= set(stage.needs)


@every_stage
def test_settings_are_exactly_those_it_declares(stage: Stage, run: RecordingRun) -> None:
    names = set(bound(stage, run))
    rest = names - PLAIN - {"divisions", "task", "task_with_test_links", "final_embeddings"} - run.artifacts
    sections = {name for name in rest - SEEDS if not name.endswith("_outcome")}
    if names & SEEDS:
        sections.add("seed")
    assert len(set(stage.sections)) == len(stage.sections)
    assert set(stage.sections) <= Settings.model_fields.keys()
    if "settings" in names:
        assert sections - {"settings"} <= set(stage.sections), "a stage that runs others declares what those read"
        called = STAGES[stage_index("merge") : stage_index("match") + 1]
        assert {section for one in called for section in one.sections} <= set(stage.sections)
    else:
        assert sections == set(stage.sections)


@every_stage
def test_a_section_is_handed_over_under_its_own_name_and_type(stage: Stage) -> None:
    for name, hint in typing.get_type_hints(stage.function, localns=vars(all_settings)).items():
        if isinstance(hint, type) and issubclass(hint, Section) and hint is not Settings:
            assert name in stage.sections
            assert Settings.model_fields[name].annotation is hint


@every_stage
def test_it_returns_its_artifacts_and_its_outcome(stage: Stage) -> None:
    made: Any = typing.get_type_hints(stage.function, localns=vars(all_settings))["return"]
    assert dataclasses.is_dataclass(made)
    assert is_frozen(made)
    fields = typing.get_type_hints(made)
    assert set(fields) == {*stage.makes, "outcome"}
    assert fields.pop("outcome") is stage.outcome_type
    for key, hint in fields.items():
        assert stage.makes[key] in (hint, *(kind for kind in typing.get_args(hint) if kind is not type(None)))


@every_stage
def test_an_artifact_is_taken_as_what_it_is(stage: Stage) -> None:
    kinds = {key: kind for one in STAGES for key, kind in one.makes.items()}
    for name, hint in typing.get_type_hints(stage.function, localns=vars(all_settings)).items():
        if name in kinds:
            # None where a channel is off that would have made it.
            assert kinds[name] in (hint, *typing.get_args(hint))
        if name.endswith("_outcome"):
            assert hint is STAGES[stage_index(name.removesuffix("_outcome"))].outcome_type


def refuse_what_json_loses(kind: Any) -> None:
    """Only what `from_plain` reads back: plain values, tuples, mappings, optional ones, dataclasses."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        assert len([part for part in parts if part is not type(None)]) == 1, f"{kind} is not one kind or None"
        refuse_what_json_loses(parts[0] if parts[0] is not type(None) else parts[1])
    elif isinstance(kind, type) and dataclasses.is_dataclass(kind):
        for hint in typing.get_type_hints(kind).values():
            refuse_what_json_loses(hint)
    elif origin is tuple:
        for part in parts:
            if part is not Ellipsis:
                refuse_what_json_loses(part)
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        assert parts[0] is str
        refuse_what_json_loses(parts[1])
    else:
        assert kind in (int, float, str, bool) or origin is Literal, f"{kind} is lost in JSON"


@every_stage
def test_an_outcome_survives_json(stage: Stage) -> None:
    assert dataclasses.is_dataclass(stage.outcome_type)
    assert is_frozen(stage.outcome_type)
    refuse_what_json_loses(stage.outcome_type)


@every_stage
def test_idle_sections_are_declared_ones(stage: Stage) -> None:
    for settings in (Settings(), Settings(rounds=RoundSettings(number=2))):
        idle = stage.idle_sections(settings)
        assert set(idle) <= set(stage.sections)
        assert stage.settings_read(settings).keys() - {"keep_literals"} == set(stage.sections) - set(idle)


def test_only_the_evaluation_sees_test_links() -> None:
    readers = [stage.name for stage in STAGES if "task_with_test_links" in parameters(stage)]
    assert readers == ["evaluate"]


def test_every_stage_has_a_seed_of_its_own() -> None:
    seeds = {derived_seed(0, name) for name in STAGE_NAMES}
    assert len(seeds) == len(STAGE_NAMES)
    assert derived_seed(1, "train") != derived_seed(0, "train") == derived_seed(0, "train")
