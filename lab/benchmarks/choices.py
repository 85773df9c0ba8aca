"""Compare settings by valid links only: `choices FOLDER ... [--variants 'default;dim 128'] [--json FILE]`.

Test links are removed before the runs. Seeds = train links; the entities of the valid links are ranked among themselves
(both directions, ties count as errors, structure only) by cosine, CSLS (k = 10) and transport. A variant changes one
thing in the default settings, and runs with several random seeds. A variant is worth keeping if it helps on every data
set. Only fold 1 is used: most valid links of the other folds are test links of fold 1, on which results are reported.
Finished runs are lines of the JSON file and are not repeated; several processes may share the file if each has variants
or data sets of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from lab import RESULTS
from lab.lines import add_line, read_lines
from lab.origin import origin_of
from lab.runs import plan_division, run_task
from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.embedding import dual_amn
from largegnn.errors import InputError
from largegnn.evaluation.metrics import Ranks, rank_links_by, rank_matrix, summarise
from largegnn.machine.devices import choose_device
from largegnn.matching.transport import dense_plan
from largegnn.settings import PRESETS, Settings, resolve

RECORDS = RESULTS / "choices.jsonl"
SCORINGS = ("cosine", "csls", "transport")
ROUNDS: dict[str, Any] = {"train": {"dim": 128}, "rounds": {"number": 5}, "match": {"scoring": "transport"}}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "dim 32": {"train": {"dim": 32}},
    "dim 128": {"train": {"dim": 128}},
    "dim 128, all negatives": {"train": {"dim": 128, "negatives": 0}},
    "depth 1": {"depth": 1},
    "depth 3": {"depth": 3},
    "500 negatives": {"train": {"negatives": 500}},
    "8,000 negatives": {"train": {"negatives": 8_000}},
    "all negatives": {"train": {"negatives": 0}},
    "40 epochs": {"train": {"epochs": 40}},
    "batches of 1,024": {"train": {"batch_size": 1_024}},
    "batches of 256": {"train": {"batch_size": 256}},
    "no CNS": {"train": {"losses": {"cross_subgraph": 0.0}}},
    "CNS 0.3": {"train": {"losses": {"cross_subgraph": 0.3}}},
    "CNS 1.0": {"train": {"losses": {"cross_subgraph": 1.0}}},
    "CNS with margin 1": {"train": {"cross_gamma": 1.0}},
    "no ER": {"train": {"losses": {"reconstruction": 0.0}}},
    "ER 5": {"train": {"losses": {"reconstruction": 5.0}}},
    "ER 40": {"train": {"losses": {"reconstruction": 40.0}}},
    "scale 20": {"train": {"scale": 20.0}},
    "margin 0.5": {"train": {"gamma": 0.5}},
    "learning rate 0.01": {"train": {"learning_rate": 0.01}},
    "dropout 0.2": {"train": {"dropout": 0.2}},
    "dropout 0.4": {"train": {"dropout": 0.4}},
    "no repartitioning": {"train": {"repartition_every": 0}},
    "repartitioning every epoch": {"train": {"repartition_every": 1}},
    "repartitioning every 4 epochs": {"train": {"repartition_every": 4}},
    "no landmarks": {"landmarks": {"enabled": False}},
    "landmark room 0.1": {"room": 1.1},
    "landmark room 0.5": {"room": 1.5},
    "landmark room 1": {"room": 2.0},
    "half as many parts": {"parts": 0.5},
    "twice as many parts": {"parts": 2.0},
    "dim 128, 8,000 negatives": {"train": {"dim": 128, "negatives": 8_000}},
    "dim 128, 8,000 negatives, batches of 1,024": {"train": {"dim": 128, "negatives": 8_000, "batch_size": 1_024}},
    "4,000 negatives": {"train": {"negatives": 4_000}},
    "GCN": {"train": {"encoder": "gcn"}},
    "undivided": {"division": {"parts": 1}, "landmarks": {"enabled": False}, "train": {"repartition_every": 0}},
    "average": {"integrate": {"method": "average"}},
    "plain average": {"integrate": {"method": "plain_average"}},
    "rounds": ROUNDS,
    "rounds of 20 epochs": ROUNDS | {"rounds": {"number": 5, "epochs": 20}},
    "rounds of 5 epochs": ROUNDS | {"rounds": {"number": 8, "epochs": 5}},
    "rounds from 0.3": ROUNDS | {"rounds": {"number": 5, "min_confidence": 0.3}},
    "rounds from 0.7": ROUNDS | {"rounds": {"number": 5, "min_confidence": 0.7}},
    "rounds by CSLS": ROUNDS | {"match": {}},
    "8 rounds by CSLS": ROUNDS | {"match": {}, "rounds": {"number": 8}},
    "rounds by CSLS from 0.3": ROUNDS | {"match": {}, "rounds": {"number": 5, "min_confidence": 0.3}},
    "rounds, all negatives": ROUNDS | {"train": {"dim": 128, "negatives": 0}},
}


def with_layers(variant: dict[str, Any]) -> AbstractContextManager[object]:
    """Patch the number of layers, which is not a setting."""
    return mock.patch.object(dual_amn, "_NUM_LAYERS", variant.get("depth", dual_amn._NUM_LAYERS))


def without_test_links(task: AlignmentTask) -> AlignmentTask:
    """Return the task with its valid links as test links and without valid links."""
    return dataclasses.replace(task, test_links=task.valid_links, valid_links=task.valid_links[:0])


def settings_of(task: AlignmentTask, variant: dict[str, Any], seed: int, device: str) -> Settings:
    """Return the settings of a variant, without its changes that are not settings."""
    values: dict[str, Any] = {name: section for name, section in variant.items() if isinstance(section, dict)}
    if "room" in variant or "parts" in variant:
        size = task.num_entities
        plan = plan_division(size, len(task.triples), None, None)
        parts = max(2, round(variant.get("parts", 1.0) * plan.num_parts))
        values |= {
            "division": {"parts": parts},
            "landmarks": {"cap": int(variant.get("room", plan.cap * plan.num_parts / size) * -(-size // parts))},
        }
    return resolve(Settings, PRESETS, values={"seed": seed, "device": device} | values)


def measure(task: AlignmentTask, variant: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """Make one run; return H@1 of the held-out links, and the seconds."""
    settings = settings_of(task, variant, seed, device)
    last = "rounds" if settings.rounds.number else "integrate"
    with with_layers(variant), tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, task, settings=settings, last=last)
        seconds = sum(run.costs()[name].seconds for name in run.finished)
        return hits_of(task, run.embeddings, device) | {"seconds": round(seconds, 1)}


def hits_of(task: AlignmentTask, embeddings: EntityEmbeddings, device: str) -> dict[str, Any]:
    """Compute H@1 of the held-out links by each scoring, mean of both directions."""
    links = task.test_links
    torch_device = choose_device(device)
    vectors = embeddings.vectors[links[:, 0]], embeddings.vectors[links[:, 1]]
    covered = embeddings.covered[links[:, 0]], embeddings.covered[links[:, 1]]
    plain = rank_links_by(*vectors, source_covered=covered[0], target_covered=covered[1], device=torch_device)
    ranks: dict[str, Ranks] = {"cosine": plain["cosine"], "csls": plain["csls"]}
    nothing = np.empty(0, dtype=np.int64)
    plan_of_all = dense_plan(*vectors, (nothing, nothing), nothing.astype(np.float32), 0.02, 30, torch_device)
    rows = np.arange(len(links))
    ranks["transport"] = rank_matrix(plan_of_all, rows, rows, 1e-4)
    return {name: summarise(ranks[name]).mean["hits@1"] for name in SCORINGS}


def report(rows: list[dict[str, Any]]) -> None:
    """Print the mean of each variant and its difference from the default with the same random seeds."""
    for folder in dict.fromkeys(row["set"] for row in rows):
        base = {row["seed"]: row for row in rows if (row["set"], row["variant"]) == (folder, "default")}
        for variant in dict.fromkeys(row["variant"] for row in rows if row["set"] == folder):
            runs = [row for row in rows if (row["set"], row["variant"]) == (folder, variant)]
            shown = []
            for name in SCORINGS:
                gains = [row[name] - base[row["seed"]][name] for row in runs if row["seed"] in base]
                spread = statistics.stdev(gains) if len(gains) > 1 else 0.0
                gain = f" ({statistics.mean(gains):+.4f} ± {spread:.4f})" if gains else ""
                shown.append(f"{name} {statistics.mean(row[name] for row in runs):.4f}{gain}")
            print(f"{folder:<14} {variant:<32} {'  '.join(shown)}  {len(runs)} runs", flush=True)


def main() -> None:
    """Make the missing runs, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--variants", default=";".join(VARIANTS))
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each variant")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.json and arguments.json.exists():
        rows = read_lines(arguments.json)
    done = {(row["set"], row["variant"], row["seed"]) for row in rows}
    for folder in arguments.folders:
        task = without_test_links(api.load(folder).task)
        for seed in range(arguments.repeats):
            for name in arguments.variants.split(";"):
                if name not in VARIANTS:
                    raise InputError(f"no variant is called {name!r}", expected=", ".join(VARIANTS))
                if (folder.name, name, seed) in done:
                    continue
                row = {"set": folder.name, "variant": name, "seed": seed}
                rows.append(row | measure(task, VARIANTS[name], seed, arguments.device))
                print(json.dumps(rows[-1]), flush=True)
                if arguments.json:
                    settings = settings_of(task, VARIANTS[name], seed, arguments.device)
                    origin = origin_of(settings, [folder], protocol={"judged by": "valid links", "variant": name})
                    add_line(arguments.json, f"{folder.name}, {name}, {seed}", origin, rows[-1])
                if torch.cuda.is_available():
                    torch.cuda.empty_cache()
    report(rows)


if __name__ == "__main__":
    main()
