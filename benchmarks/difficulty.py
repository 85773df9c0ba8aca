"""How hard is a pair of graphs for plain structure? A training-free baseline on generated and on real pairs.

In: names of world presets and folders in OpenEA's layout (`rel_triples_1`, `rel_triples_2`, and train, valid and test
links beside them or under `721_5fold/1`). Out: a table of sizes, degrees and the baseline's H@1 and H@10; `--json FILE`
writes the same rows.

The baseline is label propagation in the spirit of LightEA: each seed pair gets one random unit vector, every other
entity starts at zero, vectors spread a few hops over each graph, the hops are laid end to end and compared by cosine.
Seeds are the train and valid links. A tie counts against the baseline, and a zero vector never ranks first.
Cost: sparse times dense per hop, then an exact search of at most `--sources` test sources among all test targets.

    python benchmarks/difficulty.py small 15k path/to/EN_FR_15K_V1 --json difficulty.json
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from rich.console import Console
from rich.table import Table
from scipy import sparse
from scipy.sparse import csgraph

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.datasets.generator import generate_pair
from largegnn.paper.record_lines import write_rows
from largegnn.settings import WORLD_PRESETS, WorldSettings, resolve

FloatArray = npt.NDArray[np.float32]
TIE = 1e-6  # scores closer than this differ only by the order in which floats were added


@dataclass(frozen=True)
class Row:
    """One line of the table; a pair of numbers is source, target."""

    name: str
    entities: tuple[int, int]
    relations: tuple[int, int]
    triples: tuple[int, int]
    links: int
    median_degree: tuple[float, float]
    mean_degree: tuple[float, float]
    p99_degree: tuple[float, float]
    max_degree: tuple[int, int]
    largest_component: tuple[float, float]
    shared_edges: tuple[float, float]
    hits_at_1: float
    hits_at_10: float
    seconds: float


def main() -> None:
    """Measure every preset and folder named on the command line."""
    parser = argparse.ArgumentParser(description="Training-free structural baseline on pairs of graphs.")
    parser.add_argument("pairs", nargs="+", help=f"presets ({', '.join(WORLD_PRESETS)}) or OpenEA-style folders")
    parser.add_argument("--set", action="append", default=[], dest="overrides", help="key=value for the presets")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generated worlds and of the random vectors")
    parser.add_argument("--dim", type=int, default=256, help="length of the random vectors")
    parser.add_argument("--hops", type=int, default=3, help="hops to propagate")
    parser.add_argument("--sources", type=int, default=5_000, help="at most this many test sources are searched")
    parser.add_argument("--json", type=Path, help="write the rows here")
    args = parser.parse_args()
    rows = []
    for name in args.pairs:
        start = time.perf_counter()
        if name in WORLD_PRESETS:
            settings = resolve(WorldSettings, WORLD_PRESETS, preset=name, overrides=args.overrides)
            task = generate_pair(settings, args.seed).task
        else:
            task = read_folder(Path(name))
        hits = baseline(task, args.dim, args.hops, args.sources, np.random.default_rng(args.seed))
        rows.append(measure(Path(name).name, task, hits, time.perf_counter() - start))
    print_table(rows)
    if args.json:
        write_rows(args.json, [asdict(row) for row in rows])


def read_folder(folder: Path) -> AlignmentTask:
    """Read an OpenEA-style folder; each side's strings are numbered on their own, since names may repeat across."""
    split = folder / "721_5fold" / "1"
    split = split if split.is_dir() else folder
    links = [_read_columns(split / f"{name}_links", ("source", "target")) for name in ("train", "valid", "test")]
    entity_tables: list[pl.Series] = []
    relation_tables: list[pl.Series] = []
    triples: list[IntArray] = []
    for file, column in (("rel_triples_1", "source"), ("rel_triples_2", "target")):
        facts = _read_columns(folder / file, ("head", "relation", "tail"))
        entities = pl.concat([facts["head"], facts["tail"], *(part[column] for part in links)]).unique().sort()
        relations = facts["relation"].unique().sort()
        entity_offset, relation_offset = (
            sum(len(table) for table in each) for each in (entity_tables, relation_tables)
        )
        numbered = [
            _numbers(facts["head"], entities, entity_offset),
            _numbers(facts["relation"], relations, relation_offset),
            _numbers(facts["tail"], entities, entity_offset),
        ]
        triples.append(np.unique(np.column_stack(numbered), axis=0))
        entity_tables.append(entities)
        relation_tables.append(relations)
    source, target = entity_tables
    splits = (
        np.column_stack([_numbers(part["source"], source, 0), _numbers(part["target"], target, len(source))])
        for part in links
    )
    train, valid, test = splits
    return AlignmentTask(
        num_source_entities=len(source),
        num_target_entities=len(target),
        num_source_relations=len(relation_tables[0]),
        num_target_relations=len(relation_tables[1]),
        triples=np.concatenate(triples),
        train_links=train,
        valid_links=valid,
        test_links=test,
    )


