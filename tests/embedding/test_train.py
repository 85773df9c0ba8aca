"""The stages `train` and `integrate`, of files and of a task at hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, SubgraphSet, TrainedModel
from largegnn.data.inputs import DataInput
from largegnn.embedding.encode import integrate
from largegnn.embedding.train import TrainOutcome
from largegnn.errors import InputError
from largegnn.evaluation.metrics import rank_links
from largegnn.machine.devices import choose_device
from largegnn.parts import Table
from largegnn.pipeline import run_pipeline
from largegnn.settings import PRESETS, Settings, resolve

QUICK = ["train.dim=16", "train.epochs=4", "train.batch_size=256", "train.negatives=300", "division.parts=3"]


def settings(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=[*QUICK, "device=cpu", *overrides])


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training") / "pair"
    api.generate("small", folder=folder)
    return folder


def hits(task: AlignmentTask, vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> float:
    ranks = rank_links(vectors[task.test_links[:, 0]], vectors[task.test_links[:, 1]], "csls")
    return float((ranks.source_to_target == 1).mean())


def test_a_run_aligns_far_better_than_chance_and_leaves_no_work_behind(pair: Path, tmp_path: Path) -> None:
    chosen = settings("train.dim=32", "train.epochs=12")
    run = run_pipeline(tmp_path / "run", DataInput(folder=pair), chosen)
    task = run.artifact("task", AlignmentTask)
    embeddings = run.artifact("embeddings", EntityEmbeddings)
    assert hits(task, embeddings.vectors) > 0.4, "chance is below .001"
    assert bool(embeddings.covered.all())
    history = run.outcome("train", TrainOutcome).history
    assert [record.epoch for record in history] == list(range(12))
    assert (history[-1].valid_hits or 0) > 0.4
    assert not list((tmp_path / "run").glob("work-*"))


def test_files_and_a_task_at_hand_give_the_same(pair: Path, tmp_path: Path) -> None:
    chosen = settings("protocol.seeds_from=train+valid")
    folder = run_pipeline(tmp_path / "run", DataInput(folder=pair), chosen, last="integrate")
    in_memory = api.train(folder.artifact("task", AlignmentTask), chosen)
    assert np.array_equal(folder.artifact("embeddings", EntityEmbeddings).vectors, in_memory.embeddings.vectors)
    assert len(in_memory.history) == 4


def test_divisions_of_another_process_are_those_made_here(
    pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen, task = settings("protocol.seeds_from=train+valid"), api.load(pair).task
    runs = [api.run_task(tmp_path / "beside", task, None, chosen, last="integrate")]
    monkeypatch.setattr(Table, "is_local", lambda *_: True)
    runs.append(api.run_task(tmp_path / "here", task, None, chosen, last="integrate"))
    one, other = (run.artifact("embeddings", EntityEmbeddings).vectors for run in runs)
    assert np.array_equal(one, other)


def test_average_and_full_differ_and_both_work(pair: Path) -> None:
    task = api.load(pair).task
    found = {}
    for method in ("full", "average", "plain_average"):
        found[method] = api.train(task, settings(f"integrate.method={method}")).embeddings.vectors
        assert hits(task, found[method]) > 0.1
    assert not np.allclose(found["full"], found["average"])
    assert not np.allclose(found["plain_average"], found["average"])


@pytest.mark.usefixtures("one_thread")
def test_killed_anywhere_in_training_it_ends_the_same(pair: Path, tmp_path: Path) -> None:
    chosen = ["train.checkpoint_seconds=0", "train.epochs=6"]
    call = [sys.executable, "-m", "largegnn", "train"]
    out = tmp_path / "killed"
    options = [word for text in [*QUICK, "device=cpu", *chosen] for word in ("--set", text)]
    begin = [*call, str(pair), "--out", str(out), *options]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    expected = run_pipeline(tmp_path / "clean", DataInput(folder=pair), settings(*chosen), last="integrate")
    wanted = expected.artifact("embeddings", EntityEmbeddings).vectors
    kills = 0
    for attempt in range(2):
        command = begin if not (out / "manifest.json").exists() else [*call, "--resume", "--out", str(out)]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, env=alone
        ) as process:
            assert process.stderr is not None
            # Killed after one more epoch each time, and once in the middle of one.
            for line in process.stderr:
                if b"train: epoch" in line:
                    time.sleep(0.05 * attempt)
                    os.killpg(process.pid, signal.SIGKILL)
                    kills += 1
                    break
            process.stderr.read()
        if process.returncode == 0:
            break
    assert kills == 2
    run = run_pipeline(out, DataInput(folder=pair), settings(*chosen), last="integrate")
    assert np.array_equal(run.artifact("embeddings", EntityEmbeddings).vectors, wanted)


def test_other_settings_never_take_up_old_checkpoints(pair: Path, tmp_path: Path) -> None:
    given, out = DataInput(folder=pair), tmp_path / "run"
    first = run_pipeline(out, given, settings(), last="integrate")
    vectors = first.artifact("embeddings", EntityEmbeddings).vectors.copy()
    with pytest.raises(InputError, match=r"train.learning_rate was 0.005, is 0.01"):
        run_pipeline(out, given, settings("train.learning_rate=0.01"))
    other = run_pipeline(out, given, settings("train.learning_rate=0.01"), force="train", last="integrate")
    assert not np.array_equal(other.artifact("embeddings", EntityEmbeddings).vectors, vectors)


def test_devices() -> None:
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type in ("cpu", "cuda")


def test_vectors_that_do_not_fit_are_mapped_and_the_same(pair: Path, tmp_path: Path) -> None:
    task = api.load(pair).task
    run = api.run_task(tmp_path / "run", task, None, settings(), last="train")
    model, subgraphs = run.artifact("model", TrainedModel), run.artifact("subgraphs", SubgraphSet)

    def vectors_of(folder: Path | None, *overrides: str) -> EntityEmbeddings:
        chosen = settings(*overrides)
        return integrate(task, model, subgraphs, chosen.train, chosen.integrate, device="cpu", work=folder).embeddings

    for method in ("full", "average"):
        roomy = vectors_of(None, f"integrate.method={method}")
        mapped = vectors_of(tmp_path / method, f"integrate.method={method}", "train.max_memory_gb=0.003")
        assert (tmp_path / method / "vectors.npy").stat().st_size > mapped.vectors.nbytes
        assert np.allclose(mapped.vectors, roomy.vectors, atol=1e-6)
