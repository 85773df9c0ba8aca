"""Reuse what is there and right, compute what is not, lose nothing."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from largegnn import pipeline
from largegnn.artifacts import AlignmentTask, MergedGraph
from largegnn.data.inputs import DataInput
from largegnn.division.merge import MergeOutcome
from largegnn.errors import InputError
from largegnn.machine import metering
from largegnn.run import Run
from largegnn.runfolder.store import RunStore
from largegnn.settings import DataSettings, ProtocolSettings, Settings

# The steps that make no use of PyTorch: what is tested here is the same for all, and these take milliseconds.
NAMES = ("load", "literals", "merge", "partition", "landmarks", "subgraphs")
MERGE = NAMES.index("merge")
run_pipeline = partial(pipeline.run_pipeline, last=NAMES[-1])
PAPER = Settings(protocol=ProtocolSettings(seeds_from="train+valid"))


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="largegnn"):
        yield caplog


def computed(said: pytest.LogCaptureFixture) -> list[str]:
    """Stages computed since the last look; every other one must have been reported as reused."""
    messages = [record.getMessage() for record in said.records]
    said.clear()
    return [message.split(":")[0] for message in messages if message.endswith(": started")]


def test_everything_once_then_reused(toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    given, out = DataInput(folder=toy_folder), tmp_path / "run"
    run = run_pipeline(out, given, Settings())
    assert computed(said) == list(NAMES)
    assert run.artifact("merged", MergedGraph).num_nodes == 9
    assert (out / "config.toml").read_text().startswith("seed = 0")
    record = RunStore(out).steps["load"]
    assert record.facts["layout"] == "dbpedia1m"
    assert record.seconds >= 0
    assert record.peak_memory_mb > 10
    again = run_pipeline(out, given, Settings())
    assert [message for message in said.messages if "reused" in message] == [
        f"{name}: reused from {out}" for name in NAMES
    ]
    assert computed(said) == []
    assert np.array_equal(again.artifact("task", AlignmentTask).triples, run.artifact("task", AlignmentTask).triples)


def test_what_was_made_is_mapped_from_the_folder_not_kept(toy_folder: Path, tmp_path: Path) -> None:
    run = run_pipeline(tmp_path / "run", DataInput(folder=toy_folder), Settings())
    array: object = run.artifact("merged", MergedGraph).neighbors
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    assert isinstance(array, np.memmap)


def test_force_from_to(toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    given, out = DataInput(folder=toy_folder), tmp_path / "run"
    with pytest.raises(InputError, match="no intact step load"):
        run_pipeline(out, given, Settings(), first="merge")
    run_pipeline(out, given, Settings(), last="load")
    assert computed(said) == ["load"]
    run_pipeline(out, given, Settings(), first="literals")
    assert computed(said) == list(NAMES[1:])
    run_pipeline(out, given, Settings(), force="merge")
    assert computed(said) == list(NAMES[MERGE:])
    run_pipeline(out, given, Settings(), force="load", last="load")
    assert computed(said) == ["load"]
    assert list(RunStore(out).steps) == ["load"], "what depended on it is gone too"
    with pytest.raises(InputError, match="no step is called 'mergee'"):
        run_pipeline(out, given, Settings(), force="mergee")
    with pytest.raises(InputError, match="comes after"):
        run_pipeline(out, given, Settings(), first="merge", last="load")


def test_another_run_is_refused_until_forced(toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    given, out = DataInput(folder=toy_folder), tmp_path / "run"
    run_pipeline(out, given, Settings())
    before = (out / "03-merged" / "neighbors.npy").read_bytes()
    with pytest.raises(InputError, match="holds another run") as error:
        run_pipeline(out, given, PAPER)
    assert "protocol.seeds_from was 'train', is 'train+valid'" in str(error.value.found)
    assert "--force literals" in str(error.value.fix), "without seeds enough, names and values give some"
    assert (out / "03-merged" / "neighbors.npy").read_bytes() == before
    computed(said)
    run_pipeline(out, given, PAPER, force="literals")
    assert computed(said) == list(NAMES[1:])
    (toy_folder / "test_links").write_text("d\tD\n")
    with pytest.raises(InputError, match="holds another run") as error:
        run_pipeline(out, given, PAPER)
    assert "test_links is not the file it was made from" in str(error.value.found)


def test_same_bytes_elsewhere_are_the_same_input(
    toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    run_pipeline(tmp_path / "run", DataInput(folder=toy_folder), Settings())
    moved = toy_folder.rename(tmp_path / "moved")
    for path in moved.iterdir():
        os.utime(path, (1, 1))
    computed(said)
    run_pipeline(tmp_path / "run", DataInput(folder=moved), Settings())
    assert computed(said) == []


def test_folders_that_are_no_runs(toy_folder: Path, tmp_path: Path) -> None:
    given = DataInput(folder=toy_folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="not a run"):
        run_pipeline(tmp_path / "mine", given, Settings())
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file"):
        run_pipeline(tmp_path / "mine" / "thesis.tex", given, Settings())
    with pytest.raises(InputError, match="cannot be written"):
        run_pipeline(Path("/proc/nowhere/run"), given, Settings())
    with pytest.raises(InputError, match="not a run"):
        Run.open(tmp_path / "nothing")


def test_bad_input_leaves_no_stage(toy_folder: Path, tmp_path: Path) -> None:
    (toy_folder / "train_links").write_text("x\ty\n")
    with pytest.raises(InputError, match="links name entities"):
        run_pipeline(tmp_path / "run", DataInput(folder=toy_folder), Settings())
    assert RunStore(tmp_path / "run").steps == {}


def test_damage_is_computed_anew(toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    given, out = DataInput(folder=toy_folder), tmp_path / "run"
    run_pipeline(out, given, Settings())
    good = (out / "03-merged" / "neighbors.npy").read_bytes()
    computed(said)
    (out / "03-merged" / "neighbors.npy").write_bytes(good[:-7] + b"garbage")
    run_pipeline(out, given, Settings())
    assert "not what was written" in said.text
    assert computed(said) == list(NAMES[MERGE:])
    assert (out / "03-merged" / "neighbors.npy").read_bytes() == good


def test_resume_needs_nothing_but_the_folder(toy_folder: Path, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "run"
    settings = Settings(data=DataSettings(valid_share=0.2), protocol=PAPER.protocol)
    run_pipeline(out, DataInput(folder=toy_folder), settings, last="load")
    computed(said)
    run = Run.open(out)
    given, kept = run.given, run.settings
    assert kept == settings
    for path in toy_folder.iterdir():
        path.unlink()  # as on a machine that has the run folder alone
    run_pipeline(out, given, kept)
    assert computed(said) == list(NAMES[1:])


KILLER = """
import os, signal, sys
from pathlib import Path
import polars
from largegnn.settings import Settings
from largegnn.data.inputs import DataInput
from largegnn.pipeline import run_pipeline

