"""How fast neighbours become pairs: seconds and memory of the stage `match` against the size, one line each.

    matching.py [--entities 10000,100000,1000000] [--k 12] [--degree 5] [--hubs 10]

The two graphs are one, written down twice: random edges with a few hubs, each of which a tenth of all entities lead to.
A tenth of the entities are seeds, a twentieth valid links. The others find their counterpart and k - 1 random entities,
the counterpart not always first. Every case runs in a process of its own, with compiled code loaded beforehand; memory
is what `match` takes beyond what was there. `--json FILE` keeps the figures.
"""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray, Neighbors
from largegnn.machine.metering import Meter
from largegnn.paper.record_lines import write_rows
from largegnn.settings import Settings

Figures = dict[str, Any]
NUM_RELATIONS = 20
HUB_SHARE = 0.1


def make_task(num_entities: int, degree: int, num_hubs: int) -> AlignmentTask:
    """Entity i of the source is entity i of the target; each lead to `degree` random others and to some hubs."""
    rng = np.random.default_rng(0)
    heads = np.repeat(np.arange(num_entities), degree)
    tails = rng.integers(0, num_entities, len(heads))
    to_hubs = rng.random((num_entities, num_hubs)) < HUB_SHARE
    leading, hubs = np.nonzero(to_hubs)
    heads, tails = np.concatenate([heads, leading]), np.concatenate([tails, hubs])
    relations = rng.integers(0, NUM_RELATIONS, len(heads))
    triples = np.unique(np.stack([heads, relations, tails], axis=1).astype(np.int32), axis=0)
    other = triples + np.array([num_entities, NUM_RELATIONS, num_entities], dtype=np.int32)
    linked = rng.permutation(num_entities).astype(np.int32)
    links = np.stack([linked, linked + num_entities], axis=1)
    seeds, valid = num_entities // 10, num_entities // 20
    return AlignmentTask(
        *(num_entities, num_entities, NUM_RELATIONS, NUM_RELATIONS),
        np.concatenate([triples, other]),
        *(links[:seeds], links[seeds : seeds + valid], links[:0]),
    )


def make_neighbors(task: AlignmentTask, k: int) -> tuple[Neighbors, Neighbors]:
    """For each entity that is no seed its counterpart and k - 1 others, with cosines that favour it a little."""
    rng = np.random.default_rng(1)
    number = task.num_source_entities
    free = np.setdiff1d(np.arange(number), task.train_links[:, 0])

    def find(own: int, other: int) -> Neighbors:
        ids: IntArray = free[rng.integers(0, len(free), (len(free), k))]
        ids[:, 0] = free
        scores = (0.2 + 0.5 * rng.random(ids.shape)).astype(np.float32)
        scores[:, 0] += 0.2
        order = np.argsort(-scores, axis=1)
        ids, scores = (np.take_along_axis(values, order, axis=1) for values in (ids, scores))
        return Neighbors(free + own, ids + other, scores)

    return find(0, number), find(number, 0)


def measure(num_entities: int, k: int, degree: int, num_hubs: int) -> Figures:
    """One match, as plain figures."""

    def run(task: AlignmentTask, neighbors: tuple[Neighbors, Neighbors]) -> Figures:
        vectors = np.zeros((task.num_entities, 1), dtype=np.float32)
        embeddings = EntityEmbeddings(vectors, np.ones(len(vectors), dtype=bool))
        before = Meter().read().peak_memory_mb
        meter = Meter()
        alignment, _ = api.match(task, embeddings, neighbors, Settings(device="cpu"))
        usage = meter.read()
        accepted = alignment.pairs[alignment.accepted]
        right = int((accepted[:, 0] + task.num_source_entities == accepted[:, 1]).sum())
        return {
            "seconds": usage.seconds,
            "memory_mb": usage.peak_memory_mb - before,
            "accepted": len(accepted),
            "precision": right / max(len(accepted), 1),
        }

    small = make_task(2_000, degree, num_hubs)
    run(small, make_neighbors(small, k))
    task = make_task(num_entities, degree, num_hubs)
    neighbors = make_neighbors(task, k)
    found = sum(int((side.ids >= 0).sum()) for side in neighbors)
    return {"entities": num_entities, "triples": len(task.triples), "found": found, **run(task, neighbors)}


def main() -> None:
    """Measure the sizes asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", default="10000,100000,1000000", help="of either side")
    parser.add_argument("--k", type=int, default=12)
    parser.add_argument("--degree", type=int, default=5)
    parser.add_argument("--hubs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print("  entities     triples  pairs found   seconds   memory MB   accepted  precision")
    rows = []
    for entities in map(int, arguments.entities.split(",")):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (entities, arguments.k, arguments.degree, arguments.hubs))
        rows.append(row)
        print(
            f"{row['entities']:>10,} {row['triples']:>11,} {row['found']:>12,} {row['seconds']:>9.2f} "
            f"{row['memory_mb']:>11,.0f} {row['accepted']:>10,} {row['precision']:>10.3f}",
            flush=True,
        )
    if arguments.json:
        write_rows(arguments.json, rows)


if __name__ == "__main__":
    main()
