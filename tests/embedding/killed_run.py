"""Trains in a folder and kills itself, again and again: `python -m tests.embedding.killed_run FOLDER [KIND NUMBER]...`.

KIND says where, NUMBER at which time that a process gets there: step (before a step), validate (after an epoch, before
its checkpoint), write (half of a checkpoint written), saved (right after a checkpoint). One process dies for each, then
one runs to the end and writes final.safetensors. How each ended is printed. The processes are forks of one that has
imported everything and computed nothing: that takes seconds each time.
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

from largegnn.embedding.checkpoint import Checkpoints
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
        folder=folder / "checkpoints",
        validate=lambda _: HITS[len(trainer.history)],
    )
    history = trainer.run()
    facts = {"losses": ",".join(record.loss.hex() for record in history)}
    safetensors.torch.save_file(copies(trainer.model), folder / "final.safetensors", facts)


def main() -> None:
    """One process after the other."""
    folder, moments = Path(sys.argv[1]), sys.argv[2:]
    for kind, number in [*zip(moments[::2], moments[1::2], strict=True), ("", "0")]:
        child = os.fork()
        if not child:
            train_or_die(folder, kind, int(number))
            os._exit(0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")


def train_or_die(folder: Path, kind: str, number: int) -> None:
    """Train, or die trying."""
    if kind == "step":
        Stepper.step = killing(number, Stepper.step, before=True)  # type: ignore[method-assign]
    elif kind == "validate":
        Trainer._validate_epoch = killing(number, Trainer._validate_epoch, before=False)  # type: ignore[method-assign]
    elif kind == "write":
        safetensors.torch.save_file = killing(number, safetensors.torch.save_file, before=True, half=True)
    elif kind == "saved":
        Checkpoints.save = killing(number, Checkpoints.save, before=False)  # type: ignore[method-assign]
    train(folder)


if __name__ == "__main__":
    main()