count = 0
def dying(rename):
    def call(self, target):
        global count
        count += self.name.endswith(".partial")
        ours = self.name.endswith(".partial") and count == last
        if ours and last % 2 == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        renamed = rename(self, target)
        if ours:
            os.kill(os.getpid(), signal.SIGKILL)
        return renamed
    return call
Path.replace, Path.rename = dying(Path.replace), dying(Path.rename)
# A fork for each write: one that has imported everything and computed nothing.
for last in range(1, int(sys.argv[3]) + 1):
    child = os.fork()
    if not child:
        run_pipeline(Path(f"{sys.argv[2]}-{last}"), DataInput(folder=Path(sys.argv[1])), Settings(), last="subgraphs")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, f"there is no write {last}"
"""


def arrays_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.glob("*/*.npy")}


def test_killed_at_any_write_it_ends_the_same(toy_folder: Path, tmp_path: Path) -> None:
    given = DataInput(folder=toy_folder)
    clean = run_pipeline(tmp_path / "clean", given, Settings())
    expected = arrays_of(tmp_path / "clean")
    # Manifest and settings; then for each artifact a folder, for each step its record.
    num_writes = 2 + len({name.split("/")[0] for name in expected}) + len(NAMES)
    # After one write is before the next: every write is tried once, now before and now after it.
    killed = tmp_path / "killed"
    subprocess.run([sys.executable, "-c", KILLER, str(toy_folder), str(killed), str(num_writes)], check=True)
    for count in range(1, num_writes + 1):
        out = tmp_path / f"killed-{count}"
        run_pipeline(out, given, Settings())
        assert arrays_of(out) == expected
        assert not list(out.rglob("*.partial"))
    assert clean.finished == list(NAMES)


@contextlib.contextmanager
def tiny_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A real file system that is soon full; skips where one cannot be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_said_and_leaves_what_was_done(toy_folder: Path, tmp_path: Path) -> None:
    entities = 3_000
    for side in (1, 2):
        lines = [f"e{number}\tr\te{number + step}\n" for number in range(entities) for step in (1, 2, 3)]
        (toy_folder / f"rel_triples_{side}").write_text("".join(lines))
    (toy_folder / "train_links").write_text("".join(f"e{number}\te{number}\n" for number in range(500)))
    (toy_folder / "valid_links").unlink()
    (toy_folder / "test_links").unlink()
    command = [sys.executable, "-m", "largegnn", "divide", str(toy_folder), "--out"]
    with tiny_disk(tmp_path / "disk", 520) as disk:
        ended = subprocess.run([*command, str(disk / "run")], check=False, capture_output=True, text=True)
        assert ended.returncode == 3, ended.stderr
        assert "No space left on device" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert list(RunStore(disk / "run").steps) == ["load", "literals"]
        assert all(RunStore(disk / "run").is_intact(stage) for stage in ("load", "literals"))
        subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
        ended = subprocess.run(
            [sys.executable, "-m", "largegnn", "divide", "--resume", "--json", "--out", str(disk / "run")],
            check=True,
            capture_output=True,
            text=True,
        )
        assert "load: reused" in ended.stderr
        assert set(json.loads(ended.stdout)["seconds"]) == set(NAMES)


def test_what_a_gpu_took_is_recorded(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gpu:
        peak = 7 << 30
        is_released = False

        def reset_peak_memory_stats(self) -> None:
            self.peak = 3 << 20

        def max_memory_allocated(self) -> int:
            return self.peak

        def empty_cache(self) -> None:
            self.is_released = True

    given = DataInput(folder=toy_folder)
    monkeypatch.setattr(metering, "_gpu", lambda: None)
    run_pipeline(tmp_path / "without", given, Settings(), last="load")
    assert RunStore(tmp_path / "without").steps["load"].peak_gpu_mb is None
    gpu = Gpu()
    monkeypatch.setattr(metering, "_gpu", lambda: gpu)
    run = run_pipeline(tmp_path / "with", given, Settings(), last="load")
    assert run.costs()["load"].peak_gpu_mb == RunStore(tmp_path / "with").steps["load"].peak_gpu_mb == 3.0
    assert gpu.is_released


def test_a_run_is_told_apart_by_what_it_lacks(tmp_path: Path) -> None:
    run = Run(Settings(), RunStore(tmp_path))
    with pytest.raises(InputError, match="no merged yet") as error:
        run.artifact("merged", MergedGraph)
    assert f"largegnn align --resume --out {tmp_path}" in str(error.value.fix)
    with pytest.raises(InputError, match="no merge yet"):
        run.outcome("merge", MergeOutcome)
