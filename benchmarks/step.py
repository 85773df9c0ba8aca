"""How long one training step takes, and how much memory: `python benchmarks/step.py FOLDER [--json FILE]`.

A step is forward, alignment loss, reconstruction and backward, without the optimiser. Ours runs on one subgraph of the
merged graph (5 parts, cap 7,500, seeds train and valid, 2,000 negatives). The naive one is what a first version of the
paper's method would be: the whole graph, a row for every pair, all entities as negatives. Both take 1,024 seeds. Each
case runs in a process of its own; memory is what the step adds to what was there before it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from largegnn import api
from largegnn.artifacts import AlignmentTask, Subgraph
from largegnn.division import add_landmarks, build_subgraphs
from largegnn.division.merge import merge
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.losses import alignment_loss, reconstruction_loss
from largegnn.embedding.sampling import batch_nodes, dropout, sample_nodes
from largegnn.embedding.structure import build_structure
from largegnn.machine.metering import Meter
from largegnn.paper.origin import origin_of
from largegnn.paper.record_lines import add_line
from largegnn.seams.tables import PARTITIONERS
from largegnn.settings import Settings

Figures = dict[str, Any]

NUM_PARTS, CAP, BATCH, NUM_NEGATIVES, RECONSTRUCTION = 5, 7_500, 1_024, 2_000, 20.0


def largest_subgraph(task: AlignmentTask) -> Subgraph:
    """The subgraph with the most triples."""
    graph, seeds = merge(task, "train+valid"), task.seeds("train+valid")
    partition = PARTITIONERS["metis"](task, graph, "train+valid", NUM_PARTS, 0)
    subgraphs = build_subgraphs(task, seeds, add_landmarks(graph, partition, seeds, CAP))
    return max((subgraphs.subgraph(index) for index in range(NUM_PARTS)), key=lambda subgraph: len(subgraph.triples))


def tables(num_entities: int, num_relations: int, dim: int) -> tuple[Tensor, Tensor]:
    """Entity and relation rows as training starts with them."""
    torch.manual_seed(0)
    entities = torch.empty(num_entities, dim).uniform_(-0.05, 0.05).requires_grad_()
    return entities, torch.empty(2 * num_relations, dim).uniform_(-0.05, 0.05).requires_grad_()


def time_steps(step: Callable[[], Tensor], leaves: list[Tensor], repeats: int) -> Figures:
    """Median seconds of a step, and the memory it adds, after one step to warm up (not for a single one)."""
    before = Meter().read().peak_memory_mb
    seconds, peaks = [], []
    for _ in range(repeats):
        meter = Meter()
        step().backward()  # type: ignore[no-untyped-call]
        usage = meter.read()
        seconds.append(usage.seconds)
        peaks.append(usage.peak_memory_mb)
        for leaf in leaves:
            leaf.grad = None
    timed = seconds[1:] or seconds
    return {"seconds": statistics.median(timed), "fastest": min(timed), "added_memory_mb": max(peaks) - before}


def our_step(folder: str, dim: int, repeats: int) -> Figures:
    """A step on a subgraph."""
    task = api.load(folder).task
    subgraph = largest_subgraph(task)
    structure = build_structure(len(subgraph.entities), subgraph.triples, task.num_relations)
    entities, relations = tables(len(subgraph.entities), task.num_relations, dim)
    encoder, generator = DualAMN(dim), torch.Generator().manual_seed(0)
    seeds = torch.tensor(subgraph.seeds[:BATCH], dtype=torch.int64)

    def step() -> Tensor:
        batch = batch_nodes(seeds, sample_nodes(structure.num_nodes, NUM_NEGATIVES, generator))
        outputs = dropout(encoder(entities, relations, structure, batch.nodes), 0.3, generator)
        loss = alignment_loss(outputs, batch.seeds, batch.negatives)
        return loss + RECONSTRUCTION * reconstruction_loss(entities, structure, 0.3, generator)

    figures = time_steps(step, [entities, relations, *encoder.parameters()], repeats)
    return {"case": f"subgraph of {structure.num_nodes:,}, d = {dim}", **figures}


def naive_step(folder: str, dim: int, repeats: int) -> Figures:
    """A step on the whole graph, written as the formulas are."""
    task = api.load(folder).task
    entities, relations = tables(task.num_entities, task.num_relations, dim)
    encoder = DualAMN(dim)
    triples = torch.tensor(task.triples, dtype=torch.int64)
    triples = triples[triples[:, 0] != triples[:, 2]]
    heads, names, tails = triples.unbind(dim=1)
    ends = torch.stack([torch.cat([heads, tails]), torch.cat([tails, heads])])
    rows = torch.cat([names, names + task.num_relations])
    pairs, pair_of_triple = torch.unique(ends, dim=1, return_inverse=True)
    incidences = torch.unique(torch.stack([ends[0], rows]), dim=1)
    seeds = torch.tensor(task.seeds("train+valid")[:BATCH], dtype=torch.int64)

    def mean(values: Tensor, nodes: Tensor, size: int) -> Tensor:
        sums = values.new_zeros(size, values.shape[1]).index_add(0, nodes, values)
        return sums / torch.bincount(nodes, minlength=size).clamp_min(1).unsqueeze(1)

    def step() -> Tensor:
        receivers, neighbors = pairs
        num_nodes = len(entities)
        own = torch.arange(num_nodes)
        units = functional.normalize(mean(relations[rows], pair_of_triple, pairs.shape[1]), dim=1)
        near = torch.cat([receivers, own]), torch.cat([neighbors, own])
        firsts = mean(entities[near[1]], near[0], num_nodes), mean(relations[incidences[1]], incidences[0], num_nodes)
        outputs = []
        for block, first in zip((encoder.entity_block, encoder.relation_block), firsts, strict=True):
            layers = [torch.tanh(first)]
            for vector in block.attention:
                powers = (units @ vector).exp()
                shares = powers / torch.zeros(num_nodes).index_add(0, receivers, powers)[receivers]
                rows_there = layers[-1][neighbors]
                messages = rows_there - 2 * (rows_there * units).sum(dim=1, keepdim=True) * units
                layers.append(torch.tanh(torch.zeros_like(first).index_add(0, receivers, shares[:, None] * messages)))
            all_layers = torch.cat(layers, dim=1)
            cosines = functional.normalize(all_layers, dim=1) @ functional.normalize(block.proxies, dim=1).t()
            apart = all_layers - functional.softmax(cosines, dim=1) @ block.proxies
            gate = torch.sigmoid(block.gate(apart))
            outputs.append(gate * all_layers + (1 - gate) * apart)
        output = functional.dropout(torch.cat(outputs, dim=1), 0.3)
        neighbor_means = functional.dropout(mean(entities[neighbors], receivers, num_nodes), 0.3)
        rebuilt = (functional.dropout(entities, 0.3) - neighbor_means).square().sum() / num_nodes
        return naive_alignment_loss(output, seeds) + RECONSTRUCTION * rebuilt

    figures = time_steps(step, [entities, relations, *encoder.parameters()], repeats)
    return {"case": f"naive, whole graph of {task.num_entities:,}, d = {dim}", **figures}


def naive_alignment_loss(outputs: Tensor, seeds: Tensor) -> Tensor:
    """The alignment loss against all nodes, as the formula is."""
    left, right = outputs[seeds[:, 0]], outputs[seeds[:, 1]]
    positive = (left - right).square().sum(dim=1, keepdim=True)
    mask = torch.ones(len(seeds), len(outputs)).scatter(1, seeds, 0.0)
    total = outputs.new_zeros(())
    for anchors in (left, right):
        squares = anchors.square().sum(dim=1, keepdim=True) + outputs.square().sum(dim=1)
        z = (positive - (squares - 2 * anchors @ outputs.t()) + 1.0) * mask
        z = (z - z.mean(dim=1, keepdim=True).detach()) / z.std(dim=1, correction=0, keepdim=True).detach()
        total = total + torch.logsumexp(30.0 * z + 10.0, dim=1).mean()
    return total


def measure(case: Callable[[str, int, int], Figures], *arguments: Any) -> Figures:
    """Run a case in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures = pool.apply(case, arguments)
    print(
        f"{figures['case']:<40} {figures['seconds']:>9.3f} s (fastest {figures['fastest']:.3f}) "
        f"{figures['added_memory_mb']:>8,.0f} MB added",
        flush=True,
    )
    return figures


def main() -> None:
    """Measure the three steps and print how they compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="data set folder")
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    arguments = parser.parse_args()
    results = [measure(our_step, arguments.folder, dim, 21) for dim in (64, 128)]
    results.append(measure(naive_step, arguments.folder, 128, 2))
    naive = results[-1]
    for figures in results[:-1]:
        faster = naive["seconds"] / figures["seconds"]
        leaner = naive["added_memory_mb"] / max(1.0, figures["added_memory_mb"])
        print(f"{figures['case']:<40} {faster:>9.1f} times faster, {leaner:.1f} times leaner than the naive step")
    if arguments.json:
        folder = Path(arguments.folder)
        origin = origin_of(Settings(), [folder], protocol={"threads": torch.get_num_threads()})
        for figures in results:
            add_line(arguments.json, f"{folder.name}, {figures['case']}", origin, figures)


if __name__ == "__main__":
    main()
