"""The stage `partition`: the plan is refused before any work, and parts over the cap get no landmarks but a warning."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn import api, repartition
from largegnn.artifacts import AlignmentTask, Partition
from largegnn.division import subgraphs
from largegnn.errors import InputError
from largegnn.parts import PARTITIONERS
from largegnn.pipeline import run_pipeline
from largegnn.settings import METHODS, Settings
from tests.noisy_vectors import tiny_task
from tests.small_world import WORLD


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return tiny_task()


def even_share(task: AlignmentTask, parts: int) -> int:
    return -(-task.num_entities // parts)


def test_parts_that_exceed_the_cap_get_no_landmarks(task: AlignmentTask, caplog: pytest.LogCaptureFixture) -> None:
    """SBP puts entities into several parts, so that its parts exceed the paper's cap: a quarter over an even share."""
    cap = round(1.25 * task.num_entities / 4)
    values = {"division.partitioner": "sbp", "division.parts": 4, "landmarks.cap": cap, "landmarks.enabled": True}
    with caplog.at_level(logging.WARNING, logger="largegnn"):
        found = api.divide(task, values)
    over = found.parts.sizes > cap
    assert over.any()
    assert f"{over.sum()} of 4 parts are larger than the cap of {cap:,} entities" in caplog.text
    for index in range(4):
        part, filled = found.parts.part(index), found.membership.part(index)
        if over[index]:
            assert np.array_equal(part, filled)
        else:
            assert len(part) < len(filled) <= cap


def test_nothing_is_warned_of_where_there_is_room(task: AlignmentTask, caplog: pytest.LogCaptureFixture) -> None:
    for values in ({}, {"landmarks.enabled": False}, {"division.parts": 3}):
        found = api.divide(task, {"division.parts": 4, **values})
        assert "larger than the cap" not in caplog.text
        assert found.membership.sizes.max() <= found.cap


def test_a_cap_below_an_even_share_is_refused_before_anything_is_partitioned(
    task: AlignmentTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: Any) -> Partition:
        raise AssertionError("the plan was not looked at")

    monkeypatch.setitem(PARTITIONERS._registered, "explode", explode)
    cap = even_share(task, 4) - 1
    values = {"division.partitioner": "explode", "division.parts": 4, "landmarks.cap": cap}
    with pytest.raises(InputError, match=f"4 parts of at most {cap} entities cannot hold"):
        api.divide(task, values)
    with pytest.raises(AssertionError, match="not looked at"):
        api.divide(task, {**values, "landmarks.cap": cap + 1})
    with pytest.raises(AssertionError, match="not looked at"):
        api.divide(task, {**values, "landmarks.enabled": False})


def test_a_cap_of_an_even_share_is_kept_where_the_parts_keep_it(task: AlignmentTask) -> None:
    found = api.divide(task, {"division.parts": 4, "landmarks.cap": even_share(task, 4)})
    assert found.membership.sizes.max() <= max(even_share(task, 4), found.parts.sizes.max())


def test_repartitioning_never_sees_test_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = tmp_path / "pair"
    made = api.generate(WORLD, folder=pair)
    assert len(made.task.test_links)
    run = run_pipeline(tmp_path / "run", api.data_input(pair), Settings(), last="subgraphs")
    seen: list[int] = []
    original = subgraphs.divide_again

    def watched(given: AlignmentTask, *others: Any) -> Any:
        seen.append(len(given.test_links))
        return original(given, *others)

    monkeypatch.setattr(subgraphs, "divide_again", watched)
    plan = {"num_parts": 2, "cap": 400, "reason": "by hand"}
    repartition._make(run.folder, run.settings.model_dump(mode="json"), plan, "work/one", 3)
    assert seen == [0]


def test_methods_are_names_of_partitioners() -> None:
    assert {sets["division"]["partitioner"] for sets in METHODS.values()} == {"metis", "cps", "sbp"}
