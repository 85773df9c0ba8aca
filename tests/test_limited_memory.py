"""`max_memory_gb` holds for every stage: a run ends well under a hard limit that its process cannot pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from largegnn import api
from largegnn.run import Run
from largegnn.runfolder.store import RunStore
from largegnn.settings import STEPS, Settings, WorldSettings

# All scores of 4,900 test links are 96 MB; with the default of 4 GB the run dies in the search.
PAIR = WorldSettings(
    source_entities=7_000,
    target_entities=7_000,
    links=7_000,
    source_relations=20,
    target_relations=20,
    source_triples=14_000,
    target_triples=14_000,
    community_size=50,
)
EXTRA_MB = 110
ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the limit counts something else")


def run(folder: Path, max_memory_gb: float) -> subprocess.CompletedProcess[str]:
    pair = folder / "pair"
    api.generate(PAIR, folder=pair)
    command = [sys.executable, "-m", "tests.limited_run", pair, folder / "run", EXTRA_MB, max_memory_gb]
    # One thread: every other one has a stack of its own.
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [str(word) for word in command], check=False, capture_output=True, text=True, env=alone, cwd=ROOT
    )


def test_every_stage_keeps_to_its_memory(tmp_path: Path) -> None:
    ended = run(tmp_path, 0.02)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert Run(Settings(), RunStore(tmp_path / "run")).finished == [name for name in STEPS if name != "rounds"]
