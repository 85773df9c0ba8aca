"""The random seed of this run's mutations, fresh each time, and how many inputs there are.

`LARGEGNN_FUZZ_SEED=N` repeats a run. `LARGEGNN_FUZZ=N` tries N inputs for each reader and a tenth of that of what takes
longer; `make fuzz` sets 10,000.
"""

from __future__ import annotations

import os
import random

__all__ = ["INPUTS", "SEED", "pytest_report_header"]

# Through the environment, so that every process of a test run draws the same.
SEED = int(os.environ.setdefault("LARGEGNN_FUZZ_SEED", str(random.SystemRandom().randrange(10**9))))
INPUTS = int(os.environ.get("LARGEGNN_FUZZ", "300"))


def pytest_report_header() -> str:
    """The line at the top of a test run."""
    return f"fuzz: LARGEGNN_FUZZ_SEED={SEED}, {INPUTS} inputs a reader (LARGEGNN_FUZZ)"
