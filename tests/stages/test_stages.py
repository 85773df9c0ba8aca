"""The order of the stages, and that each one says truly what it reads: a fingerprint covers no more than that."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

from largegnn import settings as all_settings
from largegnn.artifacts import Evaluation
from largegnn.errors import InputError
from largegnn.settings import Settings
from largegnn.stages import STAGE_NAMES, STAGES, Stage, derived_seed, stage_index

BY_NAME = {stage.name: stage for stage in STAGES}
MADE_BY = {key: stage.name for stage in STAGES for key in stage.makes} | {
    "task_with_test_links": "load",
    "final_embeddings": "rounds",
}
# Where the machine is used and where files lie makes no difference to what a stage makes.
NO_DIFFERENCE = {"device", "engine", "cluster"}


def asked_for(stage: Stage) -> set[str]:
    return set(inspect.signature(stage.function).parameters)


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_declares_the_settings_it_is_handed(name: str) -> None:
    """`landmarks` once read the protocol without declaring it, and `rounds` runs others: it is handed all settings."""
    stage = BY_NAME[name]
    sections = asked_for(stage) & set(Settings.model_fields) - NO_DIFFERENCE
    if asked_for(stage) & {"seed", "run_seed"}:
        sections.add("seed")
    if "settings" in asked_for(stage):
        others = {"data", "compare", "evaluate", "report"}  # what they say is in the artifacts, or comes later
        assert set(stage.sections) == set(Settings.model_fields) - NO_DIFFERENCE - others
    elif "divisions" in asked_for(stage):
        # Divisions depend on settings that the stages before have in their fingerprints.
        assert sections == set(stage.sections)
        assert {"merge", "partition"} <= set(stage.needs)
    else:
        assert sections == set(stage.sections)


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_needs_the_makers_of_what_it_is_handed(name: str) -> None:
    stage = BY_NAME[name]
    wanted = asked_for(stage)
    makers = {MADE_BY[key] for key in wanted & set(MADE_BY)}
    makers |= {key.removesuffix("_outcome") for key in wanted if key.endswith("_outcome")}
    if "summary" in wanted:
        makers |= {"evaluate"}
    assert makers <= set(stage.needs)
    assert all(STAGE_NAMES.index(need) < STAGE_NAMES.index(name) for need in stage.needs)


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_returns_what_the_table_says(name: str) -> None:
    stage = BY_NAME[name]
    made = get_type_hints(get_type_hints(stage.function, localns=vars(all_settings))["return"])
    assert made.pop("outcome") is stage.outcome_type
    assert set(made) == set(stage.makes)


def test_test_links_are_handed_to_the_evaluation_alone() -> None:
    assert [stage.name for stage in STAGES if "task_with_test_links" in asked_for(stage)] == ["evaluate"]
    assert BY_NAME["evaluate"].outcome_type is Evaluation
    # The folder has them too: only the stage that writes files into it may ask for that.
    assert [stage.name for stage in STAGES if "folder" in asked_for(stage)] == ["report"]


def test_a_section_that_makes_no_difference_is_not_read() -> None:
    rounds, none, one = BY_NAME["rounds"], Settings(), Settings.of({"rounds.number": 1})
    assert set(rounds.settings_read(none)) == {"rounds"}
    assert set(rounds.settings_read(one)) == set(rounds.sections)


def test_names_and_seeds() -> None:
    assert STAGE_NAMES[0] == "load"
    assert STAGE_NAMES[-1] == "report"
    with pytest.raises(InputError, match="no stage is called 'land'"):
        stage_index("land")
    assert derived_seed(0, "train") == derived_seed(0, "train") != derived_seed(0, "search")
    assert derived_seed(0, "train") != derived_seed(1, "train")
