"""Runs killed at random moments, the parent alone or with its helpers: resumed they end equal to the byte."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from largegnn.runfolder.store import RunStore
from tests.cli.small_runs import artifacts_of, make_pair
from tests.fuzz.mutate import generator
from tests.fuzz.seed import SEED, num_inputs
from tests.machine.test_processes import members, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
# Every stage has work, a division is made for each epoch by a helper, and a checkpoint saved after each.
SETTINGS = {
    "train.dim": 8,
    "train.epochs": 8,
    "train.repartition_every": 1,
    "train.checkpoint_seconds": 0,
    "division.parts": 2,
    "rounds.number": 1,
    "rounds.epochs": 3,
}
OPTIONS = ["--device", "cpu", *(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))]


@dataclass
class Kills:
    """How many kills there have to be and were, and which stage each hit."""

    wanted: int
    total: int = 0
    hit: Counter[str] = field(default_factory=Counter)


def begin(pair: Path, run: Path) -> subprocess.Popen[bytes]:
    """A run in a process group of its own: a new one, or one that goes on where another was killed."""
    has_begun = (run / "config.toml").exists()
    what = ["--resume"] if has_begun else [str(pair), *OPTIONS]
    command = [sys.executable, "-m", "largegnn", "-q", "align", *what, "--out", str(run)]
    with run.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=log, stderr=log, start_new_session=True
        )


def seconds_of(pair: Path, run: Path) -> float:
    """How long an undisturbed run takes."""
    started, process = time.monotonic(), begin(pair, run)
    assert process.wait(300) == 0, run.with_suffix(".log").read_text()
    return time.monotonic() - started


def has_ended(group: int) -> bool:
    return not members(group)


def kill_until_done(pair: Path, run: Path, longest: float, rng: random.Random, kills: Kills) -> None:
    """Kill a run at random moments and resume it, until one process gets to the end or all kills are made."""
    while True:
        process = begin(pair, run)
        with contextlib.suppress(subprocess.TimeoutExpired):
            patience = rng.uniform(0.3, longest) if kills.total < kills.wanted else 300
            assert process.wait(patience) == 0, run.with_suffix(".log").read_text()
            return
        is_alone = rng.random() < 0.5
        (os.kill if is_alone else os.killpg)(process.pid, signal.SIGKILL)
        process.wait()
        assert wait_until(partial(has_ended, process.pid), 10), "a process is left behind"
        done = set(RunStore(run).steps) if run.exists() else set()
        kills.total += 1
        kills.hit[f"{'parent' if is_alone else 'group'} after {len(done)} stages"] += 1


def test_killed_at_random_moments(tmp_path: Path) -> None:
    pair, kills = make_pair(tmp_path / "pair"), Kills(num_inputs(2, 1 / 100))
    longest = seconds_of(pair, tmp_path / "calm")
    right = artifacts_of(tmp_path / "calm")
    number = 0
    while kills.total < kills.wanted:
        run = tmp_path / f"run-{number}"
        kill_until_done(pair, run, longest, generator("kills", number), kills)
        found = artifacts_of(run)
        different = sorted(name for name in right | found if right.get(name) != found.get(name))
        assert not different, (different, kills, f"LARGEGNN_FUZZ_SEED={SEED}")
        number += 1
    # Seen with `--log-cli-level=INFO`.
    logging.getLogger(__name__).info("%d kills in %d runs: %s", kills.total, number, dict(sorted(kills.hit.items())))
