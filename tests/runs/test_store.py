"""A run folder is believed only as far as its checksums go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.errors import InputError, StorageError
from largegnn.runs.store import FORMAT_VERSION, RunStore, fingerprint

RECORD: dict[str, Any] = {
    "fingerprint": "f",
    "settings": {},
    "facts": {},
    "seconds": 1.0,
    "peak_memory_mb": 2.0,
    "finished": "now",
}


def saved(folder: Path, task: AlignmentTask, names: TaskNames) -> RunStore:
    folder.mkdir(exist_ok=True)
    store = RunStore(folder)
    store.save_stage("load", 1, {"task": task, "names": names}, RECORD)
    return store


def test_artifacts_come_back_mapped_aligned_and_equal(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    saved(tmp_path, toy_task, toy_names)
    store = RunStore(tmp_path)
    task = store.load("load", "task", AlignmentTask)
    for name in ("triples", "train_links", "valid_links", "test_links"):
        array = getattr(task, name)
        assert np.array_equal(array, getattr(toy_task, name))
        assert array.ctypes.data % 64 == 0
    assert task.num_target_entities == 6
    assert list(store.load("load", "names", TaskNames).entities) == list(toy_names.entities)
    with np.load(tmp_path / "01-task.npz", allow_pickle=False) as plain:
        assert np.array_equal(plain["triples"], toy_task.triples), "any numpy can read the file"


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damage_is_noticed(tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, damage: str) -> None:
    saved(tmp_path, toy_task, toy_names)
    path = tmp_path / "01-task.npz"
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "cut":
        path.write_bytes(data[:-1])
    else:
        path.unlink()
    store = RunStore(tmp_path)
    assert not store.is_intact("load")
    assert store.is_intact("load", "names")
    with pytest.raises(StorageError, match="damaged or missing"):
        store.load("load", "task", AlignmentTask)


def test_other_versions_and_broken_manifests_are_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format_version": FORMAT_VERSION + 1, "made_by": "9.9"}))
    with pytest.raises(InputError, match="another version") as error:
        RunStore(tmp_path)
    assert "9.9" in str(error.value.found)
    for text in ("{", "[]", "{}", "null"):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(InputError, match="cannot be read"):
            RunStore(tmp_path)


def test_a_failed_write_leaves_the_old_state(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = saved(tmp_path, toy_task, toy_names)
    before = (tmp_path / "manifest.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device.*finished before is intact"):
        store.save_stage("merge", 2, {"again": toy_task}, RECORD)
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))
    assert RunStore(tmp_path).is_intact("load")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    (tmp_path / "02-x.npz.partial").write_text("left by a kill")
    with store.lock():
        assert not list(tmp_path.glob("*.partial"))
        with pytest.raises(StorageError, match="another process"), RunStore(tmp_path).lock():
            pass
    with RunStore(tmp_path).lock():
        pass
    with pytest.raises(InputError, match="cannot be written"), RunStore(Path("/proc/nowhere")).lock():
        pass


def test_fingerprints_tell_values_apart() -> None:
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})


def test_a_run_folder_needs_numpy_alone(tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    saved(tmp_path, toy_task, toy_names)
    script = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"polars", "pydantic", "pyoxigraph", "pymetis", "typer", "rich", "zstandard", "numba"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from pathlib import Path
from largegnn.artifacts import AlignmentTask
from largegnn.runs.store import RunStore
assert len(RunStore(Path(sys.argv[1])).load("load", "task", AlignmentTask).triples) == 11
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
