"""Compare runs on a local cluster and in one process: `cluster FOLDER [--workers 0 1 2 4] [--parts 8] [--seeds 0]`.

FOLDER is a data set as `largegnn align` takes it. One run for each number of workers and each random seed, up to the
step `integrate`; 0 workers is a run without a cluster, any other number a run with `--cluster local`. No network is
measured, and the workers share the processors. Each run is one line of the JSON file: H@1 of valid and test links by
CSLS, seconds of each step, and the use of the cluster in training. Finished runs are not repeated.

    python -m lab.benchmarks.cluster data/ContEA_FR_EN --workers 0 1 2 --parts 16
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from lab import RESULTS
from lab.lines import add_line, command, read_lines
from lab.origin import origin_of
from lab.runs import TrainOutcome, run_task
from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, to_plain
from largegnn.evaluation.metrics import rank_links
from largegnn.settings import Settings

RECORDS = RESULTS / "cluster.jsonl"
MAX_RANKED = 70_000  # with more links, exact ranking on two cores takes longer than training


def settings_of(workers: int, parts: int, epochs: int, seed: int) -> Settings:
    """Return the default settings with structure only, and this number of workers; 0: no cluster."""
    cluster = {"address": "local", "workers": workers} if workers else {"address": "none"}
    values: dict[str, Any] = {"seed": seed, "device": "cpu", "channels": ("structure",), "cluster": cluster}
    return Settings.of(values | {"division": {"parts": parts}, "train": {"epochs": epochs}})


def hits(task: AlignmentTask, embeddings: EntityEmbeddings) -> dict[str, float]:
    """Compute H@1 by CSLS of the valid and of the test links, each ranked among themselves, mean of both directions."""
    pairs = {"valid": task.valid_links, "test": task.test_links}
    return {
        name: rank_links(embeddings.vectors[links[:, 0]], embeddings.vectors[links[:, 1]], "csls").hits_at_1()
        for name, links in pairs.items()
        if 0 < len(links) <= MAX_RANKED
    }


def measure(task: AlignmentTask, settings: Settings) -> dict[str, Any]:
    """Make one run; return figures, seconds, and the use of the cluster in training."""
    with tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, task, None, settings, last="integrate")
        return {
            "hits": hits(task, run.artifact("embeddings", EntityEmbeddings)),
            "stage_seconds": {name: run.costs()[name].seconds for name in run.finished},
            "cluster": to_plain(run.outcome("train", TrainOutcome).cluster),
        }


def main() -> None:
    """Make the missing runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--json", type=Path, default=RECORDS)
    options = parser.parse_args()
    done = {line["key"] for line in read_lines(options.json)} if options.json.exists() else set()
    task = api.load(options.folder).task
    for workers in options.workers:
        for seed in options.seeds:
            key = f"local, {options.folder.name}, workers {workers}, parts {options.parts}, seed {seed}"
            if key not in done:
                settings = settings_of(workers, options.parts, options.epochs, seed)
                figures = {"set": options.folder.name, "workers": workers, **measure(task, settings)}
                origin = origin_of(settings, [options.folder], protocol={"command": command()})
                print(json.dumps(add_line(options.json, key, origin, figures)), flush=True)


if __name__ == "__main__":
    main()
