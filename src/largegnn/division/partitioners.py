"""The partitioners by name: what a partitioner is, and ours (section 4.1 of the paper).

In: the task, the merged graph, which links are seeds, the number of parts, a random seed. Out: a `Partition` of the
entities. Landmarks go over the result of any of them. The table of names is `largegnn.seams.tables.PARTITIONERS`.
"""

from __future__ import annotations

from typing import Protocol

from largegnn.artifacts import AlignmentTask, MergedGraph, Partition, SeedsFrom

__all__ = ["Partitioner", "cps", "metis", "sbp"]


class Partitioner(Protocol):
    """Divides the entities of both graphs into `num_parts` parts, none of them empty, every entity in at least one."""

    def __call__(
        self, task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int, /
    ) -> Partition:
        """The parts; the same `seed` gives the same parts."""


def metis(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """METIS on the merged graph: with landmarks this is the paper's CSG."""
    from largegnn.division.metis import merged_metis

    return merged_metis(graph, num_parts, seed)


def cps(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LargeEA's partition; it merges in its own way."""
    from largegnn.division.cps import cps as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)


def sbp(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LIME's partition; it merges in its own way."""
    from largegnn.division.sbp import sbp as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)
