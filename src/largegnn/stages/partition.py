"""The stage `partition`: the merged graph is divided into parts, as many as the plan says."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, DivisionPlan, MergedGraph, Partition
from largegnn.planning.plan import plan_for
from largegnn.seams.tables import PARTITIONERS
from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings

__all__ = ["Partitioned", "partition"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Partitioned:
    """Disjoint parts, and the plan they follow."""

    parts: Partition
    outcome: DivisionPlan


def partition(
    task: AlignmentTask,
    merged: MergedGraph,
    protocol: ProtocolSettings,
    division: DivisionSettings,
    landmarks: LandmarkSettings,
    seed: int,
    device: str,
) -> Partitioned:
    """Divide the merged graph with the partitioner of the settings."""
    plan = plan_for(task, division, landmarks, device)
    _log.info("partition: %d parts, cap %s: %s", plan.num_parts, f"{plan.cap:,}", plan.reason)
    partitioner = PARTITIONERS[division.partitioner]
    parts = partitioner(task, merged, protocol.seeds_from, plan.num_parts, seed)
    if landmarks.enabled:
        _warn_of_cap(parts, plan.cap)
    return Partitioned(parts, plan)


def _warn_of_cap(parts: Partition, cap: int) -> None:
    """Say that parts have no room for landmarks: METIS may exceed an even share by a little, SBP does so by far."""
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
