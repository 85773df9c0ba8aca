"""The partitioners by name: what a partitioner is, and ours (section 4.1 of the paper).

In: the task, the merged graph, which links are seeds, the number of parts, a random seed. Out: a `Partition` of the
entities. Landmarks go over the result of any of them. The table of names is `largegnn.seams.tables.PARTITIONERS`.
"""

from __future__ import annotations

import logging
from typing import Protocol

from largegnn.artifacts import AlignmentTask, MergedGraph, Partition, SeedsFrom
from largegnn.machine.devices import num_processors

__all__ = ["Partitioner", "auto", "cps", "kaminpar", "kaminpar_parallel", "metis", "sbp"]

_log = logging.getLogger(__name__)

# Edges of the merged graph up to which KaMinPar's higher effort takes no longer than METIS.
_SMALL_GRAPH_EDGES = 1_000_000


class Partitioner(Protocol):
    """Divides the entities of both graphs into `num_parts` parts, none of them empty, every entity in at least one."""

    def __call__(
        self, task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int, /
    ) -> Partition:
        """The parts; the same `seed` gives the same parts."""


def auto(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """KaMinPar where it is installed, else METIS."""
    from largegnn.division.kaminpar import is_installed

    divide = kaminpar if is_installed() else metis
    _log.info("partition: the merged graph is divided by %s", divide.__name__)
    return divide(task, graph, seeds_from, num_parts, seed)


def metis(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """METIS on the merged graph: with landmarks this is the paper's CSG."""
    from largegnn.division.metis import merged_metis

    return merged_metis(graph, num_parts, seed)


def kaminpar(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """KaMinPar on the merged graph with one thread, so that a seed gives the same parts."""
    return _kaminpar(graph, num_parts, seed, num_threads=1)


def kaminpar_parallel(
    task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int
) -> Partition:
    """KaMinPar on the merged graph with a thread for each processor: faster, and the parts differ from run to run."""
    return _kaminpar(graph, num_parts, seed, num_threads=num_processors())


def cps(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LargeEA's partition; it merges in its own way."""
    from largegnn.division.cps import cps as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)


def sbp(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """LIME's partition; it merges in its own way."""
    from largegnn.division.sbp import sbp as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)


def _kaminpar(graph: MergedGraph, num_parts: int, seed: int, *, num_threads: int) -> Partition:
    """KaMinPar with the effort that suits the size; METIS, with a warning, where KaMinPar is not installed."""
    from largegnn.division.kaminpar import Effort, is_installed, merged_kaminpar
    from largegnn.division.metis import merged_metis

    if not is_installed():
        _log.warning("partition: KaMinPar is not installed; METIS divides instead. To install it: pip install kaminpar")
        return merged_metis(graph, num_parts, seed)
    effort: Effort = "eco" if graph.num_edges <= _SMALL_GRAPH_EDGES else "default"
    return merged_kaminpar(graph, num_parts, seed, effort=effort, num_threads=num_threads)
