"""From a `MergedGraph` to subgraphs that fit in memory.

The names below are loaded when first used: METIS and the compiled loops take a moment.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from largegnn.division.landmarks import add_landmarks
    from largegnn.division.partitioners import Partitioner
    from largegnn.division.quality import measure_quality, share_kept
    from largegnn.division.subgraphs import build_subgraphs

__all__ = [
    "Partitioner",
    "add_landmarks",
    "build_subgraphs",
    "measure_quality",
    "share_kept",
    "warm_up",
]

_HOMES = {
    "Partitioner": "largegnn.division.partitioners",
    "add_landmarks": "largegnn.division.landmarks",
    "measure_quality": "largegnn.division.quality",
    "share_kept": "largegnn.division.quality",
    "build_subgraphs": "largegnn.division.subgraphs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'largegnn.division' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def warm_up() -> None:
    """Divide a graph of two nodes, so that compiled code is loaded before it is needed."""
    import numpy as np

    from largegnn.artifacts import AlignmentTask, MergedGraph, Partition
    from largegnn.division.landmarks import add_landmarks
    from largegnn.division.quality import measure_quality
    from largegnn.division.subgraphs import build_subgraphs

    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(1, 1, 0, 0, np.empty((0, 3)), np.array([(0, 1)]), none, none)
    graph = MergedGraph(np.array([0, 1]), np.zeros(3), np.empty(0), np.empty(0), np.ones(2))
    # A program that ends meanwhile, with an error in its input say, starts no more threads: that is no failure of ours.
    with contextlib.suppress(RuntimeError):
        parts = Partition.from_labels(np.array([0, 0]), 1)
        cover = add_landmarks(graph, parts, task.train_links, cap=3, num_threads=1)
        build_subgraphs(task, task.train_links, cover)
        measure_quality(task, graph, cover)
