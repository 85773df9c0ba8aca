"""What a division keeps against the number of subgraphs: `subgraphs.py FOLDER ... [--parts 3,5,10] [--seeds 3]`.

Seeds = train + valid, as in the paper; methods CSG (METIS and landmarks, cap a quarter over an even share), CPS, SBP.
The records go into `docs/results/subgraphs.json`, from which `figures.py` draws; divisions that are there already are
not made again, and what training on them gave (`hits@1`, `peak_memory_mb`) stays as it is.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from pathlib import Path

from largegnn import api
from largegnn.artifacts import AlignmentTask
from largegnn.config import METHODS, PRESETS, Settings
from largegnn.division import warm_up
from largegnn.reporting.subgraph_results import SubgraphRecord, read_subgraphs
from largegnn.resolving import resolve

FILE = Path(__file__).parents[1] / "docs" / "results" / "subgraphs.json"
SWEEP = ("csg", "cps", "sbp")


def measure(task: AlignmentTask, dataset: str, method: str, parts: int, seed: int) -> SubgraphRecord:
    """One division."""
    values = {**METHODS[method], "seed": seed, "protocol": {"seeds_from": "train+valid"}}
    values["division"] = {**METHODS[method]["division"], "parts": parts}
    if method == "csg":
        values["landmarks"] = {"enabled": True, "cap": math.ceil(1.25 * task.num_entities / parts)}
    division = api.divide(task, resolve(Settings, PRESETS, values=values))
    quality = division.quality
    assert quality.train_kept is not None
    assert quality.test_kept is not None
    return SubgraphRecord.model_validate(
        {
            "dataset": dataset,
            "method": method,
            "parts": parts,
            "random_seed": seed,
            "train_kept": round(quality.train_kept, 6),
            "test_kept": round(quality.test_kept, 6),
            "hits@1": None,
            "peak_memory_mb": None,
            "mean_size": round(statistics.mean(quality.sizes), 1),
            "max_size": int(max(quality.sizes)),
        }
    )


def write(records: list[SubgraphRecord], file: Path) -> None:
    """One record a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(record.model_dump(by_alias=True)) for record in records)
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Divide every folder by every method into every number of parts with every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--parts", default="3,4,5,6,7,8,9,10,20,40")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, default=FILE)
    arguments = parser.parse_args()
    warm_up()
    records = read_subgraphs(arguments.json) if arguments.json.exists() else []
    done = {(record.dataset, record.method, record.parts, record.random_seed) for record in records}
    for folder in arguments.folders:
        task = api.load(folder).task
        for method in SWEEP:
            for parts in (int(count) for count in arguments.parts.split(",")):
                for seed in range(arguments.seeds):
                    if (folder.name, method, parts, seed) not in done:
                        records.append(measure(task, folder.name, method, parts, seed))
                        write(records, arguments.json)
                kept = [
                    record.test_kept
                    for record in records
                    if (record.dataset, record.method, record.parts) == (folder.name, method, parts)
                ]
                print(f"{folder.name:<14} {method:<4} n = {parts:<3} test {statistics.mean(kept):.4f}", flush=True)


if __name__ == "__main__":
    main()
