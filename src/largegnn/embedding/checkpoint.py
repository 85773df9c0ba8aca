"""Save and load checkpoints of a training run: a folder of safetensors files, of which the last good one is found.

    step-000000120.safetensors     tensors; in the header the step, the facts as JSON and a SHA-256 of all of it
    step-000000140.safetensors     the one after; older ones are removed once the newer is safe on disk
    partial/                       what is being written, removed by the next save

In: a step number, named tensors or arrays, and facts (JSON values). Out: the same, of the last save that is whole.
The idea: a file is written in a folder of its own, flushed to disk and renamed, so a kill at any moment leaves the
earlier ones; and a file is only trusted after the checksum of what was read from it was compared. No pickle anywhere.
A training without a folder has the same in memory (`CheckpointInMemory`), for as long as the process lives.
Cost: one pass over the bytes to hash and one to write; what is loaded is mapped from the file. One process may write to
a folder at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from largegnn.artifacts import EpochRecord, from_plain, to_plain
from largegnn.embedding.model import EmbeddingModel
from largegnn.errors import ArtifactError, StorageError

__all__ = ["Checkpoint", "CheckpointFolder", "CheckpointInMemory", "Checkpoints", "SavedEpochs", "best_epoch"]

Checkpoint = tuple[int, dict[str, torch.Tensor], dict[str, Any]]

_log = logging.getLogger(__name__)
_NAME = re.compile(r"step-(\d+)\.safetensors")


class Checkpoints(Protocol):
    """Where checkpoints are kept."""

    def save(self, step: int, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        """Keep this state as the latest."""
        ...

    def load_latest(self) -> Checkpoint | None:
        """Step, tensors and facts of the latest state, if there is one."""
        ...


class CheckpointInMemory:
    """Keeps the latest state in main memory."""

    def __init__(self) -> None:
        self._latest: Checkpoint | None = None

    def save(self, step: int, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        """Copy this state; it takes the memory of the one before."""
        before = {} if self._latest is None else self._latest[1]
        kept = {}
        for name, tensor in tensors.items():
            room = before.get(name)
            fits = room is not None and (room.shape, room.dtype) == (tensor.shape, tensor.dtype)
            kept[name] = room.copy_(tensor.detach()) if room is not None and fits else _copied(tensor)
        self._latest = step, kept, dict(facts)

    def load_latest(self) -> Checkpoint | None:
        """The latest state; the next `save` overwrites its tensors."""
        return self._latest


class CheckpointFolder:
    """Saves and loads the checkpoints of one training run, the last `keep` of them."""

    def __init__(self, folder: Path, keep: int = 2) -> None:
        if keep < 1:
            raise ArtifactError(f"at least one checkpoint must be kept, not {keep}")
        self.folder = folder
        self.keep = keep
        self._damaged: set[Path] = set()

    def save(
        self, step: int, tensors: Mapping[str, torch.Tensor | np.ndarray[Any, Any]], facts: Mapping[str, Any]
    ) -> None:
        """Write one checkpoint, then remove those it replaces.

        Later steps are removed too: they belong to an earlier training, and must not be taken for the latest.
        """
        on_host = {name: _on_host(tensor) for name, tensor in tensors.items()}
        facts_text = json.dumps(facts, sort_keys=True)
        metadata = {"step": str(step), "facts": facts_text, "sha256": _checksum(step, facts_text, on_host)}
        path = self.folder / f"step-{step:09d}.safetensors"
        self._write(path, on_host, metadata)
        self._damaged.discard(path)
        sound = [path for number, path in self._files() if number <= step and path not in self._damaged]
        for _, path in self._files():
            if path not in sound[-self.keep :]:
                # The new one is safe; one too many does no harm, and the next save tries again.
                with contextlib.suppress(OSError):
                    path.unlink()

    def load_latest(self) -> Checkpoint | None:
        """Step, tensors (on the host, mapped from the file) and facts of the last save that is whole, if any is."""
        for _, path in reversed(self._files()):
            try:
                return _read(path)
            except _DamagedError as damage:
                _log.warning("%s is damaged (%s); falling back to the checkpoint before it", path, damage)
                self._damaged.add(path)
        return None

    def _files(self) -> list[tuple[int, Path]]:
        """The checkpoints in the folder, damaged ones among them, by ascending step."""
        if not self.folder.is_dir():
            return []
        matches = [(_NAME.fullmatch(path.name), path) for path in self.folder.iterdir()]
        return sorted((int(match[1]), path) for match, path in matches if match)

    def _write(self, path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
        """Write under another name, flush to disk, rename, flush the folder; a failure leaves nothing behind."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        # A folder of its own, because the library may write under a name of its own in the folder of the file.
        partial = self.folder / "partial"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            save_file(tensors, partial / path.name, metadata)
            _flush(partial / path.name)
            (partial / path.name).replace(path)
            _flush(self.folder)
            partial.rmdir()
        except (OSError, SafetensorError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise StorageError(
                f"cannot write {path}: {getattr(error, 'strerror', None) or error}; "
                "the checkpoints before it are intact, free some space and resume"
            ) from error


def best_epoch(history: Sequence[EpochRecord]) -> int | None:
    """The epoch with most hits on the valid links, the earliest of equals; None if none was validated."""
    validated = [record for record in history if record.valid_hits is not None]
    return max(validated, key=lambda record: record.valid_hits or 0.0).epoch if validated else None


class SavedEpochs:
    """Saves and restores the last epoch, to resume from, and the best one, to end with; either may be None.

    The checkpoint of an epoch is written before the same epoch is kept as the best: whatever happens in between, the
    history then shows which epoch is missing.
    """

    def __init__(self, model: EmbeddingModel, last: Checkpoints | None, best: Checkpoints | None) -> None:
        self._model, self._last, self._best = model, last, best

    def resume(self) -> list[EpochRecord]:
        """Load the last checkpoint into the model, if there is one; the history so far."""
        found = None if self._last is None else self._last.load_latest()
        history: list[EpochRecord] = []
        if found is not None:
            self._model.load_tensors(found[1])
            history = [from_plain(EpochRecord, record) for record in found[2]["history"]]
            _log.info("train: resuming after epoch %d", found[0])
        if history and best_epoch(history) == history[-1].epoch:
            # The run may have ended between the checkpoint and the best epoch's own.
            self.save_best(history)
        return history

    def save(self, history: Sequence[EpochRecord]) -> None:
        """Keep the present epoch as the last."""
        if self._last is not None:
            self._last.save(len(history), self._model.tensors(), {"history": to_plain(list(history))})

    def save_best(self, history: Sequence[EpochRecord]) -> None:
        """Keep the present epoch as the best; `save` must have kept it as the last before."""
        if self._best is not None:
            self._best.save(len(history), self._model.tensors(), {"valid_hits": history[-1].valid_hits})

    def restore_best(self, history: list[EpochRecord]) -> None:
        """Load the best epoch into the model, if it is known and not the present one."""
        best = best_epoch(history)
        if best is None or best == history[-1].epoch:
            return
        found = None if self._best is None else self._best.load_latest()
        if found is not None and found[0] == best + 1:
            self._model.load_tensors(found[1])
            _log.info("train: epoch %d was best on the valid links and is kept", found[0])
        else:
            _log.warning(
                "train: epoch %d was best on the valid links but its checkpoint is missing; the last is kept", best + 1
            )


class _DamagedError(Exception):
    """A file that differs from what was written."""


def _read(path: Path) -> Checkpoint:
    """One checkpoint, or `_DamagedError` if it is not what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        step, facts_text, checksum = int(metadata["step"]), metadata["facts"], metadata["sha256"]
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise _DamagedError(str(error)) from error
    if checksum != _checksum(step, facts_text, tensors):
        raise _DamagedError("its checksum differs")
    return step, tensors, json.loads(facts_text)


def _on_host(tensor: torch.Tensor | np.ndarray[Any, Any]) -> torch.Tensor:
    """The same values on the host in one piece, not copied where they are so already."""
    if isinstance(tensor, np.ndarray):
        # torch has no read-only tensors and warns of arrays that are.
        tensor = torch.from_numpy(tensor if tensor.flags.writeable else tensor.copy())
    return tensor.detach().cpu().contiguous()


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    """The same values on the host, in memory of their own."""
    return tensor.detach().to("cpu", copy=True)


def _checksum(step: int, facts_text: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 of everything in a checkpoint, names and shapes included; independent of how the file is laid out."""
    shapes = [(name, str(tensors[name].dtype), list(tensors[name].shape)) for name in sorted(tensors)]
    digest = hashlib.sha256(json.dumps([step, facts_text, shapes]).encode("utf-8"))
    for name in sorted(tensors):
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _flush(path: Path) -> None:
    """Make sure a file, or the names in a folder, are on disk."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return  # Windows does not open folders
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
