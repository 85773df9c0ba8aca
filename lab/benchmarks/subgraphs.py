"""Measure accuracy and memory by the number of subgraphs: `subgraphs FOLDER ... [--parts 3,5,10] [--repeats 3]`.

Seeds = train + valid, as in the paper; methods: CSG (METIS and landmarks, cap a quarter above an even share), CPS, SBP.
Every division is trained in the plain setting of the 15K tables, in a process of its own: links kept, sizes, H@1 of the
test links, peak memory of a GPU. With `--memory` one epoch of the first random seed is trained instead, on a CPU with
one thread: peak memory of the process. Records are lines of `lab/results/subgraphs.jsonl`
and are not measured again; several processes may share the file if each has its own methods or numbers of parts.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import Origin, origin_of
from lab.runs import Division, run_task
from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.evaluation.metrics import rank_links, summarise
from largegnn.settings import METHODS, PRESETS, Settings, resolve

RECORDS = RESULTS / "subgraphs.jsonl"
ALL_METHODS = ("csg", "cps", "sbp")
PLAIN: dict[str, Any] = {"dim": 128, "batch_size": 1_024, "negatives": 0, "repartition_every": 0, "epochs": 30}


def settings_of(task: AlignmentTask, method: str, parts: int, seed: int, *, memory: bool) -> Settings:
    """Return the settings of a division and of plain training on it."""
    values = {**METHODS[method], "seed": seed, "protocol": {"seeds_from": "train+valid"}}
    values["division"] = {**METHODS[method]["division"], "parts": parts}
    if method == "csg":
        values["landmarks"] = {"enabled": True, "cap": math.ceil(1.25 * task.num_entities / parts)}
    values |= {"train": PLAIN | ({"epochs": 1} if memory else {}), "integrate": {"method": "plain_average"}}
    if memory:
        values["device"] = "cpu"
    return resolve(Settings, PRESETS, values=values)


def measure(folder: Path, method: str, parts: int, seed: int, memory: bool) -> tuple[dict[str, Any], Origin]:
    """Divide and train; return the figures and their origin."""
    task = api.load(folder).task
    settings = settings_of(task, method, parts, seed, memory=memory)
    figures: dict[str, Any] = {"dataset": folder.name, "method": method, "parts": parts, "random_seed": seed}
    with tempfile.TemporaryDirectory() as run_folder:
        run = run_task(run_folder, task, settings=settings, last="integrate")
        cost = run.costs()["train"]
        if memory:
            figures["peak_memory_mb"] = cost.peak_memory_mb
        else:
            quality, embeddings = Division.of(run).quality, run.artifact("embeddings", EntityEmbeddings)
            vectors = [embeddings.vectors[task.test_links[:, side]] for side in (0, 1)]
            covered = [embeddings.covered[task.test_links[:, side]] for side in (0, 1)]
            ranks = rank_links(vectors[0], vectors[1], "cosine", source_covered=covered[0], target_covered=covered[1])
            figures |= {
                "train_kept": quality.train_kept,
                "test_kept": quality.test_kept,
                "mean_size": round(statistics.mean(quality.sizes), 1),
                "max_size": int(max(quality.sizes)),
                "hits@1": summarise(ranks).source_to_target["hits@1"],
                "peak_gpu_mb": cost.peak_gpu_mb,
            }
    return figures, origin_of(settings, [folder])


def main() -> None:
    """Divide every folder by every method into every number of parts with every random seed, and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--methods", default=",".join(ALL_METHODS))
    parser.add_argument("--parts", default="3,4,5,6,7,8,9,10,20,40")
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each division")
    parser.add_argument("--memory", action="store_true", help="one epoch of the first random seed on a CPU")
    parser.add_argument("--json", type=Path, default=RECORDS)
    arguments = parser.parse_args()
    if arguments.memory:
        os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that train
    done = {line["key"] for line in read_lines(arguments.json)} if arguments.json.exists() else set()
    for folder in arguments.folders:
        for method in arguments.methods.split(","):
            for parts in (int(count) for count in arguments.parts.split(",")):
                for seed in range(1 if arguments.memory else arguments.repeats):
                    key = f"{folder.name}, {method}, {parts}" + (", memory" if arguments.memory else f", {seed}")
                    if key in done:
                        continue
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        figures, origin = pool.apply(measure, (folder, method, parts, seed, arguments.memory))
                    add_line(arguments.json, key, origin, figures)
                    shown = figures.get("hits@1") or figures.get("peak_memory_mb")
                    print(f"{key:<32} {shown:.4g}", flush=True)


if __name__ == "__main__":
    main()
