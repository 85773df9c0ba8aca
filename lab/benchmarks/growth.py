"""Measure time and memory by the size of the graphs: `growth SIZE ... --runs DIR [--last match] [--set K=V]`.

SIZE is the number of entities of each graph, in thousands. A generated pair has five triples for each entity, and half
of the entities are linked. The pair goes directly into a run folder (`loading.py` measures the loading of files) and is
run with `--preset 1m`, ten epochs and parts of 75,000 entities, up to the step `--last`. The JSON file gets one line
for each size: seconds, peak memory of the process and of the GPU by step. Interrupted runs are resumed.

    python -m lab.benchmarks.growth 5 50 500 1500 5000 --runs /tmp/growth
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import RunStore, run_task
from largegnn.datasets.generator import generate_pair
from largegnn.settings import PRESETS, Settings, WorldSettings, resolve

RECORDS = RESULTS / "growth.jsonl"
PART = 75_000  # entities of a part; with landmarks a subgraph has at most 90,000
STEPS = ("merge", "partition", "landmarks", "subgraphs", "train", "integrate", "search", "match")


def world_of(size: int) -> WorldSettings:
    """Return the settings of a pair with this many entities in each graph."""
    return WorldSettings(
        source_entities=size,
        target_entities=size,
        links=size // 2,
        source_relations=600,
        target_relations=400,
        source_triples=size * 11 // 2,
        target_triples=size * 9 // 2,
        missing=0.3,
        degree_exponent=2.0,
        community_size=400,
        inside=0.94,
    )


def measure(size: int, runs: Path, last: str, overrides: list[str], records: Path) -> None:
    """Run one size and record its seconds and memory."""
    changes = [f"division.parts={-(-2 * size // PART)}", "train.epochs=10", *overrides]
    settings = resolve(Settings, PRESETS, "1m", None, changes)
    started = time.monotonic()
    pair = generate_pair(world_of(size), seed=0)
    print(f"{size:,} entities a side generated in {time.monotonic() - started:.0f} s", flush=True)
    folder = runs / str(size)
    run_task(folder, pair.task, None, settings, last=last)
    figures = read_run(folder)
    origin = origin_of(settings, (), channels=("structure", "rules"), protocol={"generated": f"{size:,} a side"})
    key = f"growth, {size:,} entities a side, {origin.machine.gpu or 'no GPU'}, {origin.machine.cores} cores"
    add_line(records, key, origin, {"entities": 2 * size, "triples": len(pair.task.triples), **figures})


def read_run(folder: Path) -> dict[str, Any]:
    """Read the seconds and memory of each step of a run from its folder."""
    stages = RunStore(folder).steps
    done = {name: stages[name] for name in STEPS if name in stages}
    history = stages["train"].facts.get("history", []) if "train" in stages else []
    valid = [epoch["valid_hits"] for epoch in history if epoch["valid_hits"] is not None]
    return {
        "stage_seconds": {name: round(entry.seconds, 2) for name, entry in done.items()},
        "stage_peak_mb": {name: round(entry.peak_memory_mb) for name, entry in done.items()},
        "stage_gpu_mb": {name: round(entry.peak_gpu_mb) for name, entry in done.items() if entry.peak_gpu_mb},
        "seconds": round(sum(entry.seconds for entry in done.values()), 1),
        "epoch_seconds": round(sorted(epoch["seconds"] for epoch in history)[len(history) // 2], 3)
        if history
        else None,
        "valid_hits@1": valid[-1] if valid else None,
    }


def main() -> None:
    """Measure the given sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, help="thousands of entities a side")
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--last", default="match")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--json", type=Path, default=RECORDS)
    arguments = parser.parse_args()
    for size in arguments.sizes:
        measure(1000 * size, arguments.runs, arguments.last, arguments.overrides, arguments.json)
        print(json.dumps(read_lines(arguments.json)[-1]["stage_seconds"]), flush=True)


if __name__ == "__main__":
    main()
