"""The stage `subgraphs`: each part with its triples and seeds, and how much the division keeps."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from largegnn.artifacts import (
    AlignmentTask,
    DivisionPlan,
    MergedGraph,
    Partition,
    PartitionQuality,
    SubgraphSet,
)
from largegnn.division.quality import measure_quality
from largegnn.division.subgraphs import build_subgraphs
from largegnn.seams.tables import PARTITIONERS
from largegnn.settings import DivisionSettings, LandmarkSettings, ProtocolSettings
from largegnn.stages.landmarks import landmarks as recall_landmarks

__all__ = ["Divided", "divide_again", "subgraphs"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Divided:
    """The subgraphs, and how much of graphs and links they keep; test links are counted by `evaluate`."""

    subgraphs: SubgraphSet
    outcome: PartitionQuality


def subgraphs(
    task: AlignmentTask, merged: MergedGraph, parts: Partition, membership: Partition, protocol: ProtocolSettings
) -> Divided:
    """Cut the triples and seeds that lie wholly in one part."""
    # Measured here and not on demand, so that a finished division always says how good it is; beside the other work,
    # for both are compiled loops that hold no lock.
    with ThreadPoolExecutor(1) as pool:
        measured = pool.submit(measure_quality, task, merged, membership, parts)
        made = build_subgraphs(task, task.seeds(protocol.seeds_from), membership)
        quality = measured.result()
    if quality.num_uncovered:
        _log.warning("subgraphs: %s entities are in no subgraph", f"{quality.num_uncovered:,}")
    return Divided(made, quality)


def divide_again(
    task: AlignmentTask,
    merged: MergedGraph,
    plan: DivisionPlan,
    protocol: ProtocolSettings,
    division: DivisionSettings,
    landmarks: LandmarkSettings,
    seed: int,
) -> SubgraphSet:
    """Partition, landmarks and subgraphs by a plan that was made before: repartitioning, and self-training rounds."""
    # A part that METIS made larger than the cap gets no landmarks; the first division was checked against it.
    parts = PARTITIONERS[division.partitioner](task, merged, protocol.seeds_from, plan.num_parts, seed)
    membership = recall_landmarks(task, merged, parts, plan, protocol, landmarks).membership
    return build_subgraphs(task, task.seeds(protocol.seeds_from), membership)
