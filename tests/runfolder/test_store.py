"""A run folder is believed only as far as its checksums go."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.errors import InputError, StorageError
from largegnn.runfolder.store import RunStore

RECORD: dict[str, Any] = {
    "fingerprint": "f",
    "arguments": {},
    "facts": {"found": [1, 2]},
    "seconds": 1.0,
    "peak_memory_mb": 2.0,
    "finished": "now",
}


def saved(folder: Path, task: AlignmentTask, names: TaskNames) -> RunStore:
    folder.mkdir(exist_ok=True)
    store = RunStore(folder)
    store.update_manifest(made_by="test")
    store.save_step("load", 1, {"task": task, "names": names}, RECORD)
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
        assert not array.flags.writeable
        assert not array.flags.owndata, "mapped, not read"
        assert np.array_equal(np.load(tmp_path / "01-task" / f"{name}.npy"), array), "any numpy can read the file"
    assert task.num_target_entities == 6
    assert list(store.load("load", "names", TaskNames).entities) == list(toy_names.entities)
    listed = {file for files in store.steps["load"].files.values() for file in files}
    assert listed == {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}


@dataclass(frozen=True)
class Odd:
    """Arrays of every awkward kind."""

    empty: npt.NDArray[np.float32]
    flags: npt.NDArray[np.bool_]
    small: npt.NDArray[np.uint8]
    single: npt.NDArray[np.int64]
    columns: Mapping[str, npt.NDArray[np.float64]]
    transposed: npt.NDArray[np.int32]
    names: TaskNames | None
    nothing: TaskNames | None
    sizes: tuple[int, ...]
    maybe: npt.NDArray[np.int32] | None = None


def test_awkward_values_come_back(tmp_path: Path, toy_names: TaskNames) -> None:
    odd = Odd(
        empty=np.empty((0, 7), np.float32),
        flags=np.array([True, False]),
        small=np.arange(3, dtype=np.uint8),
        single=np.array(5),
        columns={"cosine": np.array([0.5]), "name.jaro": np.array([])},
        transposed=np.arange(6, dtype=np.int32).reshape(2, 3).T,
        names=toy_names,
        nothing=None,
        sizes=(1, 2),
    )
    store = RunStore(tmp_path)
    store.update_manifest(made_by="test")
    store.save_step("load", 1, {"odd": odd}, RECORD)
    RunStore(tmp_path).save_scratch("work/odd", odd)
    store = RunStore(tmp_path)
    for back in (store.load("load", "odd", Odd), store.load_scratch("work/odd", Odd)):
        assert back is not None
        for name in ("empty", "flags", "small", "single", "transposed"):
            array, expected = getattr(back, name), getattr(odd, name)
            assert (array.shape, array.dtype, array.tolist()) == (expected.shape, expected.dtype, expected.tolist())
        assert {name: column.tolist() for name, column in back.columns.items()} == {"cosine": [0.5], "name.jaro": []}
        assert back.names is not None
        assert list(back.names.entities) == list(toy_names.entities)
        assert (back.nothing, back.sizes, back.maybe) == (None, (1, 2), None)


def damage(path: Path, kind: str) -> None:
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[-1] ^= 1
        path.write_bytes(data)
    elif kind == "cut":
        path.write_bytes(data[:-1])
    else:
        path.unlink()


@pytest.mark.parametrize("kind", ["flip", "cut", "remove"])
def test_damage_is_noticed(tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, kind: str) -> None:
    saved(tmp_path, toy_task, toy_names)
    damage(tmp_path / "01-task" / "triples.npy", kind)
    store = RunStore(tmp_path)
    assert not store.is_intact("load")
    assert store.is_intact("load", "names")
    with pytest.raises(StorageError, match="damaged or missing"):
        store.load("load", "task", AlignmentTask)


def test_headers_damaged_under_our_hands_give_no_traceback(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    """Checksums are compared once; numpy is given what came after that."""
    store = saved(tmp_path, toy_task, toy_names)
    path = tmp_path / "01-task" / "triples.npy"
    whole, refused = path.read_bytes(), 0
    for place in range(128):
        for mask in (1, 4, 32, 128):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :])
            try:
                store.load("load", "task", AlignmentTask)
            except (StorageError, ValueError):  # an array of other numbers is refused by the artifact
                refused += 1
    assert refused > 300
    for text in (b"", b"\x93NUMPY", b"PK\x03\x04", whole[:100], b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70_000):
        path.write_bytes(text)
        with pytest.raises(StorageError, match="damaged or missing"):
            store.load("load", "task", AlignmentTask)


def test_paths_no_system_takes_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be read"):
        RunStore(Path("/tmp") / ("x" * 300))


def test_a_failed_write_leaves_the_old_state(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = saved(tmp_path, toy_task, toy_names)
    before = (tmp_path / "manifest.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"No space left on device.*finished steps are intact"):
        store.save_step("merge", 2, {"again": toy_task}, RECORD)
    assert (tmp_path / "manifest.json").read_bytes() == before
    assert not list(tmp_path.glob("*.partial"))
    assert RunStore(tmp_path).is_intact("load")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for left in ("02-x.4711-0123abcd.partial", "work-train-a/division-1.4711-0123abcd.partial"):
        (tmp_path / left).mkdir(parents=True)
        (tmp_path / left / "half.npy").write_text("left by a kill")
    (tmp_path / "mine.partial").write_text("not ours")
    with store.lock():
        assert [path.name for path in tmp_path.rglob("*.partial")] == ["mine.partial"]
        with pytest.raises(StorageError, match="another process"), RunStore(tmp_path).lock():
            pass
    with RunStore(tmp_path).lock():
        pass
    with pytest.raises(InputError, match="cannot be written"), RunStore(Path("/proc/nowhere")).lock():
        pass


def test_what_was_finished_while_waiting_for_the_lock_is_seen(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    store = RunStore(tmp_path)
    assert not store.steps
    saved(tmp_path, toy_task, toy_names)
    with store.lock():
        assert list(store.steps) == ["load"]
        store.update_manifest(made_by="me")
    assert list(RunStore(tmp_path).steps) == ["load"]


def test_files_checked_before_the_lock_are_checked_again(
    tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    store = saved(tmp_path, toy_task, toy_names)
    assert store.is_intact("load")
    damage(tmp_path / "01-task" / "triples.npy", "flip")
    with store.lock():
        assert not store.is_intact("load")


def test_a_run_folder_needs_numpy_alone(tmp_path: Path, toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    saved(tmp_path, toy_task, toy_names)
    script = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"polars", "pydantic", "pyoxigraph", "pymetis", "click", "rich", "zstandard", "numba",
                                  "filelock"}:
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from pathlib import Path
from largegnn.artifacts import AlignmentTask
from largegnn.runfolder.store import RunStore
assert len(RunStore(Path(sys.argv[1])).load("load", "task", AlignmentTask).triples) == 11
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
