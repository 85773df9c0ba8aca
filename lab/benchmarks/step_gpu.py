"""Measure a training step on a GPU at a million entities: `python -m lab.benchmarks.step_gpu`.

    step_gpu.py steps [FILE.npz]             ms a step and GPU memory: plain, captured, captured with tables on the host
    step_gpu.py profile                      kernels with the most time in a captured step
    step_gpu.py whole                        seconds and GPU memory to encode the whole graph, or only valid links
    step_gpu.py accuracy FILE.npz            H@1 of the test links after training, plain and captured, several seeds

The graph is drawn at random, with subgraphs as large as those of DEBIAN_FILES_1M: 40 overlapping subgraphs, each with
100,000 entities, 391,513 triples with hubs, and 11,700 seeds. `--json FILE` adds a record for each row.
FILE.npz holds the arrays of a `SubgraphSet`, `num_entities` and `num_relations`; for the accuracy also
`all_triples` and `test_links`.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from largegnn.artifacts import AlignmentTask, FloatArray, SubgraphSet
from largegnn.embedding.integrate import WholeGraph, encode_full, valid_vectors
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.structure import build_structure
from largegnn.embedding.trainer import Trainer
from largegnn.settings import TrainSettings

Figures = dict[str, Any]
NUM_RELATIONS = 60


def drawn_subgraphs(parts: int, entities: int, nodes: int, triples: int, seeds: int) -> SubgraphSet:
    """Draw random subgraphs of `nodes` entities each; some nodes have very many neighbours."""
    rng = np.random.default_rng(0)
    members = []
    edges = []
    pairs = []
    for _ in range(parts):
        members.append(np.sort(rng.choice(entities, nodes, replace=False)))
        heads = rng.integers(0, nodes, triples)
        nearby_tails = heads + rng.integers(-50, 51, triples)
        hub_tails = (nodes * rng.random(triples) ** 4).astype(np.int64)
        tails = np.where(rng.random(triples) < 0.5, nearby_tails, hub_tails) % nodes
        relations = (NUM_RELATIONS * rng.random(triples) ** 3).astype(np.int64)
        edges.append(np.stack([heads, relations, tails], axis=1))
        pairs.append(rng.permutation(nodes)[: 2 * seeds].reshape(-1, 2))
    counts = np.arange(parts + 1)
    return SubgraphSet(
        np.concatenate(members),
        counts * nodes,
        np.concatenate(edges),
        counts * triples,
        np.concatenate(pairs),
        counts * seeds,
    )


def options_of(**changes: Any) -> TrainSettings:
    """Return training options like those of the preset for a million entities."""
    values: Figures = {
        "epochs": 3,
        "batch_size": 1_024,
        "negatives": 8_192,
        "repartition_every": 0,
        "tables": "device",
    }
    return TrainSettings(**values | changes)


def device_of() -> torch.device:
    """Return the GPU, or the CPU if there is no GPU (to try the script)."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def read_subgraphs(file: str) -> tuple[SubgraphSet, dict[str, Any]]:
    """Read subgraphs and the other arrays from a file."""
    arrays = dict(np.load(file))
    return SubgraphSet(**{field.name: arrays.pop(field.name) for field in fields(SubgraphSet)}), arrays


