"""How large the subgraphs of a graph should be, and what memory a run over them needs.

Sizes follow the paper's three settings (30 thousand entities: subgraphs of 7,500; 200 thousand: 25,000; 2.4 million:
90,000), which lie close to one power law, and are lowered where the memory at hand asks for it. The memory figures are
estimates from the shapes of the arrays, meant for the order of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from largegnn.artifacts import DivisionPlan
from largegnn.errors import InputError

__all__ = ["SizeEstimate", "estimate_size", "plan_division"]

_REFERENCE_ENTITIES, _REFERENCE_CAP, _EXPONENT = 30_000, 7_500, 0.57
_ROOM_FOR_LANDMARKS = 1.25  # the paper's caps leave about a quarter beyond an even share
_DIMENSION, _OUTPUT_DIMENSION = 128, 768
_FLOAT = 4
# Forward and backward pass keep about this many copies of a subgraph's output rows alive.
_OUTPUT_COPIES = 8
_SMALLEST_CAP = 1_000
_IMBALANCE = 1.03  # METIS lets a part be this much larger than an even share
_MB = 1024 * 1024


@dataclass(frozen=True)
class SizeEstimate:
    """A sensible division of a graph, and the memory of the stages that need most."""

    num_parts: int
    cap: int
    graph_mb: float
    tables_mb: float
    subgraph_mb: float
    embeddings_mb: float
    limited_by_memory: bool

    @property
    def training_mb(self) -> float:
        """Memory while training: the tables, and one subgraph at a time."""
        return self.tables_mb + self.subgraph_mb


def estimate_size(num_entities: int, num_triples: int, memory_mb: float | None = None) -> SizeEstimate:
    """A number of subgraphs and a cap on their size for a graph, within a given memory if there is one."""
    cap = round(_REFERENCE_CAP * (max(num_entities, 1) / _REFERENCE_ENTITIES) ** _EXPONENT)
    cap = max(min(cap, num_entities), min(_SMALLEST_CAP, num_entities), 1)
    # Values and optimiser state of one row per entity.
    tables_mb = 2 * num_entities * _DIMENSION * _FLOAT / _MB
    entity_mb = _OUTPUT_COPIES * _OUTPUT_DIMENSION * _FLOAT / _MB
    limited = False
    if memory_mb is not None and tables_mb + cap * entity_mb > memory_mb:
        fitting = int(max(memory_mb - tables_mb, 0) / entity_mb)
        cap, limited = max(min(cap, fitting), min(_SMALLEST_CAP, num_entities), 1), True
    return SizeEstimate(
        num_parts=_num_parts(num_entities, cap),
        cap=cap,
        graph_mb=(num_triples * (3 * 4 + 2 * 8) + num_entities * 32) / _MB,
        tables_mb=tables_mb,
        subgraph_mb=cap * entity_mb,
        embeddings_mb=num_entities * _OUTPUT_DIMENSION * _FLOAT / _MB,
        limited_by_memory=limited,
    )


def _num_parts(num_entities: int, cap: int) -> int:
    """As many parts as leave room for landmarks below the cap; one if everything fits."""
    return 1 if cap >= num_entities else min(math.ceil(_ROOM_FOR_LANDMARKS * num_entities / cap), num_entities)


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
        _refuse_small_cap(num_entities, parts, cap)
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


def _refuse_small_cap(num_entities: int, parts: int, cap: int) -> None:
    if cap * parts >= num_entities:
        return
    raise InputError(
        f"{parts} parts of at most {cap:,} entities cannot hold {num_entities:,}",
        expected=f"landmarks.cap of at least {math.ceil(_IMBALANCE * num_entities / parts):,} "
        f"or division.parts of at least {math.ceil(_IMBALANCE * num_entities / cap):,}",
        fix="change one of the two, or leave one out",
    )
