"""How many neighbours for CSLS, how sharp a transport? By valid links: `scorings.py FOLDER ... [--repeats 3] [--page]`.

The defaults (k = 10; temperature .02, 30 iterations) were first chosen on test links of EN_FR_15K_V1. Here the default
training is run with train links as seeds, structure alone, and each valid link is ranked among all entities that are no
seeds, in both directions, ties against us; which test links there are is not looked at. H@1 is the mean of both
directions. Every scoring sees the same vectors; all scores of a set are in memory at once, so it is for sets of 15K.
Finished runs are lines of `docs/results/scorings.jsonl` and are not repeated. `--page` writes the table of
docs/measurements/alignment.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray
from largegnn.evaluation.metrics import rank_matrix
from largegnn.matching.transport import cosine_matrix, transport_dense
from largegnn.paper.origin import origin_of
from largegnn.paper.pages import mean_text, put_table
from largegnn.paper.record_lines import add_line, read_lines
from largegnn.runs.on_task import run_task
from largegnn.settings import PRESETS, Settings, resolve

DOCS = Path(__file__).parents[1] / "docs"
RECORDS = DOCS / "results" / "scorings.jsonl"
NEIGHBORS = (5, 10, 20)
TRANSPORTS = ((0.01, 30), (0.02, 10), (0.02, 30), (0.02, 100), (0.03, 30), (0.05, 30), (0.1, 30))
SAME = 1e-4  # of logarithms: equal scores of a transport


def contest(task: AlignmentTask) -> tuple[IntArray, IntArray]:
    """The source and target entities that are no seeds."""
    is_seed = np.zeros(task.num_entities, dtype=bool)
    is_seed[task.train_links.ravel()] = True
    free = np.flatnonzero(~is_seed)
    return free[free < task.num_source_entities], free[free >= task.num_source_entities]


def scored(cosines: torch.Tensor) -> Iterator[tuple[str, torch.Tensor, float]]:
    """Every scoring of a matrix of cosines (q, c): its name, the scores, and how near equal ones are."""
    yield "cosine", cosines, 1e-6
    for k in NEIGHBORS:
        own, other = (cosines.topk(k, dim=side).values.mean(dim=side, keepdim=True) for side in (1, 0))
        yield f"CSLS, k = {k}", 2 * cosines - own - other, 1e-6
    for temperature, iterations in TRANSPORTS:
        name = f"transport, temperature {temperature}, {iterations} iterations"
        yield name, transport_dense(cosines.clone(), temperature, iterations), SAME


def measure(task: AlignmentTask, settings: Settings) -> dict[str, float]:
    """One run: H@1 of the valid links by every scoring."""
    sides = contest(task)
    # Training chooses its epoch by no links here: those that judge are not shown to it.
    blind = dataclasses.replace(task, valid_links=task.valid_links[:0], test_links=task.test_links[:0])
    with tempfile.TemporaryDirectory() as folder:
        run = run_task(folder, blind, settings=settings, last="integrate")
        vectors = run.artifact("embeddings", EntityEmbeddings).vectors
        cosines = cosine_matrix(vectors[sides[0]], vectors[sides[1]], torch.device("cpu"))
    rows, columns = (np.searchsorted(side, task.valid_links[:, number]) for number, side in enumerate(sides))
    return {name: rank_matrix(scores, rows, columns, same).both_ways_hits() for name, scores, same in scored(cosines)}


def table(rows: list[dict[str, Any]]) -> str:
    """A row for each scoring, a column for each set."""
    folders = sorted({row["set"] for row in rows})
    lines = [f"| scoring | {' | '.join(folders)} |", "|---" * (len(folders) + 1) + "|"]
    for name in rows[0]["hits@1"]:
        found = [[row["hits@1"][name] for row in rows if row["set"] == folder] for folder in folders]
        lines.append(f"| {name} | {' | '.join(mean_text(values) for values in found)} |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing, print what there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=3, help="random seeds of each set")
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true")
    arguments = parser.parse_args()
    rows = read_lines(arguments.json) if arguments.json.exists() else []
    if arguments.page:
        put_table(DOCS / "measurements" / "alignment.md", "scorings by valid links", table(rows))
        return
    for folder in arguments.folders:
        task = api.load(folder).task
        for seed in range(arguments.repeats):
            key = f"{folder.name}, {seed}"
            if key not in {row["key"] for row in rows}:
                values = {"seed": seed, "device": "cpu", "channels": ["structure"]}
                settings = resolve(Settings, PRESETS, values=values)
                found = {"set": folder.name, "hits@1": measure(task, settings)}
                origin = origin_of(
                    settings, [folder], protocol={"judged by": "valid links among all that are no seeds"}
                )
                rows.append(add_line(arguments.json, key, origin, found))
    print(table(rows))


if __name__ == "__main__":
    main()
