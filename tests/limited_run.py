"""Runs all stages under a hard limit of memory: `python -m tests.limited_run PAIR RUN EXTRA_MB MAX_MEMORY_GB`.

The limit is what the process holds once everything is imported and compiled, and EXTRA_MB more. It counts memory that
is written to, not files that are mapped.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from largegnn import api
from largegnn.pipeline import run_pipeline
from largegnn.settings import Settings
from tests.small_world import WORLD


def settings(max_memory_gb: float) -> Settings:
    """A short training, and the memory that stages may take."""
    return Settings.of(
        {
            "device": "cpu",
            "channels": ["structure", "rules"],
            "division": {"parts": 4},
            "train": {
                "epochs": 1,
                "dim": 8,
                "negatives": 200,
                "repartition_every": 0,
                "validate_every": 1,
                "max_memory_gb": max_memory_gb,
            },
            "search": {"max_memory_gb": max_memory_gb},
        }
    )


def held_kb() -> int:
    """Memory that this process can write to, in KB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmData:")).split()[1])


def main() -> None:
    """Run a tiny pair first, so that the limit is not about libraries, then the pair under the limit."""
    pair, folder = map(Path, sys.argv[1:3])
    extra_mb, max_memory_gb = map(float, sys.argv[3:5])
    tiny = folder.with_name("tiny")
    api.generate(WORLD, folder=tiny)
    run_pipeline(folder.with_name("tiny-run"), api.data_input(tiny), settings(max_memory_gb))
    limit = int(1024 * held_kb() + extra_mb * 2**20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    run_pipeline(folder, api.data_input(pair), settings(max_memory_gb))


if __name__ == "__main__":
    main()
