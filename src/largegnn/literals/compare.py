"""Compare names and values: candidate pairs with evidence and, without seeds, anchors to start from.

In: the literals of both graphs, the triples, the names of the entities. Out: candidates with the columns `name`,
`text`, `neighbors`, `agreement`, `contradiction` and `literal`, their sum; anchors where seeds are missing; and the
profiles of predicates, the aligned predicates and the weights behind them. Without the channel `literals`: nothing.
Cost: linear in the literals (see `largegnn.literals`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import (
    AlignmentTask,
    CandidateGraph,
    IntArray,
    LiteralEvidence,
    Literals,
    TaskNames,
    are_among,
)
from largegnn.errors import InputError
from largegnn.literals.profiles import PredicateProfile
from largegnn.literals.values_evidence import (
    Correspondence,
    find_duplicates,
    learn_correspondences,
    value_evidence,
)
from largegnn.settings import CompareSettings, ProtocolSettings

__all__ = ["FEWEST_SEEDS", "LiteralsOutcome", "LiteralsResult", "compare_literals"]

_log = logging.getLogger(__name__)
FEWEST_SEEDS = 200  # fewer given seeds than this are joined by anchors
_FEWEST_ANCHORS = 10
_START = {"name": 1.0, "text": 1.0, "neighbors": 0.5, "meaning": 1.0}  # weights of the views before any is learnt
_NEAREST = 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LiteralsOutcome:
    """Facts about the literals; empty where the channel is off.

    `identifiers` is, for either side, whether names were taken from IRIs, `weights` are those of the views of a pair
    (they add up to 1), `expected_right` is the expected share of right anchors.
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
class LiteralsResult:
    """Candidates by names and values."""

    literal_evidence: LiteralEvidence
    outcome: LiteralsOutcome


def compare_literals(
    task: AlignmentTask,
    names: TaskNames,
    literals: Literals,
    channels: tuple[str, ...],
    protocol: ProtocolSettings,
    compare: CompareSettings,
    seed: int,
) -> LiteralsResult:
    """Compare names and values, where the channel is on."""
    from largegnn.literals.candidates import literal_candidates
    from largegnn.literals.sides import LiteralSide, encode_sides
    from largegnn.matching.evidence_weights import confident_edges, localised

    seeds = task.seeds(protocol.seeds_from)
    if "literals" not in channels:
        if not len(seeds):
            raise _no_start("the channel literals is off")
        return LiteralsResult(LiteralEvidence.empty(), LiteralsOutcome())
    source, target = (LiteralSide(task, names, literals, side, compare, seed) for side in (0, 1))
    graph = literal_candidates(source.texts, target.texts, compare.k, encode_sides(source, target, compare))
    # The pairs that reviewers selected are not a sample of the links: nothing is learnt from them about others.
    given = seeds[~are_among(seeds, task.reviewed)]
    weights = _weights(graph, given, seed)
    similar = _views(graph) @ weights
    sure = (
        given
        if len(given) >= FEWEST_SEEDS
        else graph.pairs(confident_edges(graph, localised(graph, similar, _NEAREST)))
    )
    correspondences, numbers = learn_correspondences(source.values, target.values, sure, seed)
    ends = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    agreement, contradiction = value_evidence(source.values, target.values, correspondences, numbers, *ends)
    literal = np.maximum(similar + compare.odds_weight * (agreement - contradiction), 0.0).astype(np.float32)
    graph = graph.with_evidence(agreement=agreement, contradiction=contradiction, literal=literal)
    # Forbidden pairs are removed last: without them, the others would seem more certain, or less, than they are.
    anchors, expected = _anchors(graph, len(given))
    anchors = anchors[~are_among(anchors, task.forbidden)]
    graph = graph.without(task.forbidden)
    if not len(seeds) and len(anchors) < _FEWEST_ANCHORS:
        raise _no_start(f"{len(anchors)} pairs are each other's clear best by names and values")
    duplicates = np.concatenate([find_duplicates(side.texts, side.values) for side in (source, target)])
    outcome = LiteralsOutcome(
        source_profiles=source.profiles,
        target_profiles=target.profiles,
        identifiers=(source.has_identifiers, target.has_identifiers),
        correspondences=tuple(correspondences),
        weights=dict(zip(_views_of(graph), weights.tolist(), strict=True)),
        num_candidates=len(graph),
        num_anchors=len(anchors),
        expected_right=expected,
        num_duplicates=len(duplicates),
    )
    if len(anchors):
        _log.info("literals: %s anchors, of which %.3f should be right", f"{len(anchors):,}", expected)
    return LiteralsResult(LiteralEvidence.of(graph, anchors, duplicates), outcome)


def _anchors(graph: CandidateGraph, num_seeds: int) -> tuple[IntArray, float | None]:
    """Pairs to start from, where seeds are few, and the share of them that should be right."""
    if num_seeds >= FEWEST_SEEDS or not len(graph):
        return np.empty((0, 2), dtype=np.int64), None
    from largegnn.matching.anchors import find_anchors

    anchors, confidence = find_anchors(graph)
    return anchors, float(confidence.mean()) if len(anchors) else None


def _no_start(found: str) -> InputError:
    return InputError(
        "there is nothing to start from: no seeds, and no names or values that both graphs share",
        expected="seeds, or labels and values in both graphs",
        found=found,
        fix="give known links with --seeds FILE, names with --source-names and --target-names, or --channels auto",
    )


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
