"""The stage `literals`: names and values become candidate pairs with evidence and, without seeds, pairs to start from.

In: the literals of both graphs, the triples, the names of the entities. Out: candidates with the columns `name`,
`text`, `neighbors`, `agreement`, `contradiction` and `literal`, their sum; anchors where seeds are missing; and what
was learnt on the way: what predicates hold, which answers to which, how all was weighed.
Without the channel `literals` nothing is looked at, and nothing is made.
Cost: linear in the literals (see the room `literals`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray, TaskNames, are_among
from largegnn.artifacts.literal_evidence import LiteralEvidence
from largegnn.artifacts.literals import Literals
from largegnn.errors import InputError
from largegnn.literals.duplicates import find_duplicates
from largegnn.literals.encoders import encode_texts
from largegnn.literals.profiles import PredicateProfile, profile_predicates
from largegnn.literals.texts import (
    EntityTexts,
    class_relations,
    identifier_names,
    neighbor_texts,
    texts_of_side,
    written_texts,
)
from largegnn.literals.values_evidence import Correspondence, SideValues, learn_correspondences, value_evidence
from largegnn.settings import CompareSettings, ProtocolSettings

if TYPE_CHECKING:
    from largegnn.literals.candidates import SideTexts

__all__ = ["FEWEST_SEEDS", "Compared", "LiteralsOutcome", "literals"]

_log = logging.getLogger(__name__)
FEWEST_SEEDS = 200  # fewer given seeds than this are joined by anchors
_FEWEST_ANCHORS = 10
_START = {"name": 1.0, "text": 1.0, "neighbors": 0.5, "meaning": 1.0}  # weights of the views before any is learnt
_NEAREST = 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LiteralsOutcome:
    """What was found out about the literals; empty where the channel is off.

    `identifiers` says for either side whether names were taken from IRIs, `weights` how the views of a pair were
    weighed (they add up to 1); `expected_right` is the share of the anchors that should be right.
    """

    source_profiles: tuple[PredicateProfile, ...] = ()
    target_profiles: tuple[PredicateProfile, ...] = ()
    identifiers: tuple[bool, bool] = (False, False)
    correspondences: tuple[Correspondence, ...] = ()
    weights: Mapping[str, float] | None = None
    num_candidates: int = 0
    num_anchors: int = 0
    expected_right: float | None = None
    num_duplicates: int = 0


@dataclass(frozen=True)
class Compared:
    """Candidates by names and values."""

    literal_evidence: LiteralEvidence
    outcome: LiteralsOutcome


def literals(
    task: AlignmentTask,
    names: TaskNames,
    literals: Literals,
    channels: tuple[str, ...],
    protocol: ProtocolSettings,
    compare: CompareSettings,
    seed: int,
) -> Compared:
    """Compare names and values, where the channel is on."""
    from largegnn.literals.candidates import literal_candidates
    from largegnn.matching.evidence_weights import localised, sure_edges

    seeds = task.seeds(protocol.seeds_from)
    if "literals" not in channels:
        if not len(seeds):
            raise _nothing_to_start_from("the channel literals is off")
        return Compared(LiteralEvidence.empty(), LiteralsOutcome())
    sides = [_Side(task, names, literals, side, compare, seed) for side in (0, 1)]
    graph = literal_candidates(sides[0].texts, sides[1].texts, compare.k, _meanings(sides, compare))
    # What reviewers chose to look at is no sample of the links: nothing is learnt from it about all others.
    given = seeds[~are_among(seeds, task.reviewed)]
    weights = _weights(graph, given, seed)
    similar = _views(graph) @ weights
    sure = given if len(given) >= FEWEST_SEEDS else graph.pairs(sure_edges(graph, localised(graph, similar, _NEAREST)))
    values = (sides[0].values(), sides[1].values())
    correspondences, numbers = learn_correspondences(*values, sure, seed)
    ends = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    agreement, contradiction = value_evidence(*values, correspondences, numbers, *ends)
    literal = np.maximum(similar + compare.odds_weight * (agreement - contradiction), 0.0).astype(np.float32)
    graph = graph.with_evidence(agreement=agreement, contradiction=contradiction, literal=literal)
    # Forbidden pairs go last: without them, what is left would look surer, or less sure, than it is.
    anchors, expected = _anchors(graph, len(given))
    anchors = anchors[~are_among(anchors, task.forbidden)]
    graph = graph.without(task.forbidden)
    if not len(seeds) and len(anchors) < _FEWEST_ANCHORS:
        raise _nothing_to_start_from(f"{len(anchors)} pairs are each other's clear best by names and values")
    duplicates = np.concatenate(
        [find_duplicates(side.texts.texts, own) for side, own in zip(sides, values, strict=True)]
    )
    outcome = LiteralsOutcome(
        source_profiles=sides[0].profiles,
        target_profiles=sides[1].profiles,
        identifiers=(sides[0].has_identifiers, sides[1].has_identifiers),
        correspondences=tuple(correspondences),
        weights=dict(zip(_views_of(graph), weights.tolist(), strict=True)),
        num_candidates=len(graph),
        num_anchors=len(anchors),
        expected_right=expected,
        num_duplicates=len(duplicates),
    )
    if len(anchors):
        _log.info("literals: %s anchors, of which %.3f should be right", f"{len(anchors):,}", expected)
    return Compared(LiteralEvidence.of(graph, anchors, duplicates), outcome)


class _Side:
    """One graph: what its predicates hold, and the texts of its entities."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, side: int, compare: CompareSettings, seed: int
    ) -> None:
        split, at = task.num_source_entities, int(np.searchsorted(literals.entities, task.num_source_entities))
        self._first = split * side
        self._count = (split, task.num_target_entities)[side]
        self._rows = (slice(0, at), slice(at, len(literals)))[side]
        self._literals, self._comparators = literals, compare.comparators
        self._profiles = profile_predicates(literals, self._rows, self._count, seed)
        identifiers: dict[int, str] = {}
        if compare.identifiers != "off":
            identifiers = identifier_names(names.entities, self._first, self._count, seed)
        self.has_identifiers, self._identifiers = bool(identifiers), identifiers
        triples = task.triples[: task.num_source_triples] if side == 0 else task.triples[task.num_source_triples :]
        texts = texts_of_side(literals, self._rows, self._profiles, identifiers)
        self.texts = _with_neighbors(texts, triples)

    @property
    def profiles(self) -> tuple[PredicateProfile, ...]:
        """What each predicate holds."""
        return tuple(self._profiles.values())

    def written(self) -> list[str]:
        """What each entity with a text says of itself, as it was written."""
        how = (self._literals, self._rows, self._profiles, self._identifiers)
        return written_texts(*how, self.texts.texts.entities)

    def values(self) -> SideValues:
        """The values of predicates that have about one for each entity."""
        return SideValues.of(self._literals, self._rows, self._profiles, self._first, self._count, self._comparators)


