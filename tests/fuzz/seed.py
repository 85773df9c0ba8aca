"""The random seed of this run's mutations, fresh each time, and how many inputs there are.

`LARGEGNN_FUZZ_SEED=N` repeats a run. `LARGEGNN_FUZZ=N` tries N inputs for each reader, and fewer of what takes longer;
`make fuzz` sets 10,000. Without it there are so many that all takes about a minute.
"""

from __future__ import annotations

import os
import random

__all__ = ["SEED", "num_inputs", "pytest_report_header"]

# Through the environment, so that every process of a test run draws the same.
SEED = int(os.environ.setdefault("LARGEGNN_FUZZ_SEED", str(random.SystemRandom().randrange(10**9))))
_ASKED = int(os.environ.get("LARGEGNN_FUZZ", "0"))


def num_inputs(usual: int, share: float = 1.0) -> int:
    """How many inputs to try: `usual`, or a share of what `LARGEGNN_FUZZ` asks for."""
    return max(1, round(_ASKED * share)) if _ASKED else usual


def pytest_report_header() -> str:
    """The line at the top of a test run."""
    return f"fuzz: LARGEGNN_FUZZ_SEED={SEED}, {num_inputs(100)} inputs for each reader (LARGEGNN_FUZZ)"
