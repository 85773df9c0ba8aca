"""Divide a `MergedGraph` into subgraphs that fit in memory.

The names below are imported on first use: METIS and the compiled loops take a moment.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from largegnn.division.landmarks import add_landmarks
    from largegnn.division.partition import Partitioner
    from largegnn.division.subgraphs import build_subgraphs, measure_quality, share_kept

__all__ = [
    "Partitioner",
    "add_landmarks",
    "build_subgraphs",
    "measure_quality",
    "share_kept",
    "warm_up",
]

_MODULES = {
    "Partitioner": "largegnn.division.partition",
    "add_landmarks": "largegnn.division.landmarks",
    "build_subgraphs": "largegnn.division.subgraphs",
    "measure_quality": "largegnn.division.subgraphs",
    "share_kept": "largegnn.division.subgraphs",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'largegnn.division' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def warm_up() -> None:
    """Divide a graph of two nodes, so that compiled code is loaded before it is needed."""
    import numpy as np

    from largegnn.artifacts import AlignmentTask, MergedGraph, Partition
    from largegnn.division.landmarks import add_landmarks
    from largegnn.division.subgraphs import build_subgraphs, measure_quality

    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(1, 1, 0, 0, np.empty((0, 3)), np.array([(0, 1)]), none, none)
    graph = MergedGraph(np.array([0, 1]), np.zeros(3), np.empty(0), np.empty(0), np.ones(2))
    # A program that ends during this, with an error in its input say, starts no more threads: that is not a failure.
    with contextlib.suppress(RuntimeError):
        cover = add_landmarks(graph, Partition.from_labels(np.array([0, 0]), 1), task.train_links, cap=3)
        build_subgraphs(task, task.train_links, cover)
        measure_quality(task, graph, cover)
