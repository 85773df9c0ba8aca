"""Divisions made beside the training are the same whoever makes them, and whatever became of what was kept."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from largegnn import repartition
from largegnn.artifacts import DivisionPlan, SubgraphSet
from largegnn.data.inputs import DataInput
from largegnn.pipeline import run_pipeline
from largegnn.repartition import Repartitioner
from largegnn.run import Run
from largegnn.settings import Settings
from tests.cli.small_runs import make_pair


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("repartition")
    given = DataInput(folder=make_pair(folder / "pair"))
    return run_pipeline(folder / "run", given, Settings(), last="subgraphs")


def divisions_of(run: Run, work: str) -> Repartitioner:
    plan = run.outcome("partition", DivisionPlan)
    return Repartitioner(run.store, run.folder / work, run.settings, plan, 7, run.task)


def arrays_of(found: SubgraphSet) -> list[list[int]]:
    return [np.asarray(array).ravel().tolist() for array in vars(found).values()]


@pytest.fixture(scope="module")
def undisturbed(run: Run) -> list[list[int]]:
    """The second division."""
    with divisions_of(run, "work-calm") as divisions:
        divisions(0)
        return arrays_of(divisions(1))


def scratch_of(run: Run, work: str) -> Path:
    (folder,) = (run.folder / work).glob("division-0001")
    return folder


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "another"])
def test_what_a_killed_run_left_is_checked_before_it_is_used(
    run: Run, undisturbed: list[list[int]], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    work = f"work-{damage}"
    with divisions_of(run, work) as divisions:
        divisions(0)
        divisions(1)
    path = next(path for path in sorted(scratch_of(run, work).glob("*.npy")) if "triples" in path.name)
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-3] ^= 4
        path.write_bytes(data)
    elif damage == "cut":
        path.write_bytes(data[:-8])
    elif damage == "remove":
        path.unlink()
    else:
        shutil.rmtree(path.parent)
        shutil.copytree(run.folder / "06-subgraphs", path.parent)
    with caplog.at_level(logging.WARNING), divisions_of(run, work) as divisions:
        divisions(0)
        assert arrays_of(divisions(1)) == undisturbed
    assert "made again" in caplog.text


def test_what_is_whole_is_used_again(run: Run, undisturbed: list[list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    with divisions_of(run, "work-whole") as divisions:
        divisions(0)
        divisions(1)
    monkeypatch.setattr(repartition, "_make", None)
    with divisions_of(run, "work-whole") as divisions:
        divisions(0)
        assert divisions._helper is None
        monkeypatch.undo()
        assert arrays_of(divisions(1)) == undisturbed


def test_a_killed_helper_is_replaced_by_doing_the_work(
    run: Run, undisturbed: list[list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    with divisions_of(run, "work-lost") as divisions:
        divisions(0)
        assert divisions._helper is not None
        child = divisions._helper._started()
        os.kill(child.pid, signal.SIGKILL)
        found = divisions(1)
        assert arrays_of(found) == undisturbed
    assert "was ended by SIGKILL" in caplog.text
