"""Define the figures of a run with their protocol, the costs of its stages, and the report of an update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "AddedEntityRecall",
    "Cost",
    "Evaluation",
    "PairFigures",
    "Protocol",
    "RankFigures",
    "ReliabilityRow",
    "UpdatePairs",
    "UpdateReport",
]

Sides = tuple[int, int]  # a number for the source and a number for the target


@dataclass(frozen=True)
class Protocol:
    """The conditions under which the figures of a run were measured."""

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
    """Measures of ranks by name, for both directions and their mean; None if there was nothing to rank."""

    source_to_target: Mapping[str, float | None]
    target_to_source: Mapping[str, float | None]
    mean: Mapping[str, float | None]


@dataclass(frozen=True)
class PairFigures:
    """Precision, recall and F1 of a set of pairs by known links; None if there is nothing to count.

    `precision` and `f1` count every pair that is not a known link as wrong, which is correct if the links are complete.
    `partial_precision` and `partial_f1` count only the `judged` pairs that touch a known link, which is correct if the
    links are a part of the truth. `recall` is the same in both cases.
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
    """The pairs with a confidence from `low` to `high`: their number, mean confidence, and the share that is right.

    `right` is the share of the `judged` pairs, for which it is known whether they are right.
    """

    low: float
    high: float
    pairs: int
    confidence: float | None
    right: float | None
    judged: int = 0


@dataclass(frozen=True)
class Cost:
    """The time and peak memory of a stage."""

    seconds: float
    peak_memory_mb: float
    peak_gpu_mb: float | None = None


@dataclass(frozen=True)
class Evaluation:
    """The figures of both settings by the test links; None if there are no test links.

    `ideal` has a row for each scoring, `real` a row for each selection of pairs; `test_kept` is the share of test links
    whose two entities share a subgraph.
    """

    protocol: Protocol
    ideal: Mapping[str, RankFigures] | None
    real: Mapping[str, PairFigures] | None
    reliability: tuple[ReliabilityRow, ...] | None
    test_kept: float | None


@dataclass(frozen=True)
class AddedEntityRecall:
    """The number of `links` valid links that are found with trained rows, and with one end treated as a new entity.

    For `found_added` the row of one end of each link, alternately on the `hidden_sides`, is computed as for an added
    entity. The right partner is ranked among the ends of `candidates` links.
    """

    hidden_sides: tuple[str, ...]
    candidates: int
    links: int
    found_trained: int
    found_added: int

    @property
    def ratio(self) -> float | None:
        """The links found for added entities, divided by those found for trained ones; None if there are none."""
        return self.found_added / self.found_trained if self.found_trained else None


@dataclass(frozen=True)
class UpdatePairs:
    """The accepted pairs and the test links that touch a new entity."""

    pairs: int
    pairs_both_new: int
    test_links: int
    test_links_found: int


@dataclass(frozen=True)
class UpdateReport:
    """The numbers of what was added to `run`, and of the new entities by how their rows were computed.

    `embedded` entities got a row from their neighbours, `beside_known` of them next to known entities; the
    `not_reached` entities have no row, because no path leads to a known entity.
    """

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
    cost: AddedEntityRecall | None
    pairs: UpdatePairs | None = None
