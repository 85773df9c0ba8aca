"""Measure the quality and speed of divisions: four questions, one table each.

    division.py methods FOLDER [--parts 5 --cap 7500 --repeats 5]  every method, mean and spread over random seeds
    division.py partitioners FOLDER [--parts 5 --cap 7500]        METIS and KaMinPar, by edge cut and valid links kept
    division.py large FOLDER [--parts 40 --cap 100000]            one large graph, step by step
    division.py growth [--largest 2400000]                        seconds and memory against the size

Compiled code is loaded before the measurements; each size of `growth` has a process of its own. `--json FILE` adds a
record for each row.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import multiprocessing
import statistics
from pathlib import Path
from typing import Any

import numpy as np

from lab.lines import add_line
from lab.origin import origin_of
from largegnn import api
from largegnn.artifacts import AlignmentTask
from largegnn.division import warm_up
from largegnn.settings import METHODS, PRESETS, Settings, WorldSettings, resolve

Figures = dict[str, Any]
Rows = list[tuple[Figures, Settings]]
SHARES = ("triples_kept", "train_kept", "valid_kept", "test_kept")


def settings_of(
    method: str, parts: int, cap: int | None, landmarks: bool, seed: int = 0, seeds_from: str = "train+valid"
) -> Settings:
    """Return the settings of a division; by default, seeds are train + valid links, as in the paper."""
    values: dict[str, Any] = {"seed": seed, "protocol": {"seeds_from": seeds_from}}
    partitioner = METHODS[method]["division"]["partitioner"] if method in METHODS else method
    values["division"] = {"partitioner": partitioner, "parts": parts}
    values["landmarks"] = {"enabled": landmarks} | ({"cap": cap} if cap is not None and landmarks else {})
    return resolve(Settings, PRESETS, values=values)


def divide(task: AlignmentTask, settings: Settings) -> Figures:
    """Divide a task, and return plain figures."""
    division = api.divide(task, settings)
    quality = division.quality
    return {
        "seconds": division.seconds,
        "total_seconds": sum(division.seconds.values()),
        "peak_memory_mb": division.peak_memory_mb,
        "mean_size": statistics.mean(quality.sizes),
        "max_size": max(quality.sizes),
        **{share: getattr(quality, share) for share in SHARES},
    }


def compare_methods(folder: str, parts: int, cap: int, repeats: int) -> Rows:
    """Compare the methods, with and without landmarks, over several random seeds."""
    warm_up()
    task = api.load(folder).task
    rows: Rows = []
    for method, landmarks in (("metis", False), ("csg", True), ("cps", False), ("cps", True), ("sbp", False)):
        # CPS and SBP have no cap of their own; with landmarks, CPS gets the cap of CSG.
        runs = [divide(task, settings_of(method, parts, cap, landmarks, seed)) for seed in range(repeats)]
        name = f"{method} + landmarks" if landmarks and method != "csg" else method
        row: Figures = {"set": Path(folder).name, "method": name, "parts": parts, "cap": cap if landmarks else None}
        for key in (*SHARES, "mean_size", "max_size", "total_seconds"):
            values = [run[key] for run in runs]
            spread = statistics.stdev(values) if len(values) > 1 else 0.0
            row[key] = {"mean": statistics.mean(values), "sd": spread, "max": max(values)}
        rows.append((row, settings_of(method, parts, cap, landmarks)))
        print(
            f"{row['set']:<16} {name:<16} "
            + "  ".join(f"{key[:-5]} {row[key]['mean']:.4f} ± {row[key]['sd']:.4f}" for key in SHARES)
            + f"  mean size {row['mean_size']['mean']:,.0f}, largest {row['max_size']['max']:,}"
            f"  {row['total_seconds']['mean']:.2f} s",
            flush=True,
        )
    return rows


def compare_partitioners(folder: str, parts: int, cap: int, repeats: int) -> Rows:
    """Compare partitioners of the merged graph, without and with landmarks, by valid links; seeds are train links."""
    warm_up()
    task = dataclasses.replace(api.load(folder).task, test_links=np.empty((0, 2), dtype=np.int32))
    rows: Rows = []
    for landmarks, name in itertools.product((False, True), ("metis", "kaminpar", "kaminpar_parallel")):
        runs = []
        for seed in range(repeats):
            division = api.divide(task, settings_of(name, parts, cap, landmarks, seed, "train"))
            quality = division.quality
            shares = (quality.edge_cut, quality.valid_kept, quality.triples_kept)
            runs.append((*(share or 0.0 for share in shares), division.seconds["partition"]))
        means = [statistics.mean(values) for values in zip(*runs, strict=True)]
        spread = statistics.stdev([run[1] for run in runs]) if repeats > 1 else 0.0
        row: Figures = {
            "set": Path(folder).name,
            "partitioner": name,
            "parts": parts,
            "cap": cap if landmarks else None,
        }
        row |= dict(zip(("edge_cut", "valid_kept", "triples_kept", "partition_seconds"), means, strict=True))
        rows.append((row | {"valid_kept_sd": spread}, settings_of(name, parts, cap, landmarks, seeds_from="train")))
        print(
            f"{row['set']:<16} {name:<18} {'landmarks' if landmarks else '':<9} cut {means[0]:.4f}  "
            f"valid {means[1]:.4f} ± {spread:.4f}  triples {means[2]:.4f}  {means[3]:.2f} s",
            flush=True,
        )
    return rows


def measure_large(folder: str, parts: int, cap: int) -> Rows:
    """Measure each step of one division of a large graph, for each partitioner of the merged graph."""
    warm_up()
    task = api.load(folder).task
    return [
        _measure_steps(task, Path(folder).name, name, parts, cap) for name in ("csg", "kaminpar", "kaminpar_parallel")
    ]


def _measure_steps(task: AlignmentTask, dataset: str, method: str, parts: int, cap: int) -> tuple[Figures, Settings]:
    figures: Figures = {"set": dataset, "method": method, "parts": parts, "cap": cap}
    settings = settings_of(method, parts, cap, True)
    figures |= divide(task, settings)
    steps = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in figures["seconds"].items())
    print(f"{dataset} {method}: {steps}; in all {figures['total_seconds']:.1f} s, {figures['peak_memory_mb']:,.0f} MB")
    print("  " + ", ".join(f"{share} {figures[share]:.4f}" for share in SHARES) + f", largest {figures['max_size']:,}")
    return figures, settings


def measure_size(num_entities: int) -> tuple[Figures, Settings]:
    """Divide a generated pair with about `num_entities` entities on both sides together."""
    warm_up()
    side = num_entities // 2
    world = WorldSettings(
        source_entities=side,
        target_entities=side,
        links=int(0.4 * side),
        source_triples=6 * side,
        target_triples=4 * side,
        source_relations=200,
        target_relations=150,
        missing=0.5,
        degree_exponent=2.0,
        community_size=200,
        inside=0.94,
    )
    task = api.generate(world).task
    settings = settings_of("csg", max(2, num_entities // 60_000), None, True)
    return {"entities": num_entities, "triples": len(task.triples)} | divide(task, settings), settings


def measure_growth(largest: int) -> Rows:
    """Measure seconds and memory from ten thousand entities up, with about four times as many in each row."""
    sizes = [size for size in (10_000, 40_000, 160_000, 640_000, 2_400_000) if size <= largest]
    rows: Rows = []
    for size in sizes:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows.append(pool.apply(measure_size, (size,)))
        row, _ = rows[-1]
        steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in row["seconds"].items())
        print(
            f"{size:>10,} entities {row['triples']:>12,} triples {row['total_seconds']:>8.2f} s "
            f"({1e6 * row['total_seconds'] / row['triples']:.2f} µs a triple) "
            f"{row['peak_memory_mb']:>8,.0f} MB  {steps}",
            flush=True,
        )
    return rows


def keep(file: Path, question: str, rows: Rows, folder: Path | None, repeats: int) -> None:
    """Add a record for each row."""
    protocol = {"random_seeds": repeats} if question in ("methods", "partitioners") else {}
    for row, settings in rows:
        if question == "growth":
            name = f"{row['entities']:,} entities"
        else:
            marked = " + landmarks" if question == "partitioners" and row["cap"] else ""
            name = f"{row['set']}, {row.get('method') or row['partitioner']}{marked}"
        add_line(file, f"{question}, {name}", origin_of(settings, [folder] if folder else [], protocol=protocol), row)


def main() -> None:
    """Answer the chosen question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=("methods", "partitioners", "large", "growth"))
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--parts", type=int)
    parser.add_argument("--cap", type=int)
    parser.add_argument("--repeats", type=int, default=5, help="random seeds of each method")
    parser.add_argument("--largest", type=int, default=2_400_000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.question == "growth":
        rows = measure_growth(arguments.largest)
    elif arguments.folder is None:
        parser.error(f"{arguments.question} needs a data set folder")
    elif arguments.question == "methods":
        rows = compare_methods(arguments.folder, arguments.parts or 5, arguments.cap or 7_500, arguments.repeats)
    elif arguments.question == "partitioners":
        rows = compare_partitioners(arguments.folder, arguments.parts or 5, arguments.cap or 7_500, arguments.repeats)
    else:
        rows = measure_large(arguments.folder, arguments.parts or 40, arguments.cap or 100_000)
    if arguments.json:
        folder = Path(arguments.folder) if arguments.folder else None
        keep(arguments.json, arguments.question, rows, folder, arguments.repeats)


if __name__ == "__main__":
    main()
