"""How well training aligns: `accuracy.py FOLDER ... [--settings 'best;plain'] [--repeats 3] [--device cpu]`.

Paper protocol: seeds = train + valid, fixed number of epochs, test sources against all test targets, ties against us,
structure only, no self-training rounds. Every setting runs with several random seeds (of METIS too); mean and standard
deviation are printed as H@1 by cosine and by CSLS (k = 10), source to target. `--json FILE` keeps every run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.evaluation.measures import summarise
from largegnn.evaluation.metrics import rank_links
from largegnn.paper.origin import write_rows
from largegnn.runs.on_task import run_task
from largegnn.settings import PRESETS, Settings, resolve

LARGE: dict[str, Any] = {"dim": 128, "epochs": 30}
PLAIN: dict[str, Any] = {
    "train": LARGE | {"negatives": 0, "repartition_every": 0},
    "integrate": {"method": "average"},
}


def changed(base: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    """A setting with some values changed."""
    return base | {section: base.get(section, {}) | values for section, values in sections.items()}


SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "best": {"train": LARGE | {"negatives": 0}},
    "best, 2,000 negatives": {"train": LARGE},
    "plain, full": changed(PLAIN, integrate={"method": "full"}),
    "plain": PLAIN,
    "plain, 45 epochs": changed(PLAIN, train={"epochs": 45}),
    "plain w/o CLG": changed(PLAIN, landmarks={"enabled": False}),
    "plain w/o CNS": changed(PLAIN, train={"losses": {"cross_subgraph": 0.0}}),
    "plain w/o ER": changed(PLAIN, train={"losses": {"reconstruction": 0.0}}),
    "plain w/o both": changed(PLAIN, train={"losses": {"cross_subgraph": 0.0, "reconstruction": 0.0}}),
    "whole graph": {
        "division": {"parts": 1},
        "landmarks": {"enabled": False},
        "train": LARGE | {"repartition_every": 0},
    },
    "gcn": {"train": LARGE | {"encoder": "gcn"}},
}


def measure(
    task: AlignmentTask, values: dict[str, Any], seed: int, device: str, parts: int, cap: int
) -> dict[str, Any]:
    """One run from the merged graph to H@1 of the test links."""
    common = {"seed": seed, "device": device, "protocol": {"seeds_from": "train+valid"}}
    sized = changed({"division": {"parts": parts}, "landmarks": {"cap": cap}}, **values)
    with tempfile.TemporaryDirectory() as folder:
        settings = resolve(Settings, PRESETS, values=common | sized)
        run = run_task(folder, task, settings=settings, last="integrate")
        embeddings, costs = (
            run.artifact("embeddings", EntityEmbeddings),
            {name: run.cost(name) for name in run.finished()},
        )
        sources, targets = (embeddings.vectors[task.test_links[:, side]] for side in (0, 1))
        covered = [embeddings.covered[task.test_links[:, side]] for side in (0, 1)]
    result: dict[str, Any] = {"seed": seed, "seconds": {name: cost.seconds for name, cost in costs.items()}}
    result["peak_memory_mb"] = max(cost.peak_memory_mb for cost in costs.values())
    for scoring in ("cosine", "csls"):
        ranks = rank_links(sources, targets, scoring, source_covered=covered[0], target_covered=covered[1])
        result[scoring] = summarise(ranks).source_to_target
    return result


def main() -> None:
    """Run every setting with every random seed on every folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--settings", default=";".join(SETTINGS))
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each setting")
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--cap", type=int, default=7_500)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for folder in arguments.folders:
        task = api.load(folder).task
        for name in arguments.settings.split(";"):
            runs = [
                measure(task, SETTINGS[name], seed, arguments.device, arguments.parts, arguments.cap)
                for seed in range(arguments.repeats)
            ]
            rows.append({"set": Path(folder).name, "setting": name, "runs": runs})
            shown = []
            for scoring in ("cosine", "csls"):
                hits = [run[scoring]["hits@1"] for run in runs]
                spread = statistics.stdev(hits) if len(hits) > 1 else 0.0
                shown.append(f"{scoring} {statistics.mean(hits):.4f} ± {spread:.4f}")
            seconds = statistics.mean(run["seconds"]["train"] for run in runs)
            memory = max(run["peak_memory_mb"] for run in runs)
            print(
                f"{rows[-1]['set']:<14} {name:<15} {'  '.join(shown)}  train {seconds:.0f} s, {memory:,.0f} MB",
                flush=True,
            )
            if arguments.json:
                write_rows(arguments.json, rows, [Path(folder)])


if __name__ == "__main__":
    main()
