"""What do several machines bring, cost and survive? `cluster.py accuracy|throughput|overhead|kills|memory`.

All nodes are on this machine (`ray.cluster_utils`), one processor each or `--processors`: no network is measured. Other
programs share the processors, so times are compared within one call only. FOLDER is a data set as `align` takes it.

- `accuracy`: H@1 of valid and test links, one process against 2 and 4 nodes, some random seeds
- `throughput`: visits and searched rows a second with one worker and with two or `--workers`, all of one thread, and
  CPU seconds of a visit
- `overhead`: a run up to `integrate` with `--cluster local` against none
- `memory`: peak memory of workers and shards of a table of `--entities`, on 1, 2 and 4 nodes; needs no FOLDER
- `kills`: a run on three nodes in which workers, shards and nodes are killed at random moments, and one worker at
  each kind of piece of `integrate`, `search` and `match`

Every record carries its origin and is one line of docs/results/cluster.jsonl.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import random
import signal
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from largegnn import api
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, SubgraphSet, to_plain
from largegnn.cluster.connecting import import_ray
from largegnn.cluster.nodes import ask_nodes
from largegnn.cluster.pool import RayPool
from largegnn.cluster.visits import RayVisits
from largegnn.embedding import whole_graph
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.visits import PlannedVisit
from largegnn.evaluation.metrics import rank_links
from largegnn.machine import pieces, worker_pool
from largegnn.machine.progress import progress
from largegnn.machine.worker_pool import using_pool
from largegnn.matching import candidates, exact_search, neighbor_rows
from largegnn.matching.search import search_both
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line, command
from largegnn.runs.on_task import run_task
from largegnn.settings import ClusterSettings, Settings
from largegnn.stages.train import TrainOutcome

Row = tuple[dict[str, Any], Settings]  # figures, and the settings they were made with
ROOT = Path(__file__).parents[1]
RECORDS = ROOT / "docs" / "results" / "cluster.jsonl"
# What tells the records of one kind and set apart, in their keys.
TELLING = ("nodes", "workers", "address", "entities", "parts", "epochs", "seed", "kills")
STORE_BYTES = 200 * 2**20
MOST_RANKED = 70_000  # links: exact ranks of more take two cores longer than training


class LocalNodes:
    """Nodes on this machine, of one processor each unless said otherwise, which can be killed."""

    def __init__(self, num_nodes: int, processors: int = 1) -> None:
        from ray.cluster_utils import Cluster

        self.ray = import_ray()
        head = {"include_dashboard": False, "object_store_memory": STORE_BYTES * processors, "num_cpus": processors}
        self._processors = processors
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._others = [self._add() for _ in range(num_nodes - 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.ray.init(address=self._cluster.address, log_to_driver=False, logging_level=logging.ERROR)

    def _add(self) -> Any:
        store = STORE_BYTES * self._processors
        return self._cluster.add_node(num_cpus=self._processors, object_store_memory=store)

    def kill_process(self, title: str, chosen: random.Random) -> bool:
        """End a process of ours by what Ray calls it, with SIGKILL."""
        found = [pid for pid, words in descendants(os.getpid()) if words.startswith(f"ray::{title}")]
        if found:
            os.kill(chosen.choice(found), signal.SIGKILL)
        return bool(found)

    def kill_piece(self, kinds: set[str]) -> bool:
        """End a worker that makes a piece of a kind that is not among these yet."""
        for pid, words in descendants(os.getpid()):
            kind = words.removeprefix("ray::").split("(")[0].strip()
            if words.startswith("ray::") and kind.endswith("_piece") and kind not in kinds:
                kinds.add(kind)
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def replace_node(self, chosen: random.Random) -> bool:
        """Take a node away at once and start another."""
        gone = chosen.choice(self._others)
        self._others.remove(gone)
        self._cluster.remove_node(gone, allow_graceful=False)
        self._others.append(self._add())
        return True

    def close(self) -> None:
        """End all nodes."""
        self.ray.shutdown()
        self._cluster.shutdown()  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def local_nodes(num_nodes: int, processors: int = 1) -> Iterator[LocalNodes]:
    """Nodes for as long as a measurement takes."""
    nodes = LocalNodes(num_nodes, processors)
    try:
        yield nodes
    finally:
        nodes.close()


def descendants(process: int) -> list[tuple[int, str]]:
    """Ids and command lines of all processes that this one started, directly or not."""
    parents, words = {}, {}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(folder.name)
            parents[pid] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words[pid] = (folder / "cmdline").read_text().replace("\0", " ").strip()
    below, found = {process}, set[int]()
    while below:
        found |= below
        below = {pid for pid, parent in parents.items() if parent in below} - found
    return [(pid, words[pid]) for pid in found - {process}]


def settings_of(parts: int, seed: int, workers: int | None) -> Settings:
    """The defaults with a number of parts, on a cluster with so many workers or on none."""
    cluster = {"address": "none"} if workers is None else {"address": "auto", "workers": workers}
    values = {"seed": seed, "device": "cpu", "channels": ("structure",), "division": {"parts": parts}}
    return Settings.of({**values, "cluster": cluster})


def hits(task: AlignmentTask, found: EntityEmbeddings) -> dict[str, float]:
    """H@1 by CSLS of valid and test links, each among themselves, mean of both directions; not of too many."""
    pairs = {"valid": task.valid_links, "test": task.test_links}
    pairs = {name: links for name, links in pairs.items() if len(links) <= MOST_RANKED}
    vectors = found.vectors
    return {
        name: rank_links(vectors[links[:, 0]], vectors[links[:, 1]], "csls").both_ways_hits()
        for name, links in pairs.items()
    }


def trained(task: AlignmentTask, settings: Settings, last: str = "integrate") -> dict[str, Any]:
    """Divide, train and integrate, and what comes up to `last`; figures, seconds, and what was taken of the cluster."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        run = run_task(Path(folder), task, None, settings, last=last)
        seconds = round(time.monotonic() - started, 1)
        outcome = run.outcome("train", TrainOutcome)
        return {
            "hits": hits(task, run.artifact("embeddings", EntityEmbeddings)),
            "seconds": seconds,
            "train_seconds": run.cost("train").seconds,
            # The first epoch waits for workers to start, and some are validated.
            "epoch_seconds": statistics.median(
                [epoch.seconds for epoch in outcome.history[1:] if epoch.valid_hits is None] or [0.0]
            ),
            "cluster": to_plain(outcome.cluster),
        }


