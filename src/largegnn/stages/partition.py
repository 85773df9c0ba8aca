"""The stage `partition`: the merged graph is divided into parts, as many as the plan says."""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, MergedGraph
from largegnn.division.partition import PartitionResult
from largegnn.division.partition import partition as partition_graph
from largegnn.planning.division_plan import plan_for
from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings

__all__ = ["PartitionResult", "partition"]


def partition(
    task: AlignmentTask,
    merged: MergedGraph,
    protocol: ProtocolSettings,
    division: DivisionSettings,
    landmarks: LandmarkSettings,
    seed: int,
    device: str,
) -> PartitionResult:
    """Plan the parts, and divide the merged graph."""
    plan = plan_for(task, division, landmarks, device)
    return partition_graph(task, merged, plan, protocol, division, landmarks, seed)