def _anchors(graph: CandidateGraph, num_seeds: int) -> tuple[IntArray, float | None]:
    """Pairs to start from, where seeds are few, and the share of them that should be right."""
    if num_seeds >= FEWEST_SEEDS or not len(graph):
        return np.empty((0, 2), dtype=np.int64), None
    from largegnn.matching.anchors import find_anchors

    anchors, confidence = find_anchors(graph)
    return anchors, float(confidence.mean()) if len(anchors) else None


def _nothing_to_start_from(found: str) -> InputError:
    return InputError(
        "there is nothing to start from: no seeds, and no names or values that both graphs share",
        expected="seeds, or labels and values in both graphs",
        found=found,
        fix="give known links with --seeds FILE, names with --source-names and --target-names, or --channels auto",
    )


def _meanings(sides: list[_Side], compare: CompareSettings) -> tuple[FloatArray, FloatArray] | None:
    """The meanings of both sides' texts, where a text encoder is named."""
    if compare.text_encoder == "off":
        return None
    written = [side.written() for side in sides]
    # Both sides at once: an encoder may take long to load, or look at all texts.
    vectors = encode_texts(compare.text_encoder, written[0] + written[1], compare.text_model)
    return vectors[: len(written[0])], vectors[len(written[0]) :]


def _views_of(graph: CandidateGraph) -> list[str]:
    return [name for name in _START if name in graph.evidence]


def _views(graph: CandidateGraph) -> Floats:
    return np.stack([graph.column(name) for name in _views_of(graph)], axis=1).astype(np.float64)


def _weights(graph: CandidateGraph, known: IntArray, seed: int) -> Floats:
    """The weights of the views, learnt from known links where there are enough among the candidates."""
    from largegnn.matching.evidence_weights import learn_weights

    right = are_among(graph.pairs(), known) if len(known) else None
    start = np.array([_START[name] for name in _views_of(graph)])
    enough = right is not None and int(right.sum()) >= 10 * len(start)
    return learn_weights(graph, _views(graph), start, right if enough else None, seed)


def _with_neighbors(texts: EntityTexts, triples: IntArray) -> SideTexts:
    """The texts of a side with those of the neighbours, each neighbour by its first name."""
    from largegnn.literals.candidates import SideTexts

    first: dict[int, str] = {}
    for owner, name in zip(texts.name_owners.tolist(), texts.names, strict=True):
        first.setdefault(owner, name)
    return SideTexts(texts, neighbor_texts(triples, first, texts.entities, class_relations(triples)))
