"""Figures of a run with their protocol, costs, and the record of an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "Cost",
    "Evaluation",
    "PairFigures",
    "Protocol",
    "RankFigures",
    "ReliabilityRow",
    "UpdateCost",
    "UpdatePairs",
    "UpdateReport",
]

Sides = tuple[int, int]  # of the source, of the target


@dataclass(frozen=True)
class Protocol:
    """What every figure of a run was measured under."""

    seeds_from: str
    num_seeds: int
    num_anchors: int
    seed_share: float | None
    fold: int
    num_test_links: int
    num_ranked_links: int | None
    gold: str
    ideal_candidates: str
    real_candidates: str
    channels: tuple[str, ...]
    csls_k: int
    transport_temperature: float
    transport_iterations: int
    evidence_weights: Mapping[str, float]
    rounds: int
    seed: int


@dataclass(frozen=True)
class RankFigures:
    """Measures of ranks by name, seen from either side and of both together; None where there was nothing to rank."""

    source_to_target: Mapping[str, float | None]
    target_to_source: Mapping[str, float | None]
    mean: Mapping[str, float | None]


@dataclass(frozen=True)
class PairFigures:
    """How good a set of pairs is by known links; a share of nothing is None.

    `precision` and `f1` count every pair that is no known link as wrong: right where the links are complete.
    `partial_precision` and `partial_f1` judge only the `judged` pairs that touch a known link: right where the links
    are a part of the truth. `recall` is the same for both.
    """

    precision: float | None
    recall: float | None
    f1: float | None
    pairs: int
    partial_precision: float | None
    partial_f1: float | None
    judged: int


@dataclass(frozen=True)
class ReliabilityRow:
    """Pairs with a confidence from `low` to `high`: how many, their mean confidence, and the share that is right.

    The share is that of the `judged` pairs, whose truth is known.
    """

    low: float
    high: float
    pairs: int
    confidence: float | None
    right: float | None
    judged: int = 0


@dataclass(frozen=True)
class Cost:
    """What a stage took."""

    seconds: float
    peak_memory_mb: float
    peak_gpu_mb: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """Figures of both settings by the test links; None where there are none.

    `ideal` has a row for each scoring, `real` for each way to select pairs; `test_kept` is the share of the test links
    that lie in one subgraph.
    """

    protocol: Protocol
    ideal: Mapping[str, RankFigures] | None
    real: Mapping[str, PairFigures] | None
    reliability: tuple[ReliabilityRow, ...] | None
    test_kept: float | None


@dataclass(frozen=True)
class UpdateCost:
    """How many of `links` valid links are found with trained rows, and with a row as if one end had come later.

    The ends that are hidden lie on `hidden_sides`; `candidates` links compete.
    """

    hidden_sides: tuple[str, ...]
    candidates: int
    links: int
    found_trained: int
    found_added: int

    @property
    def ratio(self) -> float | None:
        """How often an added entity is found, against a trained one."""
        return self.found_added / self.found_trained if self.found_trained else None


@dataclass(frozen=True)
class UpdatePairs:
    """Results of the new entities: accepted pairs that touch one, and test links that do."""

    pairs: int
    pairs_both_new: int
    test_links: int
    test_links_found: int


@dataclass(frozen=True)
class UpdateReport:
    """What was added to `run`, (source, target); entities training did not see, by how they came to their rows."""

    run: str
    entities: Sides
    relations: Sides
    triples: Sides
    seeds: int
    embedded: Sides
    beside_known: Sides
    not_reached: Sides
    known_neighbors: float
    formerly_isolated: int
    cost: UpdateCost | None
    pairs: UpdatePairs | None = None
