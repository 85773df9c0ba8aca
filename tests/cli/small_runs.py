"""A pair and settings so small that a whole run takes a moment, and commands without the seconds a process needs."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from largegnn import api
from largegnn.cli import main
from largegnn.settings import STEPS, WorldSettings

# 150 of the 380 entities have a counterpart; a third of these links are seeds, a third chooses, a third measures.
WORLD = WorldSettings(
    source_entities=200,
    target_entities=180,
    links=150,
    source_relations=12,
    target_relations=10,
    source_triples=1_000,
    target_triples=900,
    community_size=30,
    train_share=0.3,
    valid_share=0.3,
    missing=0.05,
)
# Two epochs find too few valid links to calibrate by; four are enough.
HASTY = ["--device", "cpu", "--set", "train.dim=8", "--set", "train.epochs=2", "--set", "train.repartition_every=0"]
QUICK = [*HASTY, "--set", "train.epochs=4"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        return json.loads(self.stdout)


def call(*arguments: str | Path, expect: int = 0) -> Ended:
    """A command as `tests.cli.test_cli.largegnn` runs it, but in this process."""
    stdout, stderr = io.StringIO(), io.StringIO()
    code: Any = None
    with (
        _logging_restored(),
        _one_thread(),
        mock.patch.dict(os.environ, COLUMNS="400"),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
    assert code == expect, stderr.getvalue()
    return Ended(code, stdout.getvalue(), stderr.getvalue())


def make_pair(folder: Path) -> Path:
    """Write the small pair as an OpenEA folder."""
    api.generate(WORLD, folder=folder)
    return folder


def started(log: str) -> list[str]:
    """The stages that a log says were computed."""
    return [name for name in STEPS if f"{name}: started" in log]


def stages_from(name: str) -> list[str]:
    """This stage and all after it."""
    return list(STEPS[STEPS.index(name) :])


def artifacts_of(folder: Path) -> dict[str, bytes]:
    """Every file of a finished run that says what was found, none that says what it cost."""
    files = [*folder.glob("*/*.npy"), *folder.glob("*.tsv"), folder / "config.toml"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def without_costs(report: dict[str, Any]) -> dict[str, Any]:
    """A report without seconds and memory, which are never the same twice."""
    history = [{key: value for key, value in epoch.items() if key != "seconds"} for epoch in report["history"] or []]
    return {**{key: value for key, value in report.items() if key != "stages"}, "history": history}


@contextlib.contextmanager
def _logging_restored() -> Iterator[None]:
    """The command line sets up logging for a process of its own; here others come after it."""
    root, ours = logging.getLogger(), logging.getLogger("largegnn")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums are the same to the bit only with the same number of threads, and so little work gains nothing by more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
