"""Decide before a run how it divides its graphs, and whether it has seeds enough.

In: sizes of the task, settings and the device. Out: a `DivisionPlan`, a warning.
The sizes of subgraphs follow the paper's three settings (30 thousand entities: subgraphs of 7,500; 200 thousand:
25,000; 2.4 million: 90,000), which lie close to one power law, and are lowered where memory requires it. Everything
follows from sizes and never from a clock, so that an interrupted run resumes with the same divisions.
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
    "FEWEST_SEEDS",
    "SizeEstimate",
    "estimate_size",
    "plan_division",
    "plan_for",
    "seeds_warning",
]

_REFERENCE_ENTITIES, _REFERENCE_CAP, _EXPONENT = 30_000, 7_500, 0.57
_ROOM_FOR_LANDMARKS = 1.25  # the paper's caps leave about a quarter beyond an even share
_SMALLEST_CAP = 1_000
_IMBALANCE = 1.03  # METIS lets a part be this much larger than an even share
# Bytes of an entity: values and optimiser state of 128 numbers; the 768 of its output vector, of which the forward and
# the backward pass hold about 8 copies.
_TABLE_BYTES, _OUTPUT_BYTES, _OUTPUT_COPIES = 2 * 128 * 4, 768 * 4, 8
_MB = 1024 * 1024

# With fewer seeds most pairs of a run are wrong.
FEWEST_SEEDS = 50


@dataclass(frozen=True)
class SizeEstimate:
    """A sensible division of a graph, and the memory it needs."""

    num_parts: int
    cap: int
    limited_by_memory: bool
    graph_mb: float
    training_mb: float
    embeddings_mb: float


def plan_for(task: AlignmentTask, division: DivisionSettings, landmarks: LandmarkSettings, device: str) -> DivisionPlan:
    """Number of parts and cap, from the settings and, where they are `auto`, from the task and the device."""
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
    """Fill in what was not given (None), and refuse what cannot work before any work is done."""
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
        room = min(math.ceil(_ROOM_FOR_LANDMARKS * num_entities / parts), num_entities)
        return DivisionPlan(parts, room, "parts given; the cap is a quarter over an even share")
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
    """A number of subgraphs and a cap on their size for a graph, within a given memory if there is one."""
    smallest = max(min(_SMALLEST_CAP, num_entities), 1)
    cap = round(_REFERENCE_CAP * (max(num_entities, 1) / _REFERENCE_ENTITIES) ** _EXPONENT)
    cap = max(min(cap, num_entities), smallest)
    tables_mb = num_entities * _TABLE_BYTES / _MB
    entity_mb = _OUTPUT_COPIES * _OUTPUT_BYTES / _MB
    limited = memory_mb is not None and tables_mb + cap * entity_mb > memory_mb
    if memory_mb is not None and limited:
        cap = max(min(cap, int(max(memory_mb - tables_mb, 0) / entity_mb)), smallest)
    return SizeEstimate(
        num_parts=_num_parts(num_entities, cap),
        cap=cap,
        limited_by_memory=limited,
        graph_mb=(num_triples * (3 * 4 + 2 * 8) + num_entities * 32) / _MB,
        training_mb=tables_mb + cap * entity_mb,  # the tables, and one subgraph at a time
        embeddings_mb=num_entities * _OUTPUT_BYTES / _MB,
    )


def _num_parts(num_entities: int, cap: int) -> int:
    """As many parts as leave room for landmarks below the cap; one if everything fits."""
    return 1 if cap >= num_entities else min(math.ceil(_ROOM_FOR_LANDMARKS * num_entities / cap), num_entities)


def seeds_warning(task: AlignmentTask, seeds_from: SeedsFrom = "train") -> str | None:
    """A warning before training; None where there are seeds and valid links enough."""
    num_seeds, num_valid = len(task.seeds(seeds_from)), len(task.held_out(seeds_from))
    if not num_seeds:
        return "there are no seeds: names and values have to give pairs to start from"
    if num_seeds < FEWEST_SEEDS:
        return (
            f"there are {num_seeds:,} seeds to train on: with fewer than {FEWEST_SEEDS} most pairs will be wrong. "
            "Give more seeds, or check every pair"
        )
    # With anchors the confidence rests on decoys.
    if num_valid < MIN_VALID_LINKS and not len(task.anchors):
        fix = "Take train links alone as seeds" if seeds_from != "train" else "Give more seeds, or more valid links"
        return (
            f"there are {num_valid:,} valid links that are not seeds: with fewer than {MIN_VALID_LINKS} the result "
            f"is not calibrated, and pairs have a score but no confidence. {fix}"
        )
    return None
