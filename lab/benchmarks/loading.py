"""Measure time and memory of reading, merging and generating: `python -m lab.benchmarks.loading [FOLDER ...]`.

Without folders it measures generated data: a million N-Triples, and the generated `dbpedia1m` pair (written, then
loaded). Each case runs in a process of its own, so that peak memory is measured separately.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.lines import write_rows
from largegnn import api
from largegnn.data.coding import code_batches
from largegnn.data.readers import read_triples
from largegnn.division.merge import merge
from largegnn.machine.metering import Meter

Figures = dict[str, Any]


def load_and_merge(folder: str) -> Figures:
    """Measure loading and merging a data set folder."""
    meter = Meter()
    pair = api.load(folder)
    loaded = meter.read().seconds
    graph = merge(pair.task)
    usage = meter.read()
    return {
        "case": f"load and merge {Path(folder).name}",
        "triples": len(pair.task.triples),
        "seconds": usage.seconds,
        "peak_memory_mb": usage.peak_memory_mb,
        "detail": f"load {loaded:.1f} s, merge {usage.seconds - loaded:.1f} s, {graph.num_nodes:,} nodes",
    }


def read_n_triples(folder: str) -> Figures:
    """Measure reading a million N-Triples with names as long as DBpedia's; a tenth of the tails are literals."""
    path = Path(folder) / "million.nt"
    with path.open("w", encoding="utf-8") as file:
        for number in range(1_000_000):
            head = f"<http://dbpedia.org/resource/Some_Entity_Name_{number % 200_000}>"
            relation = f"<http://dbpedia.org/ontology/relation{number % 300}>"
            tail = f"<http://dbpedia.org/resource/Some_Entity_Name_{number * 7919 % 200_003}>"
            if number % 10 == 0:
                tail = f'"name {number}"@en'
            file.write(f"{head} {relation} {tail} .\n")
    meter = Meter()
    graph = code_batches(read_triples(path), keep_literals=False)
    usage = meter.read()
    return {
        "case": "read a million N-Triples",
        "triples": len(graph.triples) + graph.num_attribute_triples,
        "seconds": usage.seconds,
        "peak_memory_mb": usage.peak_memory_mb,
        "detail": f"{path.stat().st_size / 1e6:.0f} MB of text",
    }


def generate_dbpedia1m(folder: str) -> Figures:
    """Measure generating and writing the largest preset."""
    meter = Meter()
    pair = api.generate("dbpedia1m", folder=Path(folder) / "dbpedia1m", form="dbpedia1m")
    usage = meter.read()
    return {
        "case": "generate dbpedia1m",
        "triples": len(pair.task.triples),
        "seconds": usage.seconds,
        "peak_memory_mb": usage.peak_memory_mb,
        "detail": "written as text",
    }


def measure(case: Callable[[str], Figures], argument: str) -> Figures:
    """Run a case in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        figures = pool.apply(case, (argument,))
    print(
        f"{figures['case']:<40} {figures['triples']:>12,} triples {figures['seconds']:>8.1f} s "
        f"{figures['peak_memory_mb']:>8,.0f} MB   {figures['detail']}",
        flush=True,
    )
    return figures


def main() -> None:
    """Measure the requested cases, and print each result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", help="data set folders to load and merge")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        results = [measure(load_and_merge, folder) for folder in arguments.folders]
        if not arguments.folders:
            results.append(measure(read_n_triples, scratch))
            results.append(measure(generate_dbpedia1m, scratch))
            results.append(measure(load_and_merge, os.fspath(Path(scratch) / "dbpedia1m")))
    if arguments.json:
        write_rows(arguments.json, results, map(Path, arguments.folders))


if __name__ == "__main__":
    main()
