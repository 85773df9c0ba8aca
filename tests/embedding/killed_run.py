"""Trains in a folder and kills itself: `python -m tests.embedding.killed_run FOLDER [KIND NUMBER]`.

KIND says where, NUMBER at which time that this process gets there: step (before a step), validate (after an epoch,
before its checkpoint), write (half of a checkpoint written), saved (right after a checkpoint). Without them it runs to
the end and writes final.safetensors.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch

from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.embedding.stepping import Stepper
from largegnn.embedding.trainer import Trainer
from tests.embedding.small_runs import copies, random_subgraphs, small_options, small_trainer

# What the valid links are made to say after each epoch: the third is best, the fifth only as good.
HITS = (0.2, 0.1, 0.6, 0.3, 0.6, 0.5)


def killing(number: int, work: Callable[..., Any], before: bool, half: bool = False) -> Callable[..., Any]:
    """The same work, but the process dies at its `number`-th time."""
    times = itertools.count(1)

    def work_or_die(*args: Any, **kwargs: Any) -> Any:
        dies = next(times) == number
        if dies and half:
            path = Path(args[1])
            path.write_bytes(safetensors.torch.save(args[0], args[2])[:500])
        if dies and before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*args, **kwargs)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return work_or_die


def train(folder: Path) -> None:
    """Train to the end and write the result."""
    trainer: Trainer = small_trainer(
        random_subgraphs(3),
        small_options(epochs=len(HITS)),
        checkpoints=CheckpointFolder(folder / "last"),
        best=CheckpointFolder(folder / "best"),
        validate=lambda _: HITS[len(trainer.history)],
    )
    history = trainer.run()
    facts = {"losses": ",".join(record.loss.hex() for record in history)}
    safetensors.torch.save_file(copies(trainer.model), folder / "final.safetensors", facts)


def main() -> None:
    """Train, or die trying."""
    folder = Path(sys.argv[1])
    kind, number = (sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else ("", 0)
    if kind == "step":
        Stepper.step = killing(number, Stepper.step, before=True)  # type: ignore[method-assign]
    elif kind == "validate":
        Trainer._validate_epoch = killing(number, Trainer._validate_epoch, before=False)  # type: ignore[method-assign]
    elif kind == "write":
        safetensors.torch.save_file = killing(number, safetensors.torch.save_file, before=True, half=True)
    elif kind == "saved":
        CheckpointFolder.save = killing(number, CheckpointFolder.save, before=False)  # type: ignore[method-assign]
    train(folder)


if __name__ == "__main__":
    main()
