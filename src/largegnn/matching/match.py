"""Match the entities of both graphs: decide which candidate pairs to accept, each with a confidence.

In: the task, vectors, the neighbours from the search, the evidence of literals. Out: an `Alignment` of all pairs worth
keeping, the aligned relations, and a `MatchOutcome`. Channels gather candidates with evidence, a scoring scores them, a
selection chooses the pairs that may be accepted, and a calibration on the valid links that are not seeds (or on decoys,
without seeds) estimates how likely each pair is correct. Test links are never used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import (
    REASONS,
    Alignment,
    AlignmentTask,
    CandidateGraph,
    EdgeRanks,
    EntityEmbeddings,
    FloatArray,
    IntArray,
    LiteralEvidence,
    Mask,
    Neighbors,
    RelationAlignment,
    ReliabilityRow,
    are_among,
)
from largegnn.machine.devices import choose_device
from largegnn.matching.candidates import edge_ranks, margins
from largegnn.matching.channels import ChannelContext, gather_candidates, relocalised, similarity_weights
from largegnn.matching.confidence.calibration import Calibration, calibrate
from largegnn.matching.confidence.decoys import estimate_by_decoys
from largegnn.matching.confidence.link_count import estimate_links
from largegnn.matching.confidence.thresholds import Threshold, choose_threshold
from largegnn.matching.relations import align_relations
from largegnn.matching.scorings import DefaultWeights, ScoringContext, csls_column, scoring_of, weighted_evidence
from largegnn.matching.selection import SELECTIONS, mutual_knn

if TYPE_CHECKING:
    from largegnn.settings import MatchSettings, ProtocolSettings

__all__ = ["MatchOutcome", "MatchResult", "match"]

_log = logging.getLogger(__name__)
# Columns that are no features of a confidence: CSLS contains the first two, `literal` is the sum of the others.
_EXCLUDED_COLUMNS = ("cosine", "similarity", "name", "text", "neighbors", "meaning", "agreement", "contradiction")
_CSLS_COLUMNS = ("csls", "similarity_csls")


@dataclass(frozen=True)
class MatchOutcome:
    """Figures of a matching: the calibration, the threshold, and why other entities have no pair.

    `reliability` is measured on the valid links, with evidence cross-fitted on other folds of them; None without
    calibration by links. Of `num_anchors` anchors, `num_given_up` were rejected in the end. `similarity_weights` are
    the weights of vectors and literals; `relations` counts the aligned relations of each kind.
    """

    num_candidates: int
    num_accepted: int
    evidence: tuple[str, ...]
    threshold: Threshold
    calibration: Calibration
    reliability: tuple[ReliabilityRow, ...] | None
    reasons: Mapping[str, int]
    num_anchors: int = 0
    num_given_up: int = 0
    similarity_weights: Mapping[str, float] | None = None
    relations: Mapping[str, int] | None = None

    def sentence(self) -> str:
        """Describe the expected precision of the accepted pairs in words."""
        threshold, calibration = self.threshold, self.calibration
        if not calibration.is_calibrated:
            unchecked = "" if threshold.is_reached else " The precision asked for cannot be checked."
            return (
                f"Not calibrated: {calibration.num_valid:,} valid links are too few to estimate how many are right; "
                f"pairs have a score, no confidence.{unchecked}"
            )
        if threshold.expected_precision is None:
            return "No pairs accepted."
        if calibration.basis == "decoys":
            return (
                f"Expected precision {threshold.expected_precision:.3f}, by comparison with decoys; it rests on "
                "no given links."
            )
        recall = "" if threshold.expected_recall is None else f" Expected recall {threshold.expected_recall:.3f}."
        reached = "" if threshold.is_reached else " That is less than was asked for: the most confident pairs are kept."
        return (
            f"Expected precision {threshold.expected_precision:.3f}, between {threshold.precision_low:.3f} and "
            f"{threshold.precision_high:.3f} nine times in ten; it rests on {calibration.num_valid:,} valid links, "
            f"which {calibration.num_judged:,} pairs touch.{recall}{reached}"
        )


@dataclass(frozen=True)
class MatchResult:
    """The pairs, the aligned relations, and the figures of the matching."""

    alignment: Alignment
    relations: RelationAlignment
    outcome: MatchOutcome


def match(
    task: AlignmentTask,
    final_embeddings: EntityEmbeddings,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    literal_evidence: LiteralEvidence | None = None,
    *,
    device: str,
) -> MatchResult:
    """Gather candidates, score and select them, estimate confidences, and accept pairs."""
    seeds = task.seeds(protocol.seeds_from)
    evidence = (LiteralEvidence.empty() if literal_evidence is None else literal_evidence).among(
        task.free(protocol.seeds_from)
    )
    weights = similarity_weights(task.held_out(protocol.seeds_from), source_neighbors, evidence)
    context = ChannelContext(
        task,
        seeds,
        final_embeddings,
        source_neighbors,
        target_neighbors,
        match.csls_k,
        match.weights,
        evidence,
        weights,
        match.rule_candidates,
    )
    graph = gather_candidates(channels, context)
    scoring = scoring_of(match.scoring)
    valid = task.held_out(protocol.seeds_from)
    num_free = (
        max(len(source_neighbors.queries), _num_distinct(graph.sources, task.num_entities)),
        max(len(target_neighbors.queries), _num_distinct(graph.targets, task.num_entities)),
    )
    links = estimate_links(
        task.degrees(), task.num_source_entities, np.concatenate([seeds, valid]), len(seeds), num_free
    )
    scoring_context = ScoringContext(
        final_embeddings,
        match.temperature,
        match.iterations,
        choose_device(device),
        # Anchors are not a random sample of the links, so the number of links cannot be estimated from them.
        links.mean if len(task.given_seeds(protocol.seeds_from)) else None,
        weights["cosine"],
    )

    def score(graph: CandidateGraph) -> FloatArray:
        return scoring.score(graph, weighted_evidence(graph, match.weights), scoring_context)

    scores = score(graph)
    kept, selected, ranks = _select(graph, scores, match)
    max_margin = scoring.lone_margin
    gaps = [margins(ends, scores, max_margin, kept) for ends in (graph.sources, graph.targets)]
    features = _features(graph, kept, [np.clip(gap, -max_margin, max_margin) for gap in gaps])
    # If several sources may have one target, a pair need not be the target's first choice.
    best = (ranks.source == 1) & ((ranks.target == 1) | (match.selection == "many_to_one"))
    pairs = graph.pairs(kept)
    by_decoys = None
    if len(task.anchors):
        by_decoys = estimate_by_decoys(graph, scores, kept, best, lambda rest: score(relocalised(rest, match.csls_k)))
    if by_decoys is not None:
        calibration, reliability = by_decoys.calibration, None
    else:
        default_weights = _default_weights(scoring.default_weights, _feature_columns(graph))
        calibration, reliability = calibrate(pairs, features, best, valid, links, num_free, default_weights)
    if not calibration.is_calibrated:
        _log.warning(
            "match: %d valid links are too few to calibrate by: pairs have a score that orders them, no confidence",
            calibration.num_valid,
        )
    if by_decoys is not None:
        confidence = by_decoys.confidence
        threshold = by_decoys.choose_threshold(selected, match.min_precision, match.threshold)
    else:
        confidence = calibration.rate(features, best)
        threshold = choose_threshold(
            calibration, features[selected], best[selected], min_precision=match.min_precision, cut=match.threshold
        )
    if not threshold.is_reached:
        _log.warning(
            "match: an expected precision of %g is not reached; the most confident pairs are kept", match.min_precision
        )
    accepted = selected & (confidence >= threshold.threshold)
    order = np.lexsort((ranks.source, pairs[:, 0]))
    covered = np.array(final_embeddings.covered)
    covered[graph.sources] = covered[graph.targets] = True
    names = tuple(graph.evidence)
    alignment = Alignment(
        pairs=pairs[order],
        columns=names,
        evidence=np.stack([graph.column(name)[kept][order] for name in names]),
        scores=scores[kept][order],
        margins=np.minimum(*gaps)[order],
        source_ranks=ranks.source[order],
        target_ranks=ranks.target[order],
        confidence=confidence[order].astype(np.float32),
        accepted=accepted[order],
        reasons=_reasons(task, task.free(protocol.seeds_from), covered, pairs, selected, accepted),
    )
    reasons = {name: int((alignment.reasons == code).sum()) for code, name in enumerate(REASONS)}
    certainty = np.concatenate([np.ones(len(seeds)), confidence[accepted]]).astype(np.float32)
    relations = align_relations(task, np.concatenate([seeds, pairs[accepted]]), certainty)
    anchors = evidence.anchors if len(task.anchors) else evidence.anchors[:0]
    outcome = MatchOutcome(
        num_candidates=len(pairs),
        num_accepted=int(accepted.sum()),
        evidence=names,
        threshold=threshold,
        calibration=calibration,
        reliability=reliability,
        reasons=reasons,
        num_anchors=len(anchors),
        num_given_up=len(anchors) - int(are_among(anchors, pairs[accepted]).sum()),
        similarity_weights=weights,
        relations=relations.num_by_mapping(),
    )
    return MatchResult(alignment, relations, outcome)


def _select(graph: CandidateGraph, scores: FloatArray, match: MatchSettings) -> tuple[IntArray, Mask, EdgeRanks]:
    """Find the edges worth keeping, ascending, whether the selection chose them, and their ranks at both ends."""
    ranks = edge_ranks(graph, scores)
    is_selected = np.zeros(len(graph), dtype=bool)
    is_selected[SELECTIONS[match.selection](graph, scores, match.k, ranks)] = True
    is_kept = is_selected.copy()
    is_kept[mutual_knn(graph, scores, match.k, ranks)] = True
    kept = np.flatnonzero(is_kept)
    return kept, is_selected[kept], EdgeRanks(ranks.source[kept], ranks.target[kept])


def _features(graph: CandidateGraph, kept: IntArray, margins: list[FloatArray]) -> npt.NDArray[np.float64]:
    """Stack the features of a confidence, (p, f): the first column of evidence, both margins, the other columns."""
    first, *others = (graph.column(name)[kept] for name in _feature_columns(graph))
    return np.stack([first, *margins, *others], axis=1).astype(np.float64)


def _feature_columns(graph: CandidateGraph) -> tuple[str, ...]:
    """The columns that are features: first the CSLS in use, then the columns that are not part of it."""
    return (csls_column(graph), *graph.columns_but((*_EXCLUDED_COLUMNS, *_CSLS_COLUMNS)))


def _default_weights(default: DefaultWeights, columns: tuple[str, ...]) -> tuple[tuple[float, ...], float]:
    """Order the default weights of a scoring like the features; and the offset."""
    weights = [default.evidence.get("csls" if name in _CSLS_COLUMNS else name, 0.0) for name in columns]
    return (*weights[:1], *default.margins, *weights[1:]), default.offset


def _num_distinct(entities: IntArray, num_entities: int) -> int:
    """Count the distinct entities in an array (e,), by a mask, since sorting millions of edges is slow."""
    is_present = np.zeros(num_entities, dtype=bool)
    is_present[entities] = True
    return int(is_present.sum())


def _reasons(
    task: AlignmentTask, free: Mask, covered: Mask, pairs: IntArray, selected: Mask, accepted: Mask
) -> IntArray:
    """Find why each entity has no accepted pair, as an index in `REASONS`; later assignments overrule earlier ones."""
    code = {name: index for index, name in enumerate(REASONS)}
    reasons = np.full(task.num_entities, code["not mutual"], dtype=np.uint8)
    reasons[pairs[selected].ravel()] = code["below threshold"]
    reasons[~covered] = code["not covered"]
    isolated = np.ones(task.num_entities, dtype=bool)
    isolated[task.triples[:, 0]] = isolated[task.triples[:, 2]] = False
    reasons[isolated] = code["isolated"]
    reasons[pairs[accepted].ravel()] = code["aligned"]
    reasons[~free] = code["seed"]
    return reasons
