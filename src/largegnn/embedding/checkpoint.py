"""Save and load checkpoints of a training: of the last epoch, to resume from, and of the best epoch, to end with.

    epoch-000012/state.safetensors   the parameters; the header has the history of the training as JSON
    epoch-000012/sha256              the checksum of the file of parameters

In: a model and its history. Out: model and history of the last epoch whose checkpoint is complete.
The idea: a checkpoint is written into a folder of another name, flushed and renamed, and only then are earlier ones
removed, so a kill at any moment leaves a complete checkpoint. A file is loaded only if its checksum matches. No pickle
is used. A training without a folder keeps the best epoch in memory.
Cost: one pass over the bytes to write and one to hash. Only one process may write to a folder at a time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from largegnn.artifacts import EpochRecord, from_plain, to_plain
from largegnn.embedding.model import EmbeddingModel
from largegnn.errors import StorageError
from largegnn.machine.atomic import write_folder

__all__ = ["Checkpoints", "best_epoch"]

_log = logging.getLogger(__name__)
_NAME = re.compile(r"epoch-(\d+)")
_STATE, _CHECKSUM = "state.safetensors", "sha256"
_FIX = "earlier checkpoints are intact, free some space and resume"
State = dict[str, torch.Tensor]


def best_epoch(history: Sequence[EpochRecord]) -> int | None:
    """The epoch with the highest H@1 on the valid links, the earliest of equals; None if no epoch was validated."""
    validated = [record for record in history if record.valid_hits is not None]
    return max(validated, key=lambda record: record.valid_hits or 0.0).epoch if validated else None


class Checkpoints:
    """The checkpoints of one training."""

    def __init__(self, model: EmbeddingModel, folder: Path | None, keep_best: bool = True) -> None:
        """Keep checkpoints of the last epoch and, with `keep_best`, of the best epoch in `folder`.

        Without a folder only the best epoch is kept, in memory.
        """
        self._model, self._folder, self._keep_best = model, folder, keep_best
        self._best_in_memory: State = {}

    def best(self, history: Sequence[EpochRecord]) -> int | None:
        """The best epoch; None if `keep_best` is off or no epoch was validated."""
        return best_epoch(history) if self._keep_best else None

    def save(self, history: Sequence[EpochRecord]) -> None:
        """Save the present epoch, then remove all checkpoints except this one and the best."""
        best = self.best(history)
        if self._folder is None:
            if best == history[-1].epoch:
                self._best_in_memory = {name: tensor.cpu().clone() for name, tensor in self._model.tensors().items()}
            return
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._model.tensors().items()}
        path = self._path(len(history))
        write_folder(path, lambda folder: _write(folder, tensors, history), fix=_FIX)
        kept = {path, path if best is None else self._path(best + 1)}
        for old in self._saved():
            if old not in kept:
                shutil.rmtree(old, ignore_errors=True)  # a leftover does no harm, and the next save tries again

    def resume(self) -> list[EpochRecord]:
        """Load the last complete checkpoint into the model, if there is one; returns the history so far."""
        for path in reversed(self._saved()):
            checkpoint = _read(path)
            if checkpoint is not None:
                tensors, history = checkpoint
                self._model.load_tensors(tensors)
                _log.info("train: resuming after epoch %d", len(history))
                return history
        return []

    def restore_best(self, history: Sequence[EpochRecord]) -> None:
        """Load the best epoch into the model, unless the present epoch is the best or `keep_best` is off."""
        best = self.best(history)
        if best is None or best == history[-1].epoch:
            return
        state = self._best_in_memory
        if self._folder is not None:
            checkpoint = _read(self._path(best + 1))
            state = {} if checkpoint is None else checkpoint[0]
        if state:
            self._model.load_tensors(state)
            _log.info("train: epoch %d was best on the valid links and is kept", best + 1)
        else:
            _log.warning(
                "train: epoch %d was best on the valid links but its checkpoint is missing; the last is kept", best + 1
            )

    def _path(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"epoch-{number:06d}"

    def _saved(self) -> list[Path]:
        """All checkpoints in the folder, by ascending epoch, without checking whether they are damaged."""
        if self._folder is None or not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))


def _write(folder: Path, tensors: State, history: Sequence[EpochRecord]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path = folder / _STATE
    try:
        save_file(tensors, path, {"history": json.dumps(to_plain(list(history)))})
    except SafetensorError as error:  # safetensors raises this instead of OSError if the disk is full
        raise StorageError(f"cannot write {path}: {error}; {_FIX}") from error
    (folder / _CHECKSUM).write_text(_checksum(path))


def _read(folder: Path) -> tuple[State, list[EpochRecord]] | None:
    """Read a checkpoint; None, with a warning, if it is damaged or missing."""
    from safetensors import safe_open

    path = folder / _STATE
    try:
        if (folder / _CHECKSUM).read_text() != _checksum(path):
            raise OSError("its checksum differs")
    except (OSError, ValueError) as error:
        _log.warning("%s is damaged or missing (%s)", path, error)
        return None
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        plain = json.loads(file.metadata()["history"])
    return tensors, [from_plain(EpochRecord, record) for record in plain]


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
