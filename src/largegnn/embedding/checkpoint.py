"""Save and load the epochs of a training: the last one, to resume from, and the best one, to end with.

    epoch-000012/state.safetensors   the parameters; in the header the history of the training as JSON
    epoch-000012/sha256              the checksum of that file

In: a model and its history. Out: the same, of the last epoch that is whole on disk.
The idea: a folder is written under another name, flushed and renamed, so that a kill at any moment leaves the earlier
ones, which are removed afterwards; and a file is only trusted after its checksum was compared. No pickle anywhere.
A training without a folder keeps the best epoch in memory.
Cost: one pass over the bytes to write and one to hash. One process may write to a folder at a time.
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
_FIX = "the checkpoints before it are intact, free some space and resume"
State = dict[str, torch.Tensor]


def best_epoch(history: Sequence[EpochRecord]) -> int | None:
    """The epoch with most hits on the valid links, the earliest of equals; None if none was validated."""
    validated = [record for record in history if record.valid_hits is not None]
    return max(validated, key=lambda record: record.valid_hits or 0.0).epoch if validated else None


class Checkpoints:
    """The checkpoints of one training."""

    def __init__(self, model: EmbeddingModel, folder: Path | None, keep_best: bool = True) -> None:
        """Without `keep_best` only the last epoch is kept; without a folder only the best."""
        self._model, self._folder, self._keep_best = model, folder, keep_best
        self._best_in_memory: State = {}

    def best(self, history: Sequence[EpochRecord]) -> int | None:
        """The best epoch, if it is to be kept."""
        return best_epoch(history) if self._keep_best else None

    def save(self, history: Sequence[EpochRecord]) -> None:
        """Keep the present epoch, then remove all but this and the best."""
        best = self.best(history)
        if self._folder is None:
            if best == history[-1].epoch:
                self._best_in_memory = {name: tensor.cpu().clone() for name, tensor in self._model.tensors().items()}
            return
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self._model.tensors().items()}
        path = self._place(len(history))
        write_folder(path, lambda folder: _write(folder, tensors, history), fix=_FIX)
        kept = {path, path if best is None else self._place(best + 1)}
        for other in self._saved():
            if other not in kept:
                shutil.rmtree(other, ignore_errors=True)  # one too many does no harm, and the next save tries again

    def resume(self) -> list[EpochRecord]:
        """Load the last checkpoint that is whole into the model, if there is one; the history so far."""
        for path in reversed(self._saved()):
            found = _read(path)
            if found is not None:
                self._model.load_tensors(found[0])
                _log.info("train: resuming after epoch %d", len(found[1]))
                return found[1]
        return []

    def restore_best(self, history: Sequence[EpochRecord]) -> None:
        """Load the best epoch into the model, if it is to be kept and not the present one."""
        best = self.best(history)
        if best is None or best == history[-1].epoch:
            return
        state = self._best_in_memory
        if self._folder is not None:
            found = _read(self._place(best + 1))
            state = {} if found is None else found[0]
        if state:
            self._model.load_tensors(state)
            _log.info("train: epoch %d was best on the valid links and is kept", best + 1)
        else:
            _log.warning(
                "train: epoch %d was best on the valid links but its checkpoint is missing; the last is kept", best + 1
            )

    def _place(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"epoch-{number:06d}"

    def _saved(self) -> list[Path]:
        """The checkpoints in the folder, damaged ones among them, by ascending epoch."""
        if self._folder is None or not self._folder.is_dir():
            return []
        return sorted(path for path in self._folder.iterdir() if _NAME.fullmatch(path.name))


def _write(folder: Path, tensors: State, history: Sequence[EpochRecord]) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path = folder / _STATE
    try:
        save_file(tensors, path, {"history": json.dumps(to_plain(list(history)))})
    except SafetensorError as error:  # its own for a full disk
        raise StorageError(f"cannot write {path}: {error}; {_FIX}") from error
    (folder / _CHECKSUM).write_text(_checksum(path))


def _read(folder: Path) -> tuple[State, list[EpochRecord]] | None:
    """One checkpoint; None, with a warning, if it is not what was written."""
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
