"""What depends on the number of subgraphs: `subgraphs.py FOLDER ... [--parts 3,5,10] [--repeats 3] [--train [EPOCHS]]`.

Seeds = train + valid, as in the paper; methods CSG (METIS and landmarks, cap a quarter over an even share), CPS, SBP.
The records go into `docs/results/subgraphs.json`, from which `figures.py` draws; divisions that are there already are
not repeated. With `--train` the first random seed of each is trained too, in the plain setting of the 15K tables, in
a process of its own: H@1 of the test links, peak memory of the process and of a GPU. Fewer EPOCHS than 30 give the
memory alone, which one epoch shows. What is there already is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import statistics
import tempfile
from pathlib import Path
from typing import Any

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.division import warm_up
from largegnn.evaluation.measures import summarise
from largegnn.evaluation.metrics import rank_links
from largegnn.paper.origin import machine_name, origin_of
from largegnn.paper.subgraph_records import SubgraphRecord, read_subgraphs
from largegnn.runs.on_task import run_task
from largegnn.settings import METHODS, PRESETS, Settings, resolve

FILE = Path(__file__).parents[1] / "docs" / "results" / "subgraphs.json"
SWEEP = ("csg", "cps", "sbp")
EPOCHS = 30
PLAIN: dict[str, Any] = {"dim": 128, "negatives": 0, "repartition_every": 0}


def settings_of(task: AlignmentTask, method: str, parts: int, seed: int, epochs: int = EPOCHS) -> Settings:
    """A division, and the plain training over it."""
    values = {**METHODS[method], "seed": seed, "protocol": {"seeds_from": "train+valid"}}
    values["division"] = {**METHODS[method]["division"], "parts": parts}
    if method == "csg":
        values["landmarks"] = {"enabled": True, "cap": math.ceil(1.25 * task.num_entities / parts)}
    values |= {"train": PLAIN | {"epochs": epochs}, "integrate": {"method": "average"}}
    return resolve(Settings, PRESETS, values=values)


def measure(task: AlignmentTask, dataset: str, method: str, parts: int, seed: int) -> SubgraphRecord:
    """One division."""
    division = api.divide(task, settings_of(task, method, parts, seed))
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


def train(folder: Path, method: str, parts: int, epochs: int) -> dict[str, Any]:
    """Training over the division of the first random seed: what goes into its record."""
    task = api.load(folder).task
    settings = settings_of(task, method, parts, 0, epochs)
    with tempfile.TemporaryDirectory() as run_folder:
        run = run_task(run_folder, task, settings=settings, last="integrate")
        cost, embeddings = run.cost("train"), run.artifact("embeddings", EntityEmbeddings)
        vectors = [embeddings.vectors[task.test_links[:, side]] for side in (0, 1)]
        covered = [embeddings.covered[task.test_links[:, side]] for side in (0, 1)]
    found: dict[str, Any] = {"peak_gpu_mb": cost.peak_gpu_mb, "machine": machine_name(settings.device)}
    found["origin"] = origin_of(settings, [folder])
    # With a GPU most of the memory of the process is that of its libraries.
    found["peak_memory_mb"] = cost.peak_memory_mb if cost.peak_gpu_mb is None else None
    if epochs >= EPOCHS:
        ranks = rank_links(vectors[0], vectors[1], "cosine", source_covered=covered[0], target_covered=covered[1])
        found["hits_1"] = summarise(ranks).source_to_target["hits@1"]
    return {name: value for name, value in found.items() if value is not None}


def is_trained(record: SubgraphRecord, epochs: int) -> bool:
    """Whether a record has what training with so many epochs would give."""
    if epochs >= EPOCHS:
        return record.hits_1 is not None
    return record.peak_memory_mb is not None


def write(records: list[SubgraphRecord], file: Path) -> None:
    """One record a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(record.model_dump(by_alias=True)) for record in records)
    file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Divide every folder by every method into every number of parts with every random seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--parts", default="3,4,5,6,7,8,9,10,20,40")
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each division")
    parser.add_argument("--train", type=int, nargs="?", const=EPOCHS, default=0, metavar="EPOCHS")
    parser.add_argument("--json", type=Path, default=FILE)
    arguments = parser.parse_args()
    warm_up()
    records = read_subgraphs(arguments.json) if arguments.json.exists() else []
    done = {(record.dataset, record.method, record.parts, record.random_seed) for record in records}
    for folder in arguments.folders:
        task = api.load(folder).task
        for method in SWEEP:
            for parts in (int(count) for count in arguments.parts.split(",")):
                for seed in range(arguments.repeats):
                    if (folder.name, method, parts, seed) not in done:
                        records.append(measure(task, folder.name, method, parts, seed))
                        write(records, arguments.json)
                first = next(
                    number
                    for number, record in enumerate(records)
                    if (record.dataset, record.method, record.parts, record.random_seed)
                    == (folder.name, method, parts, 0)
                )
                if arguments.train and not is_trained(records[first], arguments.train):
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        found = pool.apply(train, (folder, method, parts, arguments.train))
                    records[first] = records[first].model_copy(update=found)
                    write(records, arguments.json)
                kept = [
                    record.test_kept
                    for record in records
                    if (record.dataset, record.method, record.parts) == (folder.name, method, parts)
                ]
                print(f"{folder.name:<14} {method:<4} n = {parts:<3} test {statistics.mean(kept):.4f}", flush=True)


if __name__ == "__main__":
    main()
