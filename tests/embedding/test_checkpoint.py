from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import EpochRecord
from largegnn.embedding.checkpoint import Checkpoints, best_epoch
from largegnn.embedding.model import EmbeddingModel
from largegnn.errors import StorageError
from tests.embedding.small_runs import are_equal, copies, random_subgraphs, small_model, small_options

SUBGRAPHS = random_subgraphs(1)


def model_of(seed: int = 0) -> EmbeddingModel:
    return small_model(SUBGRAPHS, small_options(), seed)


def history_of(*hits: float | None) -> list[EpochRecord]:
    return [EpochRecord(epoch, 1 / 3, hit, 0.1) for epoch, hit in enumerate(hits)]


def save(folder: Path, *hits: float | None) -> list[dict[str, torch.Tensor]]:
    """Save an epoch for each of these hits; the states that were saved."""
    model = model_of()
    checkpoints, states = Checkpoints(model, folder), []
    for number in range(1, len(hits) + 1):
        model.entities.values[:] = number
        checkpoints.save(history_of(*hits[:number]))
        states.append(copies(model))
    return states


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def resumed(folder: Path) -> tuple[dict[str, torch.Tensor], list[EpochRecord]]:
    model = model_of(1)
    history = Checkpoints(model, folder).resume()
    return copies(model), history


def test_the_last_epoch_and_the_best_are_kept(tmp_path: Path) -> None:
    hits = (0.2, 0.6, 0.1, 0.6)
    states = save(tmp_path / "a" / "b", *hits)
    assert names(tmp_path / "a" / "b") == ["epoch-000002", "epoch-000004"]
    model = model_of(1)
    checkpoints = Checkpoints(model, tmp_path / "a" / "b")
    history = checkpoints.resume()
    assert history == history_of(*hits)
    assert are_equal(copies(model), states[3])
    checkpoints.restore_best(history)
    assert are_equal(copies(model), states[1])


def test_the_earliest_of_equals_is_best() -> None:
    assert best_epoch(history_of(0.2, None, 0.6, 0.6)) == 2
    assert best_epoch(history_of(None)) is None


def test_without_validation_only_the_last_is_kept(tmp_path: Path) -> None:
    save(tmp_path, None, None)
    assert names(tmp_path) == ["epoch-000002"]


def test_without_a_folder_the_best_is_in_memory() -> None:
    model = model_of()
    checkpoints, history = Checkpoints(model, None), history_of(0.5, 0.4)
    checkpoints.save(history[:1])
    before = copies(model)
    model.entities.values[:] = 7
    checkpoints.save(history)
    assert checkpoints.resume() == []
    checkpoints.restore_best(history)
    assert are_equal(copies(model), before)


def test_a_run_begun_anew_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    save(tmp_path, 0.1, 0.2, 0.3)
    save(tmp_path, 0.1)
    assert len(resumed(tmp_path)[1]) == 1


def test_no_checkpoint(tmp_path: Path) -> None:
    assert resumed(tmp_path / "missing")[1] == []
    (tmp_path / "epoch-1.partial").touch()
    assert resumed(tmp_path)[1] == []


@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_noticed(tmp_path_factory: pytest.TempPathFactory, where: float, bit: int) -> None:
    folder = tmp_path_factory.mktemp("flip")
    states = save(folder, 0.2, 0.1)
    path = folder / "epoch-000002" / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    state, history = resumed(folder)
    assert len(history) == 1, "the best epoch, which is kept, is sound"
    assert are_equal(state, states[0])


@pytest.mark.parametrize("file", ["state.safetensors", "sha256"])
def test_a_cut_or_missing_file_is_passed_over(tmp_path: Path, file: str, caplog: pytest.LogCaptureFixture) -> None:
    save(tmp_path, 0.1)
    path = tmp_path / "epoch-000001" / file
    path.write_bytes(path.read_bytes()[:5])
    with caplog.at_level(logging.WARNING):
        assert resumed(tmp_path)[1] == []
    assert "is damaged or missing" in caplog.text
    path.unlink()
    assert resumed(tmp_path)[1] == []


def refuse(error: Exception) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise error

    return refused


@pytest.mark.parametrize("point", ["save_file", "fsync", "rename"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 0.1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = safetensors.SafetensorError("I/O error: No space left on device") if point == "save_file" else full
    owner: Any = {"save_file": safetensors.torch, "fsync": os, "rename": Path}[point]
    with monkeypatch.context() as patched:
        patched.setattr(owner, point, refuse(error))
        with pytest.raises(StorageError, match=r"No space left on device[\s\S]*are intact, free some space and resume"):
            save(tmp_path, 0.1, 0.2)
    assert names(tmp_path) == ["epoch-000001"]
    assert len(resumed(tmp_path)[1]) == 1
