"""Real runs with a helper process at work, interrupted and killed: a word about resuming, and nobody left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.small_runs import call, make_pair
from tests.machine.test_processes import members, wait_until

LONG = ["--device", "cpu", "--set", "train.dim=8", "--set", "train.epochs=2000", "--set", "train.repartition_every=1"]


@contextlib.contextmanager
def training(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, once it trains."""
    pair, out = make_pair(folder / "pair"), folder / "run"
    command = [sys.executable, "-m", "largegnn", "align", str(pair), "--out", str(out), *LONG]
    pipe, environment = subprocess.PIPE, os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "400"}
    process = subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "train: epoch 3 of" in line:
                break
        assert wait_until(lambda: len(members(process.pid)) == 2, 30), "the next division is made by a helper"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize(("number", "whole_group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_an_interrupted_run_says_how_to_resume(tmp_path: Path, number: signal.Signals, whole_group: bool) -> None:
    with training(tmp_path) as process:
        (os.killpg if whole_group else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 128 + number
        assert f"largegnn align --resume --out {tmp_path / 'run'}" in errors.splitlines()[-1]
        assert "Traceback" not in errors
        assert wait_until(lambda: not members(process.pid), 2)


def test_a_killed_run_leaves_no_process_and_can_be_resumed(tmp_path: Path) -> None:
    with training(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        start = time.monotonic()
        assert wait_until(lambda: not members(process.pid), 2), time.monotonic() - start
    call("align", "--resume", "--out", tmp_path / "run", "--to", "subgraphs")
    assert not list((tmp_path / "run").rglob("*.partial"))
