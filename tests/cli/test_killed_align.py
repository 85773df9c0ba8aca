"""A run that is killed, or whose disk is full, goes on in the same folder and ends as if nothing had happened."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from largegnn.runfolder.store import RunStore
from tests.cli.small_runs import QUICK, artifacts_of, call, make_pair, without_costs
from tests.test_pipeline import tiny_disk

# Begins a run, then resumes it; each time it dies at the first log message that starts with the next moment.
# Every process is a fork of one that has imported the most and computed nothing: that takes seconds each time.
KILLER = """
import json, logging, os, signal, sys
from pathlib import Path
import torch
from largegnn.cli import main
from largegnn.embedding import trainer
from largegnn import pipeline
from largegnn.runfolder.store import RunStore

class Killer(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(moment):
            os.kill(os.getpid(), signal.SIGKILL)

logging.getLogger("largegnn").addHandler(Killer())
begin, out, ended = sys.argv[4:], ["--out", sys.argv[2]], {}
for moment in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        main([*begin, *out])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended[moment] = [code, list(RunStore(Path(sys.argv[2])).steps)]
    begin = ["align", "--resume"]
with open(sys.argv[3], "w") as file:
    json.dump(ended, file)
"""
# A checkpoint after every epoch, so that what is taken up again is never nothing.
SETTINGS = [*QUICK, "--set", "train.checkpoint_seconds=0", "--rounds", "1", "--set", "rounds.epochs=2"]
MOMENTS = (
    "train: epoch 3 of 4",
    "integrate: started",
    "rounds: round 1 with",
    "search: started",
    "match: started",
    "evaluate: started",
    "report: started",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pair(tmp_path_factory.mktemp("killed") / "pair")


@pytest.fixture(scope="module")
def calm(pair: Path) -> Path:
    """A run that nothing disturbed."""
    call("align", pair, "--out", pair.parent / "calm", *SETTINGS)
    return pair.parent / "calm"


def assert_same(folder: Path, calm: Path) -> None:
    assert artifacts_of(folder) == artifacts_of(calm)
    reports = [json.loads((run / "report.json").read_text()) for run in (folder, calm)]
    assert without_costs(reports[0]) == without_costs(reports[1])
    assert {path.name for path in folder.iterdir()} - {".lock"} == {path.name for path in calm.iterdir()} - {".lock"}


def test_killed_in_every_stage_it_ends_as_if_undisturbed(pair: Path, calm: Path, tmp_path: Path) -> None:
    run, ended = tmp_path / "run", tmp_path / "ended.json"
    command = [sys.executable, "-c", KILLER, json.dumps(MOMENTS), str(run), str(ended), "align", str(pair), *SETTINGS]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    killed = subprocess.run(command, check=False, capture_output=True, text=True, env=alone, timeout=300)
    assert killed.returncode == 0, killed.stderr
    for moment, (code, stages) in json.loads(ended.read_text()).items():
        assert code == -signal.SIGKILL, (moment, killed.stderr)
        assert moment.split(":")[0] not in stages
    assert "train: resuming after epoch" in killed.stderr
    last = call("align", "--resume", "--out", run)
    assert "match: reused" in last.stderr
    assert_same(run, calm)


def test_a_disk_that_is_full_at_some_write(
    pair: Path, calm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores, checkpoints and exports all flush what they write: there the disk is found full, now here, now there."""
    flush, left = os.fsync, 0

    def flush_or_fail(handle: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", flush_or_fail)
    call("align", pair, "--out", tmp_path / "counted", *SETTINGS)
    num_writes = -left
    assert num_writes > 40
    for place in range(2, num_writes + 1, 13):
        run, left = tmp_path / f"full-{place}", place
        full = call("align", pair, "--out", run, *SETTINGS, expect=3)
        assert "No space left on device" in full.stderr
        assert "Traceback" not in full.stderr
        assert not list(run.rglob("*.partial"))
        assert all(RunStore(run).is_intact(stage) for stage in RunStore(run).steps)
        call("align", "--resume", "--out", run)
        assert_same(run, calm)
        shutil.rmtree(run)


def test_a_real_disk_that_is_full(pair: Path, calm: Path, tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", 200) as disk:
        full = call("align", pair, "--out", disk / "run", *SETTINGS, expect=3)
        assert "No space left on device" in full.stderr
        assert "Traceback" not in full.stderr
        done = list(RunStore(disk / "run").steps)
        assert done
        assert all(RunStore(disk / "run").is_intact(stage) for stage in done)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert "load: reused" in call("align", "--resume", "--out", disk / "run").stderr
        assert_same(disk / "run", calm)
        with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(4096)):
                pass
        before = {path.name for path in (disk / "run").iterdir()}
        for form in ("sssom", "embeddings-npy"):
            full = call("export", disk / "run", "--form", form, expect=3)
            assert "No space left on device" in full.stderr
            assert {path.name for path in (disk / "run").iterdir()} == before, "nothing is half-written"
        (disk / "filler").unlink()
        rows = call("export", disk / "run", "--form", "sssom", "--form", "embeddings-npy", "--json").json()
        assert rows[str(disk / "run" / "embeddings.npy")] == 380
