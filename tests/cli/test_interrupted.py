"""Real runs with a helper process, interrupted and killed: a word about resuming, and no process left behind."""

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

from tests.cli.small_runs import artifacts_of, call, make_pair
from tests.machine.test_processes import members, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
# A division for each epoch, so that a helper is always at work; a checkpoint after each, so that none is made again.
SETTINGS = {
    "train.dim": 8,
    "train.epochs": 30,
    "train.repartition_every": 1,
    "train.checkpoint_seconds": 0,
    "division.parts": 2,
}
LONG = ["--device", "cpu", *(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("interrupted") / "pair")


@pytest.fixture(scope="module")
def undisturbed(pair: Path) -> Path:
    call("align", pair, "--out", pair.parent / "undisturbed", *LONG)
    return pair.parent / "undisturbed"


@contextlib.contextmanager
def training(pair: Path, out: Path) -> Iterator[subprocess.Popen[str]]:
    """A run in a process group of its own, once it trains."""
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


def damage_divisions(run: Path) -> None:
    """Flip a bit in the last byte of every array of the divisions that lie ready."""
    # A kill may leave one that was just begun, without a byte.
    arrays = [path for path in run.glob("work-train*/division-*/*.npy") if path.stat().st_size]
    assert arrays, "a division lies ready"
    for path in arrays:
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("number", "whole_group"), [(signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)]
)
def test_an_interrupted_run_leaves_nobody_behind_and_ends_as_if_undisturbed(
    pair: Path, undisturbed: Path, tmp_path: Path, number: signal.Signals, whole_group: bool
) -> None:
    run = tmp_path / "run"
    with training(pair, run) as process:
        (os.killpg if whole_group else os.kill)(process.pid, number)
        start = time.monotonic()
        process.wait(timeout=20)
        assert wait_until(lambda: not members(process.pid), 3), "a process of the run is left"
        assert time.monotonic() - start < 3
        errors = process.communicate()[1]
    assert "Traceback" not in errors
    if number == signal.SIGKILL:
        assert process.returncode == -number
        damage_divisions(run)
    else:
        assert process.returncode == 128 + number
        assert errors.splitlines()[-1] == f"interrupted; resume it with: largegnn align --resume --out {run}"
    resumed = call("align", "--resume", "--out", run)
    assert "train: resuming after epoch" in resumed.stderr
    assert artifacts_of(run) == artifacts_of(undisturbed)
    assert not list(run.rglob("*.partial"))
    assert not list(run.glob("work-*"))


def test_what_is_said_of_other_interruptions(pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as impatient:
        impatient.setattr("largegnn.division.warm_up", lambda: None)  # it divides a graph of its own
        impatient.setattr("largegnn.division.subgraphs.build_subgraphs", interrupt)
        kept = call("divide", pair, "--out", tmp_path / "my run", expect=130)
        passing = call("divide", pair, "--parts", "2", expect=130)
    out = tmp_path / "my run"
    assert kept.stderr.splitlines()[-1].endswith(f"largegnn align --resume --out '{out}' --to subgraphs")
    assert passing.stderr.splitlines()[-1] == "interrupted; nothing was left half-written", "there is nothing to resume"
    assert "subgraphs: started" in call("align", "--resume", "--out", out, "--to", "subgraphs").stderr
    with monkeypatch.context() as impatient:
        impatient.setattr("largegnn.runfolder.store.RunStore.lock", interrupt)
        early = call("align", pair, "--out", tmp_path / "new", expect=130)
    assert early.stderr.splitlines()[-1] == "interrupted; nothing was left half-written"


def test_interrupted_while_the_program_is_loaded() -> None:
    program = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "largegnn.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from largegnn.cli import main
main(["--help"])
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "")
