"""How many subgraphs may be visited at the same time? `staleness.py FOLDER --parts 32 --at-once 1 4 16 --epochs 25`.

Visits that overlap in time are played in one process, first in, first out, so many under way at a time: no clock
decides anything, and no cluster is needed. Trained as `align` does on a cluster, with one division. What is said: H@1
of the valid links by cosine after each epoch that is validated. Links of the test set are not looked at. One line of
docs/results/staleness.jsonl for each training; `cluster_page.py` makes the table of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from largegnn import api
from largegnn.artifacts import SubgraphSet
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.shards import DenseCenter, DenseState, RowState, TableShard
from largegnn.embedding.visits import PlannedVisit, Visitor, sample_others
from largegnn.machine.progress import Work
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line
from largegnn.runs.on_task import run_task
from largegnn.settings import Settings
from largegnn.stages import train
from largegnn.stages.train import TrainOutcome

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "staleness.jsonl"


class PlayedVisits:
    """Makes the visits of an epoch as if so many workers did; there is no cluster to report on."""

    tally = mock.Mock(use=lambda: None)

    def __init__(self, at_once: int, options: TrainOptions, num_relations: int) -> None:
        self._at_once, self._options = at_once, options
        self._visitor = Visitor(options, num_relations, torch.device("cpu"))

    def visit_all(
        self, model: EmbeddingModel, number: int, subgraphs: SubgraphSet, planned: Sequence[PlannedVisit], work: Work
    ) -> float:
        """Make all visits; the mean loss of steps."""
        num_entities, dim = model.entities.values.shape
        everybody = torch.arange(num_entities)
        shard, center = TableShard(0, num_entities, dim), DenseCenter(DenseState(*model.dense_vectors()))
        shard.fill(0, RowState(*(each.numpy() for each in model.entities.take(everybody))))
        losses, under_way = 0.0, deque[tuple[int, PlannedVisit, RowState, int, DenseState, tuple[Any, Any]]]()
        for visit, plan in enumerate([*planned, *[None] * self._at_once]):
            if plan is not None:
                entities = np.asarray(subgraphs.subgraph(plan.index).entities, dtype=np.int64)
                others = sample_others(num_entities, self._options.cross_negatives, plan.seed)
                taken, rows = shard.take(visit, entities, others)
                under_way.append((visit, plan, taken, *center.take(), (others, rows)))
            if len(under_way) >= self._at_once or (plan is None and under_way):
                first, its_plan, taken, version, dense, drawn = under_way.popleft()
                made = self._visitor.visit(number, subgraphs, its_plan, taken, dense, drawn)
                shard.give(first, made.rows)
                center.give(version, dense, made.dense)
                losses += made.loss_sum
                work.advance()
        state = shard.read(0, num_entities)
        model.entities.put(everybody, torch.from_numpy(state.rows), torch.from_numpy(state.squares))
        model.load_dense(center.state.values, center.state.squares)
        return losses / sum(len(plan.learning_rates) for plan in planned)


def measure(folder: Path, parts: int, at_once: int, epochs: int, seed: int, records: Path) -> dict[str, Any]:
    """Train once; the valid links' H@1."""

    @contextlib.contextmanager
    def played(options: TrainOptions, num_relations: int) -> Iterator[PlayedVisits]:
        yield PlayedVisits(at_once, options, num_relations)

    values = {"seed": seed, "device": "cpu", "channels": ("structure",), "division": {"parts": parts}}
    settings = Settings.of({**values, "train": {"epochs": epochs, "repartition_every": 0}})
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as work, mock.patch.object(train, "_visit_workers", played):
        run = run_task(Path(work), api.load(folder).task, None, settings, last="train")
        history = run.outcome("train", TrainOutcome).history
    figures = {
        "set": folder.name,
        "parts": parts,
        "at_once": at_once,
        "epochs": epochs,
        "seed": seed,
        "valid_hits@1": [round(each.valid_hits, 4) for each in history if each.valid_hits is not None],
        "seconds": round(time.monotonic() - began, 1),
    }
    key = f"{folder.name}, {parts} subgraphs, {at_once} at once, {epochs} epochs, seed {seed}"
    add_line(records, key, origin_of(settings, [folder]), figures)
    return figures


def main() -> None:
    """Play some numbers of visits at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", type=int, default=32)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--json", type=Path, default=RECORDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    for seed in options.seeds:
        for at_once in options.at_once:
            found = measure(options.folder, options.parts, at_once, options.epochs, seed, options.json)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
