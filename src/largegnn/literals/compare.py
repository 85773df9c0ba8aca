"""Compare names and values: find candidate pairs with evidence and, if seeds are few, anchors to train on.

In: the literals of both graphs, the triples, the names of the entities. Out: candidates with the columns `name`,
`text`, `neighbors`, `agreement`, `contradiction` and `literal`, the weighted sum of the others; anchors if there are
fewer than 200 seeds; the profiles of predicates, the aligned predicates and the weights of the columns.
Without the channel `literals` the result is empty. Cost: linear in the literals.
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

__all__ = ["LiteralsOutcome", "LiteralsResult", "compare_literals"]

_log = logging.getLogger(__name__)
_MIN_SEEDS = 200  # with fewer, anchors are added to the seeds
_MIN_ANCHORS = 10  # with fewer and without seeds, training has nothing to start from
_DEFAULT_WEIGHTS = {"name": 1.0, "text": 1.0, "neighbors": 0.5, "meaning": 1.0}  # of the views, before learning
_CSLS_K = 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LiteralsOutcome:
    """Facts about the literals and their comparison; empty if the channel is off.

    `identifiers` says for either side whether names were taken from IRIs, `weights` holds the weight of each view of a
    pair (they add up to 1), `expected_right` is the expected share of anchors that are right.
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
    """The result of comparing names and values: candidates with evidence, and facts for the report."""

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
    """Compare names and values if the channel `literals` is on; an `InputError` if training has nothing to start from.

    The columns of a pair are its views; `literal` is their weighted sum and the weighted odds of agreeing values.
    """
    from largegnn.literals.candidates import literal_candidates
    from largegnn.literals.sides import LiteralSide, encode_sides
    from largegnn.matching.evidence_weights import confident_edges, localised

    seeds = task.seeds(protocol.seeds_from)
    if "literals" not in channels:
        if not len(seeds):
            raise _no_start("the channel literals is off")
        return LiteralsResult(LiteralEvidence.empty(), LiteralsOutcome())
    source = LiteralSide(task, names, literals, 0, compare, seed)
    target = LiteralSide(task, names, literals, 1, compare, seed)
    graph = literal_candidates(source.texts, target.texts, compare.k, encode_sides(source, target, compare))
    # Reviewed pairs were selected by reviewers and are not a sample of the links, so nothing is learnt from them.
    given = seeds[~are_among(seeds, task.reviewed)]
    weights = _weights(graph, given, seed)
    similarity = _views(graph) @ weights
    reference_pairs = (
        given
        if len(given) >= _MIN_SEEDS
        else graph.pairs(confident_edges(graph, localised(graph, similarity, _CSLS_K)))
    )
    correspondences, predicate_pairs = learn_correspondences(source.values, target.values, reference_pairs, seed)
    sources, targets = graph.sources.astype(np.int64), graph.targets.astype(np.int64)
    agreement, contradiction = value_evidence(
        source.values, target.values, correspondences, predicate_pairs, sources, targets
    )
    literal = np.maximum(similarity + compare.odds_weight * (agreement - contradiction), 0.0).astype(np.float32)
    graph = graph.with_evidence(agreement=agreement, contradiction=contradiction, literal=literal)
    # Forbidden pairs are removed last: as rivals of other pairs they count in how certain those are.
    anchors, expected_right = _anchors(graph, len(given))
    anchors = anchors[~are_among(anchors, task.forbidden)]
    graph = graph.without(task.forbidden)
    if not len(seeds) and len(anchors) < _MIN_ANCHORS:
        raise _no_start(f"only {len(anchors)} pairs that are clearly each other's best match by names and values")
    duplicates = np.concatenate([find_duplicates(side.texts, side.values) for side in (source, target)])
    outcome = LiteralsOutcome(
        source_profiles=source.profiles,
        target_profiles=target.profiles,
        identifiers=(source.has_identifiers, target.has_identifiers),
        correspondences=tuple(correspondences),
        weights=dict(zip(_view_names(graph), weights.tolist(), strict=True)),
        num_candidates=len(graph),
        num_anchors=len(anchors),
        expected_right=expected_right,
        num_duplicates=len(duplicates),
    )
    if len(anchors):
        _log.info("literals: %s anchors, of which a share of %.3f should be right", f"{len(anchors):,}", expected_right)
    return LiteralsResult(LiteralEvidence.of(graph, anchors, duplicates), outcome)


def _anchors(graph: CandidateGraph, num_seeds: int) -> tuple[IntArray, float | None]:
    """Find pairs to train on if seeds are few, and the share of these pairs that should be right."""
    if num_seeds >= _MIN_SEEDS or not len(graph):
        return np.empty((0, 2), dtype=np.int64), None
    from largegnn.matching.anchors import find_anchors

    anchors, confidence = find_anchors(graph)
    return anchors, float(confidence.mean()) if len(anchors) else None


def _no_start(found: str) -> InputError:
    """The error for a run that has nothing to train on."""
    return InputError(
        "there is nothing to start from: no seeds, and no names or values that both graphs share",
        expected="seeds, or labels and values in both graphs",
        found=found,
        fix="give known links with --seeds FILE, names with --source-names and --target-names, or --channels auto",
    )


def _view_names(graph: CandidateGraph) -> list[str]:
    """The columns of a graph that are views of a pair: similarities with a weight."""
    return [name for name in _DEFAULT_WEIGHTS if name in graph.evidence]


def _views(graph: CandidateGraph) -> Floats:
    """The views of each edge (e, v)."""
    return np.stack([graph.column(name) for name in _view_names(graph)], axis=1).astype(np.float64)


def _weights(graph: CandidateGraph, known: IntArray, seed: int) -> Floats:
    """Learn the weights of the views, from the `known` links if enough of them are among the candidates."""
    from largegnn.matching.evidence_weights import learn_weights

    is_known = are_among(graph.pairs(), known) if len(known) else None
    start = np.array([_DEFAULT_WEIGHTS[name] for name in _view_names(graph)])
    enough = is_known is not None and int(is_known.sum()) >= 10 * len(start)
    return learn_weights(graph, _views(graph), start, is_known if enough else None, seed)
