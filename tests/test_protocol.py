"""Test links are read by the step `evaluate` alone: with others in their place, all that comes before is the same."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask, Evaluation, PartitionQuality, StringTable, TaskNames
from largegnn.data.inputs import DataInput
from largegnn.data.write import write_pair
from largegnn.pipeline import run_pipeline, run_task
from largegnn.runfolder.store import RunStore
from largegnn.settings import PRESETS, STEPS, Settings, resolve
from tests.small_world import WORLD

QUICK = [
    "device=cpu",
    "train.dim=8",
    "train.epochs=2",
    "train.repartition_every=1",
    "train.negatives=100",
    "division.parts=2",
    "rounds.number=1",
    "rounds.epochs=1",
]
NO_NAMES = StringTable.from_strings(())
MADE = {
    *("task", "names", "literals", "literal_evidence", "merged", "parts", "membership", "subgraphs", "model"),
    *("embeddings", "refined_model", "refined_embeddings", "source_neighbors", "target_neighbors"),
    *("alignment", "relations"),
}


def facts_of(folder: Path, stage: str) -> Any:
    facts = dict(RunStore(folder).steps[stage].facts)
    if stage == "train":
        facts["history"] = [{k: v for k, v in epoch.items() if "seconds" not in k} for epoch in facts["history"]]
    return facts


def run_with(folder: Path, task: AlignmentTask, names: Any) -> Path:
    write_pair(task, names, folder / "pair", "openea")
    run_pipeline(folder / "run", DataInput(folder=folder / "pair"), resolve(Settings, PRESETS, overrides=QUICK))
    return folder / "run"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One pair run twice, the second time with the targets of its test links shifted by one."""
    pair = api.generate(WORLD)
    wrong = pair.task.test_links.copy()
    wrong[:, 1] = np.roll(wrong[:, 1], 1)
    assert not (wrong == pair.task.test_links).all(axis=1).any()
    other = dataclasses.replace(pair.task, test_links=wrong)
    folder = tmp_path_factory.mktemp("protocol")
    return run_with(folder / "true", pair.task, pair.names), run_with(folder / "wrong", other, pair.names)


def test_all_but_the_task_has_the_same_bytes(runs: tuple[Path, Path]) -> None:
    true, wrong = runs
    names, others = (sorted(path.relative_to(run).as_posix() for path in run.glob("*/*.npy")) for run in runs)
    assert names == others
    folders = {name.split("/")[0] for name in names}
    assert {name.split("-", 1)[1] for name in folders} == MADE
    for name in names:
        same = (true / name).read_bytes() == (wrong / name).read_bytes()
        assert same is not name.endswith("-task/test_links.npy"), name


@pytest.mark.parametrize("stage", STEPS[1:])
def test_only_the_facts_of_the_evaluation_differ(runs: tuple[Path, Path], stage: str) -> None:
    true, wrong = (facts_of(folder, stage) for folder in runs)
    assert (true == wrong) is (stage != "evaluate")


def test_the_figures_see_the_difference(runs: tuple[Path, Path]) -> None:
    true, wrong = (facts_of(folder, "evaluate") for folder in runs)
    assert true["protocol"] == wrong["protocol"]
    assert true["ideal"]["csls"]["mean"]["mrr"] > 2 * wrong["ideal"]["csls"]["mean"]["mrr"]
    assert true["real"]["mutual_5nn"]["recall"] > wrong["real"]["mutual_5nn"]["recall"]
    assert true["real"]["mutual_5nn"]["pairs"] == wrong["real"]["mutual_5nn"]["pairs"]
    assert true["test_kept"] != wrong["test_kept"]
    assert facts_of(runs[0], "subgraphs")["test_kept"] is None, "the stages before do not even count them"


def test_a_run_hides_the_test_links_and_nothing_else(toy_task: AlignmentTask, tmp_path: Path) -> None:
    run = run_task(tmp_path, toy_task, TaskNames(NO_NAMES, NO_NAMES), Settings(), last="load")
    hidden = run.task.without_test_links()
    assert hidden.test_links.shape == (0, 2)
    for field in dataclasses.fields(AlignmentTask):
        if field.name != "test_links":
            assert np.array_equal(getattr(hidden, field.name), getattr(toy_task, field.name))
    assert len(run.artifact("task", AlignmentTask).test_links) == 2


def test_files_and_a_task_at_hand_give_the_same(runs: tuple[Path, Path], tmp_path: Path) -> None:
    settings = resolve(Settings, PRESETS, overrides=QUICK)
    store = RunStore(runs[0])
    task, names = store.load("load", "task", AlignmentTask), store.load("load", "names", TaskNames)
    run = api.run_task(tmp_path / "run", task, names, settings)
    assert facts_of(run.folder, "evaluate") == facts_of(runs[0], "evaluate")
    quality = api.Division.of(run).quality
    assert quality.test_kept == run.outcome("evaluate", Evaluation).test_kept
    assert quality.test_kept == facts_of(runs[0], "evaluate")["test_kept"]
    assert dataclasses.replace(quality, test_kept=None) == run.outcome("subgraphs", PartitionQuality)
