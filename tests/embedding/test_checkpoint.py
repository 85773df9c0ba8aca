from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.errors import ArtifactError, StorageError


def tensors_of(step: int) -> dict[str, torch.Tensor]:
    return {"table": torch.full((6, 4), float(step)), "steps": torch.tensor(step)}


def save(folder: Path, *steps: int) -> CheckpointFolder:
    checkpoints = CheckpointFolder(folder)
    for step in steps:
        checkpoints.save(step, tensors_of(step), {"epoch": step // 10})
    return checkpoints


def assert_latest(folder: Path, step: int) -> None:
    loaded = CheckpointFolder(folder).load_latest()
    assert loaded is not None
    assert loaded[0] == step
    assert loaded[2] == {"epoch": step // 10}
    assert loaded[1].keys() == tensors_of(step).keys()
    for name, tensor in tensors_of(step).items():
        assert torch.equal(loaded[1][name], tensor)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:09d}.safetensors"


def test_everything_comes_back(tmp_path: Path) -> None:
    read_only = np.arange(6, dtype=np.int32).reshape(2, 3)
    read_only.flags.writeable = False
    tensors: dict[str, torch.Tensor | np.ndarray[Any, Any]] = {
        "parameter": torch.nn.Parameter(torch.randn(3, 4)),
        "transposed": torch.randn(3, 4).T,
        "short": torch.randn(5).to(torch.bfloat16),
        "flags": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.empty(0, 7),
        "read_only": read_only,
        "mapped": np.memmap(tmp_path / "mapped", np.float32, "w+", shape=(4, 2)),
    }
    facts = {"loss": [0.1, 1e-300], "nested": {"name": "größer", "none": None, "big": 2**100}}
    CheckpointFolder(tmp_path / "a" / "b").save(7, tensors, facts)
    loaded = CheckpointFolder(tmp_path / "a" / "b").load_latest()
    assert loaded is not None
    assert loaded[0] == 7
    assert loaded[2] == facts
    assert loaded[1].keys() == tensors.keys()
    for name, tensor in tensors.items():
        expected = torch.from_numpy(tensor.copy()) if isinstance(tensor, np.ndarray) else tensor.detach()
        assert loaded[1][name].dtype == expected.dtype
        assert torch.equal(loaded[1][name], expected)


def test_random_generators_go_on_where_they_were(tmp_path: Path) -> None:
    of_torch, of_numpy = torch.Generator().manual_seed(5), np.random.default_rng(5)
    torch.rand(3, generator=of_torch), of_numpy.random(3)
    state = {"generator": of_torch.get_state()}
    CheckpointFolder(tmp_path).save(1, state, {"generator": of_numpy.bit_generator.state})
    loaded = CheckpointFolder(tmp_path).load_latest()
    assert loaded is not None
    again_torch, again_numpy = torch.Generator(), np.random.default_rng()
    again_torch.set_state(loaded[1]["generator"])
    again_numpy.bit_generator.state = loaded[2]["generator"]
    assert torch.equal(torch.rand(9, generator=of_torch), torch.rand(9, generator=again_torch))
    assert np.array_equal(of_numpy.random(9), again_numpy.random(9))


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    save(tmp_path, 8, 9, 10, 1000000000, 1000000001)
    assert names(tmp_path) == ["step-1000000000.safetensors", "step-1000000001.safetensors"]
    assert_latest(tmp_path, 1000000001)
    CheckpointFolder(tmp_path, keep=1).save(1000000002, {}, {})
    assert names(tmp_path) == ["step-1000000002.safetensors"]
    with pytest.raises(ArtifactError, match="at least one"):
        CheckpointFolder(tmp_path, keep=0)


def test_a_step_saved_again_replaces_the_first(tmp_path: Path) -> None:
    checkpoints = save(tmp_path, 10, 20)
    checkpoints.save(20, {}, {"again": True})
    assert checkpoints.load_latest() == (20, {}, {"again": True})


def test_a_run_begun_anew_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    save(tmp_path, 80, 90)
    save(tmp_path, 10)
    assert_latest(tmp_path, 10)


def test_no_checkpoint(tmp_path: Path) -> None:
    assert CheckpointFolder(tmp_path / "missing").load_latest() is None
    (tmp_path / "other.safetensors").touch()
    assert CheckpointFolder(tmp_path).load_latest() is None


def test_what_was_loaded_may_be_changed_and_outlives_its_file(tmp_path: Path) -> None:
    loaded = save(tmp_path, 10).load_latest()
    assert loaded is not None
    loaded[1]["table"] += 1
    assert_latest(tmp_path, 10)
    save(tmp_path, 20, 30, 40)
    assert torch.equal(loaded[1]["table"], tensors_of(10)["table"] + 1)


@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(tmp_path_factory: pytest.TempPathFactory, where: float, bit: int) -> None:
    folder = tmp_path_factory.mktemp("flip")
    save(folder, 10, 20)
    content = bytearray(place(folder, 20).read_bytes())
    position = int(where * len(content))
    content[position] ^= 1 << bit
    place(folder, 20).write_bytes(content)
    # A space that became another space in the header changes nothing; whatever is loaded is what was saved.
    loaded = CheckpointFolder(folder).load_latest()
    assert loaded is not None
    assert_latest(folder, loaded[0])
    assert loaded[0] == 10 or chr(content[position]).isspace()


@pytest.mark.parametrize("size", [0, 5, 8, 100, -1])
def test_a_cut_file_is_passed_over(tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture) -> None:
    save(tmp_path, 10, 20)
    content = place(tmp_path, 20).read_bytes()
    place(tmp_path, 20).write_bytes(content[:size])
    with caplog.at_level(logging.WARNING):
        assert_latest(tmp_path, 10)
    assert str(place(tmp_path, 20)) in caplog.text


def test_files_that_lie_are_passed_over(tmp_path: Path) -> None:
    """Whole files, but of another program, without a checksum, and with the facts changed."""
    save(tmp_path, 10)
    safetensors.torch.save_file({"a": torch.zeros(3)}, place(tmp_path, 20))
    place(tmp_path, 30).write_bytes(place(tmp_path, 10).read_bytes().replace(b"epoch", b"Epoch"))
    place(tmp_path, 40).mkdir()
    assert_latest(tmp_path, 10)


def test_all_damaged_is_none_and_a_missing_one_is_not_missed(tmp_path: Path) -> None:
    save(tmp_path, 10, 20)
    place(tmp_path, 20).unlink()
    assert_latest(tmp_path, 10)
    place(tmp_path, 10).write_bytes(b"")
    assert CheckpointFolder(tmp_path).load_latest() is None


def test_a_damaged_one_does_not_push_out_a_good_one(tmp_path: Path) -> None:
    checkpoints = save(tmp_path, 10, 20)
    place(tmp_path, 20).write_bytes(b"")
    checkpoints.load_latest()
    checkpoints.save(30, tensors_of(30), {"epoch": 3})
    assert names(tmp_path) == [place(tmp_path, 10).name, place(tmp_path, 30).name]


@pytest.mark.parametrize("failing_call", [1, 2])
def test_a_full_disk_leaves_the_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    """The first flush is the file's; the second the folder's, after the renaming: then the new one is whole, too."""
    checkpoints = save(tmp_path, 10, 20)
    calls = []

    def refuse(handle: int) -> None:
        calls.append(handle)
        if len(calls) == failing_call:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(StorageError, match="No space left on device"):
            checkpoints.save(30, tensors_of(30), {"epoch": 3})
    assert "partial" not in names(tmp_path)
    assert place(tmp_path, 20).exists()
    assert_latest(tmp_path, 20 if failing_call == 1 else 30)
    checkpoints.save(40, tensors_of(40), {"epoch": 4})
    assert_latest(tmp_path, 40)


def test_an_error_of_the_library_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = save(tmp_path, 10)

    def refuse(*_: object) -> None:
        raise safetensors.SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", refuse)
    with pytest.raises(StorageError, match="No space left"):
        checkpoints.save(20, {}, {})
    assert_latest(tmp_path, 10)


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot write"):
        CheckpointFolder(tmp_path / "file").save(1, {}, {})


KILLED = """
import json, os, signal, sys
from pathlib import Path
import safetensors.torch
from largegnn.embedding.checkpoint import CheckpointFolder
from tests.embedding.test_checkpoint import save, tensors_of

POINTS = {"fsync": os, "replace": Path, "rmdir": Path, "unlink": Path, "mkdir": Path, "save_file": safetensors.torch}

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def tear(tensors, path, metadata):
    Path(path).with_name(".other").write_bytes(b"half")
    Path(path).write_bytes(safetensors.torch.save(tensors, metadata)[:-9])
    die()

def arm(name, nth, after):
    owner, calls = POINTS[name], []
    real = getattr(owner, name)
    def wrapped(*arguments, **options):
        calls.append(name)
        if len(calls) == nth and not after:
            die()
        result = real(*arguments, **options)
        if len(calls) == nth:
            die()
        return result
    setattr(owner, name, wrapped)

for number, (name, nth, after) in enumerate(json.loads(sys.argv[2])):
    child = os.fork()
    if child == 0:
        folder = Path(sys.argv[1]) / str(number)
        checkpoints = save(folder, 10, 20)
        if name == "tear":
            safetensors.torch.save_file = tear
        else:
            arm(name, nth, after)
        checkpoints.save(30, tensors_of(30), {"epoch": 3})
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, (name, nth, after)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_point_leaves_a_good_one(tmp_path: Path) -> None:
    """Each point at which the folder changes, killed just before and just after; what was renamed counts as saved."""
    calls = [("mkdir", 1), ("save_file", 1), ("fsync", 1), ("replace", 1), ("fsync", 2), ("rmdir", 1), ("unlink", 1)]
    points = [("tear", 1, False), *((name, nth, after) for name, nth in calls for after in (False, True))]
    renamed = points.index(("replace", 1, True))
    subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), json.dumps(points)],
        check=True,
        cwd=Path(__file__).parents[2],
        timeout=120,
    )
    for number, _ in enumerate(points):
        folder = tmp_path / str(number)
        assert_latest(folder, 30 if number >= renamed else 20)
        save(folder, 40, 50)
        assert names(folder) == [place(folder, 40).name, place(folder, 50).name]
