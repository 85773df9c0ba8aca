"""Run folders with one file damaged: what comes out of them is right, or they are refused in words."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.judge import Judge, Outcome, Trial, judge, require
from tests.fuzz.mutate import generator
from tests.fuzz.run_folders import DAMAGES, damage, finished_run, interrupted_run
from tests.fuzz.seed import num_inputs

COMMANDS = ("evaluate_run", "export_run", "resume_run")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finished_run(tmp_path_factory.mktemp("runs"))


def damaged_runs(run: Path, folder: Path, count: int) -> Iterator[Trial]:
    """Copies of a run with one file damaged: all files in all ways, or `count` of them."""
    files = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    every = list(itertools.product(files, DAMAGES))
    rng = generator("run folder", run.name, folder.name)
    for file, way in rng.sample(every, min(count, len(every))):
        copy = folder / "run"
        shutil.copytree(run, copy)
        damage(rng, copy / file, way)
        yield Trial(f"{run.name}-{str(file).replace('/', '-')}-{way}", [str(copy)], copy)
        for path in folder.iterdir():
            shutil.rmtree(path)


def right_or_refused(outcomes: Iterator[Outcome], right: object) -> Iterator[Outcome]:
    """The outcomes; an accepted input with another result than the right one has failed."""
    for outcome in outcomes:
        if outcome.ended == "accepted" and outcome.result != right:
            yield Outcome(outcome.trial, "failed", f"a wrong result: {outcome.result}\ninstead of: {right}")
        else:
            yield outcome


def right_result(check: str, run: Path, folder: Path) -> object:
    """What an undamaged run gives."""
    shutil.copytree(run, folder / "undamaged")
    with Judge(check, [str(folder / "undamaged")]) as court:
        return court.ask(Trial("undamaged", [str(folder / "undamaged")])).result


@pytest.mark.parametrize("command", COMMANDS)
def test_a_finished_run(finished: Path, command: str, tmp_path: Path) -> None:
    check, copies = f"tests.fuzz.run_folders:{command}", tmp_path / "copies"
    copies.mkdir()
    right = right_result(check, finished, tmp_path)
    trials = damaged_runs(finished, copies, num_inputs(8, 1 / 30))
    require(right_or_refused(judge(check, [str(tmp_path / "undamaged")], trials), right), "run-folders")


@pytest.mark.parametrize("moment", ["train: epoch 4", "rounds: round 1 with"])
def test_an_interrupted_run(finished: Path, moment: str, tmp_path: Path) -> None:
    """Files of an unfinished training are there only now: checkpoints, divisions made beside it."""
    check, copies = "tests.fuzz.run_folders:resume_run", tmp_path / "copies"
    copies.mkdir()
    run = interrupted_run(finished.parent, moment)
    right = right_result(check, finished, tmp_path)
    trials = damaged_runs(run, copies, num_inputs(4, 1 / 30))
    require(right_or_refused(judge(check, [str(tmp_path / "undamaged")], trials), right), "run-folders")
