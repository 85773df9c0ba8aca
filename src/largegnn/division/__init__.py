"""From a `MergedGraph` to subgraphs that fit in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from largegnn.artifacts import AlignmentTask, MergedGraph, Partition, SeedsFrom
from largegnn.division.cps import cps
from largegnn.division.landmarks import add_landmarks, check_cap
from largegnn.division.metis import merged_metis
from largegnn.division.quality import measure_quality, share_kept
from largegnn.division.sbp import sbp
from largegnn.division.subgraphs import build_subgraphs

__all__ = [
    "PARTITIONERS",
    "Partitioner",
    "add_landmarks",
    "build_subgraphs",
    "check_cap",
    "measure_quality",
    "share_kept",
    "warm_up",
]

Partitioner = Callable[[AlignmentTask, MergedGraph, SeedsFrom, int, int], Partition]


def _metis(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """METIS on the merged graph: with landmarks this is the paper's CSG."""
    return merged_metis(graph, num_parts, seed)


def _cps(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LargeEA's partition; it merges in its own way."""
    return cps(task, task.seeds(seeds_from), num_parts, seed)


def _sbp(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LIME's partition; it merges in its own way."""
    return sbp(task, task.seeds(seeds_from), num_parts, seed)


def warm_up() -> None:
    """Divide a graph of two nodes, so that compiled code is loaded before it is needed."""
    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(1, 1, 0, 0, np.empty((0, 3)), np.array([(0, 1)]), none, none)
    graph = MergedGraph(np.array([0, 1]), np.zeros(3), np.empty(0), np.empty(0), np.ones(2))
    # A program that ends meanwhile, with an error in its input say, starts no more threads: that is no failure of ours.
    with contextlib.suppress(RuntimeError):
        parts = Partition.from_labels(np.array([0, 0]), 1)
        cover = add_landmarks(graph, parts, task.train_links, cap=3, num_threads=1)
        build_subgraphs(task, task.train_links, cover)
        measure_quality(task, graph, cover)


# Landmarks go over the result of any of these.
PARTITIONERS: dict[str, Partitioner] = {"metis": _metis, "cps": _cps, "sbp": _sbp}
