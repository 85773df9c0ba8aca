"""What is kept of a training run as it goes: the last epoch, to resume from, and the best one, to end with.

In: the model and its history after an epoch. Out: both, as they were saved.
The idea: the checkpoint of an epoch is written before the same epoch is kept as the best: whatever happens in between,
the history then shows which epoch is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from largegnn.artifacts import EpochRecord, from_plain, to_plain
from largegnn.embedding.checkpoint import Checkpoints
from largegnn.embedding.model import EmbeddingModel

__all__ = ["SavedEpochs", "best_epoch"]

_log = logging.getLogger(__name__)


def best_epoch(history: Sequence[EpochRecord]) -> int | None:
    """The epoch with most hits on the valid links, the earliest of equals; None if none was validated."""
    validated = [record for record in history if record.valid_hits is not None]
    return max(validated, key=lambda record: record.valid_hits or 0.0).epoch if validated else None


class SavedEpochs:
    """Saves and restores the last epoch and the best one; either may be None, which keeps nothing."""

    def __init__(self, model: EmbeddingModel, last: Checkpoints | None, best: Checkpoints | None) -> None:
        self._model, self._last, self._best = model, last, best

    def resume(self) -> list[EpochRecord]:
        """Bring the model to the last checkpoint, if there is one; the history so far."""
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
        """Bring the model to the best epoch, if it is known and not the present one."""
        best = best_epoch(history)
        if best is None or best == history[-1].epoch:
            return
        found = None if self._best is None else self._best.load_latest()
        if found is not None and found[0] == best + 1:
            self._model.load_tensors(found[1])
            _log.info("train: epoch %d was best on the valid links and is kept", found[0])
        else:
            _log.warning("train: epoch %d was best on the valid links but cannot be found; the last is kept", best + 1)
