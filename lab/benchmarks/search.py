"""Measure speed and recall of the searchers on the same vectors, with one line for each searcher.

    search.py [--entities 100000] [--dim 384] [--k 10] [--searchers torch,ivf] [--device cpu] [--both] [--spread 1]
    search.py --vectors SOURCES.npy TARGETS.npy

Without files the sources are unit vectors around random centres, 50 to a centre, and the targets noisy copies of them;
some directions vary more than others, as in learned vectors, so that clusters overlap.
Every case runs in a process of its own on memory-mapped vectors, with the libraries loaded beforehand; `--both`
searches in both directions. Recall is the share of the k nearest that are found, on a sample. `--json FILE`
stores the figures.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.lines import write_rows
from lab.runs import SEARCHERS
from largegnn.machine.metering import Meter
from largegnn.matching.search import SearchOptions, search, search_both

Figures = dict[str, Any]
CLUSTER = 50  # sources around one centre
NOISE = 0.6
DECAY = 0.4
PIECE = 20_000


def write_vectors(folder: Path, num_entities: int, dim: int, spread: float) -> list[Path]:
    """Write two files of unit vectors; row i of the targets is a noisy copy of row i of the sources."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(1, num_entities // CLUSTER), dim), dtype=np.float32)
    scales = np.arange(1, dim + 1, dtype=np.float32) ** -DECAY
    paths = [folder / "sources.npy", folder / "targets.npy"]
    files = [np.lib.format.open_memmap(path, "w+", np.float32, (num_entities, dim)) for path in paths]
    for start in range(0, num_entities, PIECE):
        size = min(PIECE, num_entities - start)
        row_centres = centres[rng.integers(0, len(centres), size)]
        rows = row_centres + spread * rng.standard_normal((size, dim), dtype=np.float32)
        copies = rows + NOISE * rng.standard_normal((size, dim), dtype=np.float32)
        for file, piece in zip(files, (rows, copies), strict=True):
            piece *= scales
            file[start : start + size] = piece / np.linalg.norm(piece, axis=1, keepdims=True)
    for file in files:
        file.flush()
    return paths


def measure(method: str, paths: list[Path], k: int, both: bool, options: SearchOptions) -> Figures:
    """Search once, and return plain figures."""
    logging.basicConfig(format="  %(message)s")
    logging.getLogger("largegnn").setLevel(logging.INFO)
    sources, targets = (np.load(path, mmap_mode="r") for path in paths)
    # The first call loads libraries and, on a GPU, its driver: a cost of the process, not of the search.
    search(sources[:1000], targets[:1000], k, method, options=options)
    on_gpu = options.device.startswith("cuda")
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    meter = Meter()
    if both:
        results = list(search_both(sources, targets, k, method, options=options))
    else:
        results = [search(sources, targets, k, method, options=options)]
    usage = meter.read()
    records = [result.record for result in results]
    recalls = [1.0 if record.recall is None else record.recall for record in records]
    return {
        "searcher": method,
        "used": records[0].method,
        "queries": len(sources),
        "corpus": len(targets),
        "dim": int(sources.shape[1]),
        "k": k,
        "directions": len(results),
        "seconds": usage.seconds,
        "recall": min(recalls),
        "peak_memory_mb": usage.peak_memory_mb,
        "gpu_peak_memory_mb": torch.cuda.max_memory_allocated() / 2**20 if on_gpu else None,
        "in_float32": sum(record.num_float32 for record in records),
        "in_float64": sum(record.num_float64 for record in records),
        "first_is_copy": float(np.mean(results[0].ids[:, 0] == np.arange(len(sources)))),
    }


def show(row: Figures) -> None:
    """Print one line of the table."""
    gpu = "" if row["gpu_peak_memory_mb"] is None else f" + {row['gpu_peak_memory_mb']:,.0f} on the GPU"
    print(
        f"{row['searcher']:<8} {row['queries']:>10,} x {row['corpus']:>10,} x {row['dim']:<5} {row['directions']:>3} "
        f"{row['seconds']:>10.2f} {row['recall']:>8.4f} {row['first_is_copy']:>8.4f} "
        f"{row['in_float32']:>8,} {row['in_float64']:>8,} {row['peak_memory_mb']:>9,.0f}{gpu}",
        flush=True,
    )


def main() -> None:
    """Measure the requested searchers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--spread", type=float, default=1.0, help="of a cluster; at 0.7 clusters hardly overlap")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--searchers", default="torch,ivf", help=f"of {', '.join(SEARCHERS)}")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--memory", type=float, default=4.0, help="gigabytes a search may take")
    parser.add_argument("--vectors", type=Path, nargs=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    options = SearchOptions(device=arguments.device, recall=arguments.recall, max_memory_gb=arguments.memory)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        paths = arguments.vectors or write_vectors(Path(folder), arguments.entities, arguments.dim, arguments.spread)
        print("searcher                        size  directions  seconds   recall  copy 1st  float32  float64  peak MB")
        for method in arguments.searchers.split(","):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(measure, (method, paths, arguments.k, arguments.both, options)))
            show(rows[-1])
    if arguments.json:
        write_rows(arguments.json, [{**row, "threads": torch.get_num_threads()} for row in rows])


if __name__ == "__main__":
    main()