def _read_columns(file: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    """A tab-separated file without header as strings."""
    schema = dict.fromkeys(columns, pl.String)
    return pl.read_csv(file, separator="\t", has_header=False, schema=schema, quote_char=None)


def _numbers(names: pl.Series, table: pl.Series, offset: int) -> IntArray:
    """The position of each name in the sorted `table`, plus `offset`."""
    ids = pl.DataFrame({"name": table, "id": np.arange(offset, offset + len(table), dtype=np.int32)})
    joined = pl.DataFrame({"name": names}).join(ids, on="name", how="left", maintain_order="left")
    return joined["id"].to_numpy()


def baseline(
    task: AlignmentTask, dim: int, hops: int, num_sources: int, rng: np.random.Generator
) -> tuple[float, float]:
    """H@1 and H@10 of label propagation from the train and valid links, over the test links."""
    seeds = task.seeds("train+valid")
    labels = rng.standard_normal((len(seeds), dim), dtype=np.float32)
    labels /= np.linalg.norm(labels, axis=1, keepdims=True)
    test = task.test_links
    sample = np.sort(rng.choice(len(test), min(num_sources, len(test)), replace=False))
    on_source = task.num_source_triples
    queries = propagate(
        task.triples[:on_source], task.num_source_entities, 0, seeds[:, 0], labels, hops, test[sample, 0]
    )
    keys = propagate(
        task.triples[on_source:],
        task.num_target_entities,
        task.num_source_entities,
        seeds[:, 1],
        labels,
        hops,
        test[:, 1],
    )
    ranks = rank(queries, keys, sample)
    return float(np.mean(ranks <= 1)), float(np.mean(ranks <= 10))


def propagate(
    triples: IntArray, num_entities: int, offset: int, seeds: IntArray, labels: FloatArray, hops: int, wanted: IntArray
) -> FloatArray:
    """Spread seed labels over one graph; the `wanted` entities' hops end to end, unit length, (k, dim * hops)."""
    heads, tails = triples[:, 0] - offset, triples[:, 2] - offset
    # A rare relation tells more than a frequent one.
    frequency = np.bincount(triples[:, 1])
    weights = np.log1p(len(triples) / frequency[triples[:, 1]]).astype(np.float32)
    one_way = sparse.csr_array((weights, (heads, tails)), shape=(num_entities, num_entities))
    graph = sparse.csr_array(one_way + one_way.T)
    degree = np.maximum(graph.sum(axis=1), TIE).astype(np.float32)
    # Rows by inverse degree, so that a vector is a mean; columns by its root, so that a hub's says less.
    row = np.repeat(np.arange(num_entities), np.diff(graph.indptr))
    graph.data /= degree[row] * np.sqrt(degree[graph.indices])
    vectors = np.zeros((num_entities, labels.shape[1]), dtype=np.float32)
    vectors[seeds - offset] = labels
    parts = []
    for hop in range(hops):
        vectors = graph @ vectors
        parts.append(_unit(vectors[wanted - offset]))
        if hop + 1 < hops:
            # Seeds keep their own label in the mix, so that the next hop still tells them apart.
            vectors = _unit(vectors)
            vectors[seeds - offset] += labels
    return _unit(np.concatenate(parts, axis=1))


def _unit(vectors: FloatArray) -> FloatArray:
    """Rows scaled to length one; zero rows stay zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-20), dtype=np.float32)


def rank(queries: FloatArray, keys: FloatArray, true_keys: IntArray, chunk: int = 500) -> IntArray:
    """Rank of each query's true key among all keys, ties counted against it; zero vectors rank last."""
    ranks = np.full(len(queries), len(keys), dtype=np.int64)
    known = queries.any(axis=1) & keys[true_keys].any(axis=1)
    true_scores = np.einsum("ij,ij->i", queries, keys[true_keys])
    for start in range(0, len(queries), chunk):
        part = slice(start, start + chunk)
        scores = queries[part] @ keys.T
        ranks[part] = np.count_nonzero(scores >= true_scores[part, None] - TIE, axis=1)
    # The true key reaches its own score, so the count is already 1 + the others at or above it.
    ranks[~known] = len(keys) + 1
    return ranks


def measure(name: str, task: AlignmentTask, hits: tuple[float, float], seconds: float) -> Row:
    """Sizes, degrees and components of both sides."""
    on_source = task.num_source_triples
    sides = [
        (task.triples[:on_source], 0, task.num_source_entities),
        (task.triples[on_source:], task.num_source_entities, task.num_target_entities),
    ]
    columns: dict[str, list[Any]] = {key: [] for key in ("median", "mean", "p99", "max", "component")}
    for triples, offset, num_entities in sides:
        ends = (triples[:, 0] - offset, triples[:, 2] - offset)
        degree = np.bincount(ends[0], minlength=num_entities) + np.bincount(ends[1], minlength=num_entities)
        graph = sparse.coo_array((np.ones(len(triples), dtype=np.int8), ends), shape=(num_entities, num_entities))
        _, component = csgraph.connected_components(graph, directed=False)
        columns["median"].append(float(np.median(degree)))
        columns["mean"].append(round(float(degree.mean()), 2))
        columns["p99"].append(round(float(np.percentile(degree, 99)), 1))
        columns["max"].append(int(degree.max()))
        columns["component"].append(round(float(np.bincount(component).max() / num_entities), 4))
    return Row(
        name=name,
        entities=(task.num_source_entities, task.num_target_entities),
        relations=(task.num_source_relations, task.num_target_relations),
        triples=(on_source, len(task.triples) - on_source),
        links=len(task.train_links) + len(task.valid_links) + len(task.test_links),
        median_degree=tuple(columns["median"]),
        mean_degree=tuple(columns["mean"]),
        p99_degree=tuple(columns["p99"]),
        max_degree=tuple(columns["max"]),
        largest_component=tuple(columns["component"]),
        shared_edges=shared_edges(task),
        hits_at_1=round(hits[0], 4),
        hits_at_10=round(hits[1], 4),
        seconds=round(seconds, 1),
    )


def shared_edges(task: AlignmentTask) -> tuple[float, float]:
    """Share of each side's edges between linked entities that the other side has too, whatever the relation."""
    links = np.concatenate([task.train_links, task.valid_links, task.test_links])
    node = np.full(task.num_entities, -1, dtype=np.int64)
    node[links[:, 0]] = node[links[:, 1]] = np.arange(len(links))
    ends = node[task.triples[:, ::2]]
    keys = np.where((ends >= 0).all(axis=1), ends.min(axis=1) * len(links) + ends.max(axis=1), -1)
    on_source = task.num_source_triples
    source, target = (np.unique(side[side >= 0]) for side in (keys[:on_source], keys[on_source:]))
    both = len(np.intersect1d(source, target, assume_unique=True))
    return round(both / max(len(source), 1), 3), round(both / max(len(target), 1), 3)


def print_table(rows: list[Row]) -> None:
    """Print the rows; a cell with a slash is source / target."""
    table = Table()
    for column in asdict(rows[0]):
        table.add_column(column.replace("_", " "), justify="left" if column == "name" else "right")
    for row in rows:
        cells = asdict(row).values()
        table.add_row(*(" / ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell) for cell in cells))
    Console(width=260).print(table)


if __name__ == "__main__":
    main()
