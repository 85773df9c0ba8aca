"""Divide both graphs into subgraphs that fit in memory: merge, partition, landmarks, subgraphs."""

from __future__ import annotations

import contextlib

__all__ = ["warm_up"]


def warm_up() -> None:
    """Divide a graph of two nodes, so that the compiled functions are loaded before they are needed."""
    import numpy as np

    from largegnn.artifacts import AlignmentTask, MergedGraph, Partition
    from largegnn.division.landmarks import add_landmarks
    from largegnn.division.subgraphs import build_subgraphs, measure_quality

    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(1, 1, 0, 0, np.empty((0, 3)), np.array([(0, 1)]), none, none)
    graph = MergedGraph(np.array([0, 1]), np.zeros(3), np.empty(0), np.empty(0), np.ones(2))
    # If the program ends meanwhile, for example with an input error, Python refuses to start threads: not a failure.
    with contextlib.suppress(RuntimeError):
        cover = add_landmarks(graph, Partition.from_labels(np.array([0, 0]), 1), task.train_links, cap=3)
        build_subgraphs(task, task.train_links, cover)
        measure_quality(task, graph, cover)
