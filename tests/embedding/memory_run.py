"""Trains one epoch and prints its peak memory in MB: `python -m tests.embedding.memory_run STAGE_FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from largegnn.artifacts import SubgraphSet
from largegnn.machine.metering import Meter
from largegnn.runfolder.store import RunStore
from tests.embedding.small_runs import small_options, small_trainer


def main() -> None:
    """Map the subgraphs from the folder, train, report."""
    subgraphs = RunStore(Path(sys.argv[1])).load_scratch("subgraphs", SubgraphSet)
    assert subgraphs is not None
    # No bytes to keep structures with: each is made anew, used and dropped.
    trainer = small_trainer(subgraphs, small_options(epochs=1, batch_size=10, max_memory_gb=0.0))
    meter = Meter()
    trainer.run()
    sys.stdout.write(f"{meter.read().peak_memory_mb}\n")


if __name__ == "__main__":
    main()
