"""Divide the merged graph into parts with one of the partitioners (section 4.1 of the paper).

In: the task, the merged graph, the plan, which links are seeds, a random seed. Out: a `Partition` of the entities.
Landmarks can be added to the result of any partitioner. The table `largegnn.parts.PARTITIONERS` lists them by name.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from largegnn.artifacts import AlignmentTask, DivisionPlan, MergedGraph, Partition, SeedsFrom
from largegnn.machine.devices import num_processors
from largegnn.parts import PARTITIONERS

if TYPE_CHECKING:
    from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings

__all__ = [
    "PartitionResult",
    "Partitioner",
    "auto",
    "cps",
    "kaminpar",
    "kaminpar_parallel",
    "metis",
    "partition",
    "sbp",
]

_log = logging.getLogger(__name__)

# Edges of the merged graph up to which KaMinPar with higher effort is not slower than METIS.
_MAX_SMALL_EDGES = 1_000_000


@dataclass(frozen=True)
class PartitionResult:
    """The parts, which overlap only with SBP, and the plan they follow."""

    parts: Partition
    outcome: DivisionPlan


def partition(
    task: AlignmentTask,
    merged: MergedGraph,
    protocol: ProtocolSettings,
    division: DivisionSettings,
    landmarks: LandmarkSettings,
    seed: int,
    *,
    plan: DivisionPlan,
) -> PartitionResult:
    """Divide the merged graph with the partitioner of the settings, as the plan says."""
    _log.info("partition: %d parts, cap %s: %s", plan.num_parts, f"{plan.cap:,}", plan.reason)
    parts = PARTITIONERS[division.partitioner](task, merged, protocol.seeds_from, plan.num_parts, seed)
    if landmarks.enabled:
        _warn_of_cap(parts, plan.cap)
    return PartitionResult(parts, plan)


def _warn_of_cap(parts: Partition, cap: int) -> None:
    """Warn of parts that exceed the cap and so get no landmarks: slightly with METIS, by far with SBP."""
    num_larger = int((parts.sizes > cap).sum())
    if num_larger:
        _log.warning(
            "partition: %d of %d parts are larger than the cap of %s entities, the largest has %s: they get no "
            "landmarks. Raise landmarks.cap, or make more parts",
            num_larger,
            parts.num_parts,
            f"{cap:,}",
            f"{int(parts.sizes.max()):,}",
        )


class Partitioner(Protocol):
    """Divides the entities of both graphs into `num_parts` parts, none of them empty, every entity in at least one."""

    def __call__(
        self, task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int, /
    ) -> Partition:
        """The parts; the same `seed` gives the same parts."""


def auto(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """KaMinPar if it is installed, otherwise METIS."""
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
    """KaMinPar on the merged graph with a thread per processor: faster, but the parts differ from run to run."""
    return _kaminpar(graph, num_parts, seed, num_threads=num_processors())


def cps(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """CPS, the partitioner of LargeEA; it does not use the merged graph."""
    from largegnn.division.cps import cps as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)


def sbp(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, num_parts: int, seed: int) -> Partition:
    """SBP, the partitioner of LIME; it does not use the merged graph."""
    from largegnn.division.cps import sbp as divide

    return divide(task, task.seeds(seeds_from), num_parts, seed)


def _kaminpar(graph: MergedGraph, num_parts: int, seed: int, *, num_threads: int) -> Partition:
    """Run KaMinPar with an effort that depends on the size; if it is not installed, warn and run METIS."""
    from largegnn.division.kaminpar import Effort, is_installed, merged_kaminpar
    from largegnn.division.metis import merged_metis

    if not is_installed():
        _log.warning("partition: KaMinPar is not installed; METIS divides instead. To install it: pip install kaminpar")
        return merged_metis(graph, num_parts, seed)
    effort: Effort = "eco" if graph.num_edges <= _MAX_SMALL_EDGES else "default"
    return merged_kaminpar(graph, num_parts, seed, effort=effort, num_threads=num_threads)