def accuracy(task: AlignmentTask, options: argparse.Namespace) -> Iterator[Row]:
    """One process and clusters, the same seeds."""
    for num_nodes in options.nodes:
        with contextlib.nullcontext() if num_nodes == 1 else local_nodes(num_nodes):
            for seed in options.seeds:
                settings = settings_of(options.parts, seed, None if num_nodes == 1 else num_nodes)
                yield {"nodes": num_nodes, "parts": options.parts, "seed": seed, **trained(task, settings)}, settings


def throughput(task: AlignmentTask, options: argparse.Namespace) -> Iterator[Row]:
    """One worker of one thread against several, on the same nodes, which have a processor for each."""
    vectors = np.random.default_rng(0).normal(size=(2, options.rows, 384)).astype(np.float32)
    with local_nodes(-(-max(options.workers) // options.processors), options.processors) as nodes:
        for workers in options.workers:
            base = settings_of(options.parts, 0, workers)
            train = {"epochs": options.epochs, "repartition_every": 0}
            settings = Settings.of(base.model_dump() | {"train": train})
            found = trained(task, settings)
            pool = RayPool(nodes.ray, ClusterSettings(workers=workers), ask_nodes(nodes.ray, None), "cpu")
            figures = {"workers": workers, "parts": options.parts, "epochs": options.epochs, **found}
            yield figures | searched(pool, vectors, workers), settings


class LimitedPool(RayPool):
    """A pool that has no more pieces under way than it has workers."""

    @property
    def num_workers(self) -> int:
        """As many as the settings say."""
        return self.num_visitors


def searched(pool: RayPool, vectors: Any, workers: int) -> dict[str, Any]:
    """Seconds of an exact search in pieces; a short one before it starts the processes."""
    limited = LimitedPool(pool.ray, ClusterSettings(workers=workers), pool.nodes, "cpu")
    with using_pool(limited):
        search_both(vectors[0, :2_000], vectors[1, :2_000], 10, "torch")
        started = time.monotonic()
        search_both(vectors[0], vectors[1], 10, "torch")
        return {"search_rows": vectors.shape[1], "search_seconds": round(time.monotonic() - started, 2)}


def overhead(task: AlignmentTask, options: argparse.Namespace) -> Iterator[Row]:
    """The same training without a cluster, and with one that is started for it."""
    for address in ("none", "local"):
        cluster = {"cluster": {"address": address}, "train": {"epochs": options.epochs}}
        settings = Settings.of(settings_of(options.parts, 0, None).model_dump() | cluster)
        found = trained(task, settings)
        yield {"address": address, "parts": options.parts, "epochs": options.epochs, **found}, settings


def kills(task: AlignmentTask, options: argparse.Namespace) -> Iterator[Row]:
    """A run on three nodes, with a kill every few seconds until there were enough; pieces are killed as they come."""
    chosen, done = random.Random(options.seeds[0]), dict.fromkeys(("worker", "shard", "node"), 0)
    kinds, settings = set[str](), settings_of(options.parts, options.seeds[0], 3)
    settings = settings.model_copy(update={"channels": ("structure", "rules")})
    # The run is in the other thread: Ray starts nodes in the main one only.
    with local_nodes(3) as nodes, ThreadPoolExecutor(1) as pool, everything_in_pieces():
        ways: dict[str, Callable[[], bool]] = {
            "worker": lambda: nodes.kill_process("VisitWorker", chosen),
            "shard": lambda: nodes.kill_process("TableShard", chosen),
            "node": lambda: nodes.replace_node(chosen),
        }
        running = pool.submit(trained, task, settings, "match")
        due = time.monotonic() + options.every
        while not running.done():
            wait([running], timeout=0.1)
            if time.monotonic() > due and sum(done.values()) < options.kills:
                due = time.monotonic() + chosen.uniform(0.5, 1.5) * options.every
                kind = chosen.choices(list(ways), weights=(6, 3, 1))[0]
                done[kind] += not running.done() and ways[kind]()
            nodes.kill_piece(kinds)
        found = running.result()
    how = {"nodes": 3, "parts": options.parts, "seed": options.seeds[0]}
    yield {**how, "kills": done, "pieces_killed": sorted(kinds), **found}, settings


@contextlib.contextmanager
def everything_in_pieces() -> Iterator[None]:
    """As if every graph were large enough to be shared out."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(whole_graph, "_WORTH_SHARING", 1))
        for module in (neighbor_rows, candidates, exact_search):
            stack.enter_context(mock.patch.object(module, "_WORTH_SENDING", 1))
        for module in (worker_pool, pieces):
            stack.enter_context(mock.patch.object(module, "num_processors", return_value=1))
        yield


def made_up(num_entities: int, num_parts: int) -> SubgraphSet:
    """Subgraphs of neighbouring entities, a fifth of them shared with the next, with few triples and seeds."""
    rng, size = np.random.default_rng(0), num_entities * 5 // (4 * num_parts)
    starts = np.linspace(0, num_entities - size, num_parts).astype(np.int64)
    entities = (starts[:, None] + np.arange(size)).ravel()
    heads = rng.integers(0, size, 4 * size * num_parts)
    triples = np.stack([heads, rng.integers(0, 100, len(heads)), rng.integers(0, size, len(heads))], axis=1)
    seeds, counts = rng.integers(0, size, (200 * num_parts, 2)), np.arange(num_parts + 1)
    return SubgraphSet(entities, counts * size, triples, 4 * counts * size, seeds, 200 * counts)


def memory(_: AlignmentTask | None, options: argparse.Namespace) -> Iterator[Row]:
    """Some visits to a made-up table, and what each process took for it."""
    settings, subgraphs = settings_of(40, 0, 1), made_up(options.entities, 40)
    train = TrainOptions(**settings.train.model_dump(exclude={"members"}))
    model = EmbeddingModel(options.entities, 100, train, torch.device("cpu"), 0)
    planned = [PlannedVisit(index, (0.005,), index) for index in range(16)]
    for num_nodes in options.nodes:
        with local_nodes(num_nodes) as nodes, progress("memory") as work:
            pool = RayPool(nodes.ray, ClusterSettings(workers=num_nodes), ask_nodes(nodes.ray, None), "cpu")
            with RayVisits(pool, train, 100) as visits:
                visits.visit_all(model, 0, subgraphs, planned, work)
                ours = [pid for pid, words in descendants(os.getpid()) if words.startswith("ray::TableShard")]
                figures = {
                    "nodes": num_nodes,
                    "entities": options.entities,
                    "dim": train.dim,
                    "shard_peak_mb": round(max(map(peak_mb, ours))),
                    "cluster": to_plain(visits.tally.use()),
                }
                yield figures, settings


def peak_mb(process: int) -> float:
    """Most resident memory a process had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


WAYS: dict[str, Callable[[Any, argparse.Namespace], Iterator[Row]]] = {
    "memory": memory,
    "accuracy": accuracy,
    "throughput": throughput,
    "overhead": overhead,
    "kills": kills,
}


def main() -> None:
    """Measure and keep the records; `cluster_page.py` makes the page of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=WAYS)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--parts", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--processors", type=int, default=1, help="of each node, for `throughput`")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=10.0, help="seconds between kills, about")
    parser.add_argument("--json", type=Path, default=RECORDS)
    options = parser.parse_args()
    if options.folder is None and options.what != "memory":
        parser.error("a data set is needed")
    task = None if options.folder is None else api.load(options.folder).task
    name = "made up" if options.folder is None else options.folder.name
    data = [] if options.folder is None else [options.folder]
    for row, settings in WAYS[options.what](task, options):
        how = [f"{field} {row[field]}" for field in TELLING if field in row]
        record = {"what": options.what, "set": name, **row}
        origin = origin_of(settings, data, protocol={"command": command()})
        add_line(options.json, ", ".join([options.what, name, *how]), origin, record)
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
