"""The stage `landmarks`: entities that bridge the parts are recalled into them."""

from __future__ import annotations

from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, DivisionPlan, MergedGraph, Partition
from largegnn.division.landmarks import add_landmarks
from largegnn.settings import LandmarkSettings, ProtocolSettings

__all__ = ["LandmarksOutcome", "Recalled", "landmarks"]


@dataclass(frozen=True)
class LandmarksOutcome:
    """How many landmarks were recalled into all parts together."""

    num_landmarks: int


@dataclass(frozen=True)
class Recalled:
    """Which entities are in which subgraph."""

    membership: Partition
    outcome: LandmarksOutcome


def landmarks(
    task: AlignmentTask,
    merged: MergedGraph,
    parts: Partition,
    plan: DivisionPlan,
    protocol: ProtocolSettings,
    landmarks: LandmarkSettings,
) -> Recalled:
    """Fill every part up to the cap with the landmarks worth most to it; switched off, the parts stay as they are."""
    if not landmarks.enabled:
        return Recalled(parts, LandmarksOutcome(0))
    membership = add_landmarks(
        merged,
        parts,
        task.seeds(protocol.seeds_from),
        plan.cap,
        eta=landmarks.eta,
        decay=landmarks.decay,
        hops=landmarks.hops,
    )
    return Recalled(membership, LandmarksOutcome(len(membership.entities) - len(parts.entities)))