def measure(subgraphs: SubgraphSet, entities: int, relations: int, options: TrainSettings) -> Figures:
    """Train a few epochs; return milliseconds of a step in the first and the later epochs, and peak GPU memory."""
    device = device_of()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    model = EmbeddingModel(entities, relations, options, device, seed=0)
    history = Trainer(model, lambda _: subgraphs, relations, options, seed=0).run()
    steps = sum(-(-int(size) // options.batch_size) for size in np.diff(subgraphs.seed_ptr))
    later = [record.seconds for record in history[1:]] or [history[0].seconds]
    return {
        "step": options.step,
        "tables": options.tables,
        "precision": options.precision,
        "steps": steps,
        "first_ms": 1000 * history[0].seconds / steps,
        "ms": 1000 * statistics.median(later) / steps,
        "losses": [record.loss for record in history],
        "gpu_mb": torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else None,
    }


def compare_steps(arguments: argparse.Namespace) -> list[Figures]:
    """Compare steps: plain, captured, with tables in main memory, in reduced precision."""
    entities, relations = arguments.entities, NUM_RELATIONS
    if arguments.file:
        subgraphs, others = read_subgraphs(arguments.file)
        entities, relations = int(others["num_entities"]), int(others["num_relations"])
    else:
        subgraphs = drawn_subgraphs(*sizes_of(arguments))
    rows = []
    cases: list[Figures] = [
        {"step": "plain", "epochs": 2},
        {},
        {"tables": "host"},
        {"precision": "tf32"},
    ]
    for changes in cases:
        row = measure(subgraphs, entities, relations, shrunk(options_of(**changes), arguments))
        rows.append(row)
        print(
            f"{row['step']:<6} tables {row['tables']:<7} {row['precision']}: {row['ms']:8.2f} ms a step "
            f"(first epoch {row['first_ms']:.2f}), GPU {row['gpu_mb'] or 0:,.0f} MB, "
            f"losses {', '.join(f'{loss:.3f}' for loss in row['losses'])}",
            flush=True,
        )
    return rows


def shrunk(options: TrainSettings, arguments: argparse.Namespace) -> TrainSettings:
    """Limit the negatives to a quarter of the nodes of a subgraph, for small trials."""
    return options.model_copy(update={"negatives": min(options.negatives, arguments.nodes // 4)})


def profile_step(arguments: argparse.Namespace) -> list[Figures]:
    """Profile one epoch on two subgraphs, after an epoch that captures the step."""
    subgraphs = drawn_subgraphs(2, *sizes_of(arguments)[1:])
    options = shrunk(options_of(epochs=2), arguments)
    device = device_of()
    model = EmbeddingModel(arguments.entities, NUM_RELATIONS, options, device, seed=0)
    trainer = Trainer(model, lambda _: subgraphs, NUM_RELATIONS, options, seed=0)
    trainer._run_epoch(0)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    started = time.perf_counter()
    with profile(activities=activities) as profiler:
        trainer._run_epoch(1)
    steps = 2 * -(-arguments.seeds // options.batch_size)
    print(f"{1000 * (time.perf_counter() - started) / steps:.2f} ms a step under the profiler")
    measured = "self_device_time_total" if device.type == "cuda" else "self_cpu_time_total"
    events = [
        (event.key, getattr(event, measured) / 1000 / steps, event.count / steps) for event in profiler.key_averages()
    ]
    events.sort(key=lambda event: -event[1])
    print(f"{sum(event[1] for event in events):.2f} ms of kernels a step")
    for key, milliseconds, calls in events[:45]:
        print(f"{milliseconds:8.3f} ms {calls:7.1f} calls  {key[:110]}")
    return [{"kernel": key, "ms": milliseconds, "calls": calls} for key, milliseconds, calls in events]


def drawn_task(entities: int, triples: int) -> AlignmentTask:
    """Draw two random graphs with hubs and 20,000 valid links."""
    rng = np.random.default_rng(1)
    side, half = entities // 2, NUM_RELATIONS // 2
    is_target = rng.random(triples) < 0.5
    heads = rng.integers(0, side, triples)
    hub_tails = (side * rng.random(triples) ** 4).astype(np.int64)
    tails = np.where(rng.random(triples) < 0.5, heads + rng.integers(-50, 51, triples), hub_tails) % side
    relations = (half * rng.random(triples) ** 3).astype(np.int64)
    keys = np.unique(
        (((heads + side * is_target) << 8 | (relations + half * is_target)) << 32) | (tails + side * is_target)
    )
    columns = np.stack([keys >> 40, (keys >> 32) & 255, keys & (2**32 - 1)], axis=1)
    count = min(20_000, side)
    links = np.stack([np.sort(rng.permutation(side)[:count]), side + rng.permutation(side)[:count]], axis=1)
    return AlignmentTask(side, side, half, half, columns, links[:1], links[1:], links[:0])


def encode_whole(arguments: argparse.Namespace) -> list[Figures]:
    """Encode all vectors of a graph as large as all subgraphs together, at once and in chunks, and only valid links."""
    task = drawn_task(arguments.entities, arguments.parts * arguments.triples)
    triples, links, device = task.triples, task.valid_links, device_of()
    model = EmbeddingModel(task.num_entities, NUM_RELATIONS, options_of(), device, seed=0)
    table = model.entities.values.cpu()
    relations, memory = model.relations.detach(), 4 << 30
    by_kernels = valid_vectors(task, links, None, device, memory_bytes=memory)

    def in_chunks() -> FloatArray:
        structure = build_structure(task.num_entities, triples, NUM_RELATIONS)
        return encode_full(model.encoder, table, relations, structure, chunk_bytes=memory // 16).vectors

    def at_once() -> FloatArray:
        graph = WholeGraph(task.num_entities, triples, NUM_RELATIONS, memory)
        return graph.encode(model.encoder, table, relations)

    cases: dict[str, Callable[[], FloatArray]] = {
        "all vectors": at_once,
        "all vectors, in chunks": in_chunks,
        "valid links, first time": lambda: by_kernels(model)[0],
        "valid links": lambda: by_kernels(model)[0],
    }
    rows = []
    for case, work in cases.items():
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        vectors = work()
        seconds = time.perf_counter() - started
        peak = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0
        rows.append({"what": case, "seconds": seconds, "gpu_mb": peak})
        shown = vectors[links[:, 0]] if len(vectors) == task.num_entities else vectors
        print(f"{case:<38} {seconds:6.2f} s, GPU {peak:,.0f} MB, sum {float(np.abs(shown).sum()):.4f}", flush=True)
    return rows


def compare_accuracy(arguments: argparse.Namespace) -> list[Figures]:
    """Compare H@1 of the test links by cosine, for several random seeds."""
    from largegnn.evaluation.metrics import rank_links

    subgraphs, arrays = read_subgraphs(arguments.file)
    entities, relations = int(arrays["num_entities"]), int(arrays["num_relations"])
    structure = build_structure(entities, arrays["all_triples"], relations)
    links = arrays["test_links"]
    rows = []
    for changes in ({"step": "plain"}, {}, {"precision": "tf32"}):
        hits, seconds = [], []
        for seed in range(arguments.repeats):
            options = options_of(epochs=arguments.epochs, batch_size=512, negatives=2_000, **changes)
            model = EmbeddingModel(entities, relations, options, device_of(), seed)
            started = time.perf_counter()
            Trainer(model, lambda _: subgraphs, relations, options, seed).run()
            seconds.append(time.perf_counter() - started)
            vectors = encode_full(model.encoder, model.entities.values, model.relations.detach(), structure).vectors
            hits.append(rank_links(vectors[links[:, 0]], vectors[links[:, 1]], "cosine").hits_at_1())
        rows.append({**changes, "hits": hits, "seconds": seconds})
        print(
            f"{changes}: H@1 {[round(hit, 4) for hit in hits]}, {[round(value, 1) for value in seconds]} s", flush=True
        )
    return rows


def keep(file: Path, question: str, rows: list[Figures], subgraphs: str) -> None:
    """Add a record for each row."""
    from lab.lines import add_line
    from lab.origin import origin_of
    from largegnn.settings import Settings

    origin = origin_of(Settings(), [], channels=[], protocol={"command": f"step_gpu.py {question}"})
    for row in rows:
        add_line(file, f"{subgraphs}, {name_of(row)}", origin, row)


def name_of(row: Figures) -> str:
    """Return the name of the measured case of a row."""
    for key in ("what", "kernel"):
        if key in row:
            return str(row[key])
    precision = "" if row.get("precision", "float32") == "float32" else f", {row['precision']}"
    tables = ", tables in main memory" if row.get("tables") == "host" else ""
    return ("plain" if row.get("step") == "plain" else "captured") + tables + precision


def sizes_of(arguments: argparse.Namespace) -> tuple[int, int, int, int, int]:
    """Return the numbers of parts and entities, and of nodes, triples and seeds of a part."""
    return arguments.parts, arguments.entities, arguments.nodes, arguments.triples, arguments.seeds


def main() -> None:
    """Answer the chosen question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    questions = {"steps": compare_steps, "profile": profile_step, "whole": encode_whole, "accuracy": compare_accuracy}
    parser.add_argument("question", choices=questions)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--entities", type=int, default=2_400_000)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--triples", type=int, default=391_513)
    parser.add_argument("--seeds", type=int, default=11_700)
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = questions[arguments.question](arguments)
    if arguments.json:
        keep(arguments.json, arguments.question, rows, Path(arguments.file).name if arguments.file else "drawn")


if __name__ == "__main__":
    main()
