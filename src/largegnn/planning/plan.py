"""Decide before a run how its graphs are divided into subgraphs, and warn if there are too few seeds.

In: sizes of the task, settings and the device. Out: a `DivisionPlan`, a warning.
The sizes of subgraphs follow the paper's three settings (30 thousand entities: subgraphs of 7,500; 200 thousand:
25,000; 2.4 million: 90,000), which lie close to a power law, and are reduced if memory requires it. All decisions
depend on sizes and never on measured time, so that an interrupted run resumes with the same divisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, DivisionPlan, SeedsFrom
from largegnn.errors import InputError
from largegnn.machine.devices import memory_budget
from largegnn.matching.confidence.calibration import MIN_VALID_LINKS
from largegnn.settings import DivisionSettings, LandmarkSettings

__all__ = [
    "MIN_SEEDS",
    "SizeEstimate",
    "estimate_size",
    "plan_division",
    "plan_for",
    "seeds_warning",
]

_REFERENCE_ENTITIES, _REFERENCE_CAP, _EXPONENT = 30_000, 7_500, 0.57
_LANDMARK_FACTOR = 1.25  # the paper's caps are about a quarter above an even share, for landmarks
_MIN_CAP = 1_000
_IMBALANCE = 1.03  # METIS makes parts at most this many times as large as an even share
# Bytes of an entity: 128 numbers and their optimiser state; an output vector of 768 numbers, of which the forward and
# backward passes hold about 8 copies.
_TABLE_BYTES, _OUTPUT_BYTES, _OUTPUT_COPIES = 2 * 128 * 4, 768 * 4, 8
_MB = 1024 * 1024

# With fewer seeds most pairs of a run are wrong.
MIN_SEEDS = 50


@dataclass(frozen=True)
class SizeEstimate:
    """A sensible division of a graph, and the memory it needs; `cap` is the maximum size of a subgraph."""

    num_parts: int
    cap: int
    limited_by_memory: bool
    graph_mb: float
    training_mb: float
    embeddings_mb: float


def plan_for(task: AlignmentTask, division: DivisionSettings, landmarks: LandmarkSettings, device: str) -> DivisionPlan:
    """Choose the number of parts and the cap, where the settings are `auto` from the sizes and the device."""
    parts = None if division.parts == "auto" else division.parts
    cap = landmarks.cap if landmarks.enabled and landmarks.cap != "auto" else None
    if parts is not None or cap is not None:
        return plan_division(task.num_entities, len(task.triples), parts, cap)
    budget = memory_budget(device)
    return plan_division(task.num_entities, len(task.triples), None, None, budget.mb, budget.owner)


def plan_division(
    num_entities: int,
    num_triples: int,
    parts: int | None,
    cap: int | None,
    memory_mb: float | None = None,
    memory_owner: str = "no limit",
) -> DivisionPlan:
    """Choose the number of parts and the cap where they are None, and refuse impossible values."""
    if parts is not None and parts > num_entities:
        raise InputError(
            "there are more parts than entities",
            expected=f"division.parts from 1 to {num_entities}",
            found=str(parts),
        )
    if parts is not None and cap is not None:
        if cap * parts < num_entities:
            raise InputError(
                f"{parts} parts of at most {cap:,} entities cannot hold {num_entities:,}",
                expected=f"landmarks.cap of at least {math.ceil(_IMBALANCE * num_entities / parts):,} "
                f"or division.parts of at least {math.ceil(_IMBALANCE * num_entities / cap):,}",
                fix="change one of the two, or leave one out",
            )
        return DivisionPlan(parts, cap, "both given")
    if parts is not None:
        even_cap = min(math.ceil(_LANDMARK_FACTOR * num_entities / parts), num_entities)
        return DivisionPlan(parts, even_cap, "parts given; the cap is a quarter over an even share")
    if cap is not None:
        return DivisionPlan(
            _num_parts(num_entities, cap), cap, "cap given; as many parts as leave a fifth of it for landmarks"
        )
    size = estimate_size(num_entities, num_triples, memory_mb)
    limited = f"lowered to fit {memory_owner}" if size.limited_by_memory else f"well within {memory_owner}"
    return DivisionPlan(
        size.num_parts,
        size.cap,
        f"size law for {num_entities:,} entities, {limited} (training: {size.training_mb:,.0f} MB)",
    )


def estimate_size(num_entities: int, num_triples: int, memory_mb: float | None = None) -> SizeEstimate:
    """Choose the number of subgraphs and a cap on their size, within a limit of memory if there is one."""
    min_cap = max(min(_MIN_CAP, num_entities), 1)
    cap = round(_REFERENCE_CAP * (max(num_entities, 1) / _REFERENCE_ENTITIES) ** _EXPONENT)
    cap = max(min(cap, num_entities), min_cap)
    tables_mb = num_entities * _TABLE_BYTES / _MB
    entity_mb = _OUTPUT_COPIES * _OUTPUT_BYTES / _MB
    limited = memory_mb is not None and tables_mb + cap * entity_mb > memory_mb
    if memory_mb is not None and limited:
        cap = max(min(cap, int(max(memory_mb - tables_mb, 0) / entity_mb)), min_cap)
    return SizeEstimate(
        num_parts=_num_parts(num_entities, cap),
        cap=cap,
        limited_by_memory=limited,
        graph_mb=(num_triples * (3 * 4 + 2 * 8) + num_entities * 32) / _MB,
        training_mb=tables_mb + cap * entity_mb,  # the tables, and one subgraph at a time
        embeddings_mb=num_entities * _OUTPUT_BYTES / _MB,
    )


def _num_parts(num_entities: int, cap: int) -> int:
    """Return the number of parts that leaves a fifth of the cap for landmarks; 1 if all entities fit."""
    return 1 if cap >= num_entities else min(math.ceil(_LANDMARK_FACTOR * num_entities / cap), num_entities)


def seeds_warning(task: AlignmentTask, seeds_from: SeedsFrom = "train") -> str | None:
    """Return a warning about too few seeds or valid links, to be shown before training; None if there are enough."""
    num_seeds, num_valid = len(task.seeds(seeds_from)), len(task.held_out(seeds_from))
    if not num_seeds:
        return "there are no seeds: names and values have to provide the first pairs"
    if num_seeds < MIN_SEEDS:
        return (
            f"there are {num_seeds:,} seeds to train on: with fewer than {MIN_SEEDS} most pairs will be wrong. "
            "Give more seeds, or check every pair"
        )
    # With anchors, the confidence is estimated from decoys and needs no valid links.
    if num_valid < MIN_VALID_LINKS and not len(task.anchors):
        fix = "Use only train links as seeds" if seeds_from != "train" else "Give more seeds, or more valid links"
        return (
            f"there are {num_valid:,} valid links that are not seeds: with fewer than {MIN_VALID_LINKS} the result "
            f"is not calibrated, and pairs have a score but no confidence. {fix}"
        )
    return None
