"""Run folders with one file damaged: what comes out of them is right, or they are refused in words."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from largegnn.review.pages import PAGES
from tests.fuzz.judge import Judge, Outcome, Trial, require
from tests.fuzz.mutate import generator
from tests.fuzz.run_folders import COMMANDS, DAMAGES, damage, finished_run, interrupted_run
from tests.fuzz.seed import num_inputs

MOMENTS = ("train: epoch 4", "rounds: round 1 with")


@dataclass(frozen=True)
class Undamaged:
    """A finished run, what each command gives for it, and a process to try commands in."""

    run: Path
    right: dict[str, Any]
    court: Judge


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undamaged]:
    run = finished_run(tmp_path_factory.mktemp("runs"))
    copy = run.with_name("copy")
    shutil.copytree(run, copy)
    # Resuming loads all that the other commands need.
    with Judge("tests.fuzz.run_folders:use_run", [str(copy), "resume"]) as court:
        outcomes = {command: court.ask(Trial(command, [str(copy), command])) for command in COMMANDS}
        assert all(outcome.ended == "accepted" for outcome in outcomes.values()), outcomes
        yield Undamaged(run, {command: outcome.result for command, outcome in outcomes.items()}, court)


def damaged(run: Path, folder: Path, commands: Sequence[str], undamaged: Undamaged, count: int) -> Iterator[Outcome]:
    """Try commands on copies of a run with one file damaged: all files in all ways, or `count` of them."""
    files = sorted(path.relative_to(run) for path in run.rglob("*") if path.is_file() and path.name != ".lock")
    # People may edit the pages of a run, which therefore stay as they are found; a page that is gone is written again.
    every = [
        (file, way, command)
        for file, way, command in itertools.product(files, DAMAGES, commands)
        if way == "delete" or str(file) not in PAGES
    ]
    rng = generator("run folder", run.name)
    for file, way, command in rng.sample(every, min(count, len(every))):
        copy = folder / "run"
        shutil.copytree(run, copy)
        damage(rng, copy / file, way)
        name = f"{run.name}-{str(file).replace('/', '-')}-{way}-{command}"
        outcome = undamaged.court.ask(Trial(name, [str(copy), command], copy))
        if outcome.ended == "accepted" and outcome.result != undamaged.right[command]:
            found = f"a wrong result: {outcome.result}\ninstead of: {undamaged.right[command]}"
            outcome = replace(outcome, ended="failed", detail=found)
        yield outcome
        for path in folder.iterdir():
            shutil.rmtree(path)


def test_a_finished_run(undamaged: Undamaged, tmp_path: Path) -> None:
    count = num_inputs(10, 1 / 10)
    require(damaged(undamaged.run, tmp_path, list(COMMANDS), undamaged, count), "run-folders")


def test_an_interrupted_run(undamaged: Undamaged, tmp_path: Path) -> None:
    """Files of an unfinished training are there only now: checkpoints, divisions made beside it."""
    for moment in generator("moments").sample(MOMENTS, min(num_inputs(1), len(MOMENTS))):
        run = interrupted_run(undamaged.run.parent, moment)
        require(damaged(run, tmp_path, ["resume"], undamaged, num_inputs(2, 1 / 20)), "run-folders")
