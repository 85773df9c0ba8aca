"""What do workers of a cluster bring to `integrate` and to the rules of `match`? `cluster_pieces.py [--entities N]`.

A made-up pair of graphs with hubs, d = 64, one thread for each process, all on this machine: no network is measured,
and other programs share the processors, so seconds are compared within one call only. First this process alone, then
one worker, then two. The results of all must be equal to the bit. Prints one line of JSON for each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray
from largegnn.cluster.connecting import connection
from largegnn.cluster.nodes import ask_nodes
from largegnn.cluster.pool import RayPool
from largegnn.embedding import whole_graph
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.whole_graph import encode_graph
from largegnn.machine import pieces, worker_pool
from largegnn.machine.worker_pool import using_pool
from largegnn.matching import neighbor_rows
from largegnn.matching.support import SupportFinder
from largegnn.settings import ClusterSettings


class LimitedPool(RayPool):
    """A pool that has no more workers than the settings say."""

    @property
    def num_workers(self) -> int:
        """As many pieces are under way."""
        return self.num_visitors


def made_up_pair(num_entities: int) -> tuple[AlignmentTask, CandidateGraph, FloatArray]:
    """Two graphs with hubs, one of which has most triples of the other, and ten candidates for each source."""
    rng, side = np.random.default_rng(0), num_entities // 2
    heads, tails = rng.zipf(1.6, 7 * side) % side, rng.integers(0, side, 7 * side)
    source = np.stack([heads, rng.integers(0, 200, 7 * side), tails], axis=1)
    target = (source + np.array([side, 200, side]))[rng.random(7 * side) < 0.8]
    links = np.stack([np.arange(side), np.arange(side) + side], axis=1)
    triples, none = np.concatenate([source, target]), np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(side, side, 200, 200, np.unique(triples, axis=0), links[::5], none, none)
    others = np.stack([np.repeat(np.arange(side), 9), rng.integers(side, 2 * side, 9 * side)], axis=1)
    edges = np.unique(np.concatenate([links, others]), axis=0)
    scores = rng.normal(scale=0.1, size=len(edges)) + 0.3 * (edges[:, 0] + side == edges[:, 1])
    return task, CandidateGraph(edges[:, 0], edges[:, 1]), scores.astype(np.float32)


def measured(num_entities: int, folder: Path) -> tuple[dict[str, float], list[Any]]:
    """Seconds of each stage, and what it made."""
    task, graph, scores = made_up_pair(num_entities)
    torch.manual_seed(0)
    rows, relations = torch.randn(num_entities, 64).numpy(), torch.randn(2 * task.num_relations, 64)
    marks = [time.monotonic()]
    encoder, layers = DualAMN(64).eval(), folder / "layers"
    made = [encode_graph(encoder, rows, relations, task.triples, memory_bytes=2**32, scratch=layers).vectors]
    marks.append(time.monotonic())
    finder = SupportFinder(task, task.train_links)
    matched = finder.matched(graph, scores)
    marks.append(time.monotonic())
    made.append(finder.add_to(graph, scores, 1, matched)[1])
    marks.append(time.monotonic())
    made.append(finder.propose(matched, np.ones(num_entities, dtype=bool), 5))
    marks.append(time.monotonic())
    names = ("integrate", "rules: neighbours and plan, always here", "rules: relations and support", "rules: walks")
    return {name: round(value, 2) for name, value in zip(names, np.diff(marks).tolist(), strict=True)}, made


def measurements(num_entities: int, workers: list[int]) -> Iterator[dict[str, Any]]:
    """One process, then so many workers; each the second time, as the first starts processes and compiles loops."""
    with connection("local") as ray, tempfile.TemporaryDirectory() as folder:
        expected: list[Any] = []
        for number in (0, *workers):
            pool = LimitedPool(ray, ClusterSettings(workers=max(1, number)), ask_nodes(ray, None), "cpu")
            with using_pool(pool) if number else contextlib.nullcontext():
                measured(num_entities, Path(folder))
                seconds, made = measured(num_entities, Path(folder))
            expected = expected or made
            equal = all(np.array_equal(one, other) for one, other in zip(made, expected, strict=True))
            yield {"workers": number, "entities": num_entities, "seconds": seconds, "is_equal": equal}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=500_000)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    with (
        mock.patch.object(whole_graph, "_WORTH_SHARING", 1),
        mock.patch.object(neighbor_rows, "_WORTH_SENDING", 1),
        mock.patch.object(worker_pool, "num_processors", return_value=0),
        mock.patch.object(pieces, "num_processors", return_value=1),
    ):
        for row in measurements(options.entities, options.workers):
            print(json.dumps(row))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
