"""The stage `match`: candidates with evidence become pairs with a confidence and a decision.

The channels give the candidates and their evidence; a scoring rates them, a selection says which may be accepted, and a
calibration on the valid links that are no seeds says how likely each is right. Test links are never looked at.
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
from largegnn.matching.calibration import Calibration, calibrate
from largegnn.matching.link_count import estimate_links
from largegnn.matching.thresholds import Threshold, choose_threshold
from largegnn.seams.tables import SELECTIONS
from largegnn.settings import MatchSettings, ProtocolSettings

if TYPE_CHECKING:
    from largegnn.matching.scorings import StandIn

__all__ = ["MatchOutcome", "Matched", "match"]

_log = logging.getLogger(__name__)
# CSLS says the same as these, better; `literal` is the sum of the others.
_NO_FEATURE = ("cosine", "similarity", "name", "text", "neighbors", "meaning", "agreement", "contradiction")
_CSLS = ("csls", "similarity_csls")


@dataclass(frozen=True)
class MatchOutcome:
    """What was learnt about the pairs: how they were calibrated, where they are cut, why others have none.

    `reliability` judges each half of the valid links by what the other half taught; None without calibration. Of
    `num_anchors` pairs to start from, `num_given_up` were not accepted in the end. `similarity_weights` say
    how much vectors and literals count, `relations` how many pairs of relations answer to each other in which way.
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
        """How sure the accepted pairs are, in words."""
        threshold, calibration = self.threshold, self.calibration
        if not calibration.is_calibrated:
            asked = "" if threshold.is_reached else " The precision asked for cannot be checked."
            return (
                f"Not calibrated: {calibration.num_valid:,} valid links are too few to say how many are right; "
                f"pairs have a score, no confidence.{asked}"
            )
        if threshold.expected_precision is None:
            return "Nothing can be expected of no pairs."
        if calibration.basis == "decoys":
            return (
                f"Expected precision {threshold.expected_precision:.3f}, by comparison with pairs that are surely "
                "wrong; no given links stand behind it."
            )
        recall = "" if threshold.expected_recall is None else f" Expected recall {threshold.expected_recall:.3f}."
        reached = "" if threshold.is_reached else " That is less than was asked for: these are the surest pairs."
        return (
            f"Expected precision {threshold.expected_precision:.3f}, between {threshold.precision_low:.3f} and "
            f"{threshold.precision_high:.3f} nine times in ten; it rests on {calibration.num_valid:,} valid links, "
            f"which {calibration.num_judged:,} pairs touch.{recall}{reached}"
        )


@dataclass(frozen=True)
class Matched:
    """The pairs, and the relations that answer to each other by them."""

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
) -> Matched:
    """Score, select, calibrate and decide."""
    from largegnn.matching.candidates import margins
    from largegnn.matching.channels import ChannelContext, gather_candidates, relocalised, similarity_weights
    from largegnn.matching.decoys import rate_by_decoys
    from largegnn.matching.relations import align_relations
    from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence

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
        _degrees(task), task.num_source_entities, np.concatenate([seeds, valid]), len(seeds), num_free
    )
    balance = ScoringContext(
        final_embeddings,
        match.temperature,
        match.iterations,
        choose_device(device),
        # Anchors are no sample of the links: they say nothing of their number.
        links.mean if len(task.given_seeds(protocol.seeds_from)) else None,
        weights["cosine"],
    )

    def score(graph: CandidateGraph) -> FloatArray:
        return scoring.score(graph, weighted_evidence(graph, match.weights), balance)

    scores = score(graph)
    kept, selected, ranks = _select(graph, scores, match)
    most = scoring.lone_margin
    gaps = [margins(ends, scores, most, kept) for ends in (graph.sources, graph.targets)]
    features = _features(graph, kept, [np.clip(gap, -most, most) for gap in gaps])
    # Where several sources may have one target, a pair need not be the target's first choice.
    best = (ranks.source == 1) & ((ranks.target == 1) | (match.selection == "many_to_one"))
    pairs = graph.pairs(kept)
    by_decoys = None
    if len(task.anchors):
        by_decoys = rate_by_decoys(graph, scores, kept, best, lambda rest: score(relocalised(rest, match.csls_k)))
    if by_decoys is not None:
        calibration, reliability = by_decoys.calibration, None
    else:
        stand_in = _stand_in(scoring.stand_in, _feature_columns(graph))
        calibration, reliability = calibrate(pairs, features, best, valid, links, num_free, stand_in)
    if not calibration.is_calibrated:
        _log.warning(
            "match: %d valid links are too few to calibrate by: pairs have a score that orders them, no confidence",
            calibration.num_valid,
        )
    if by_decoys is not None:
        rating = by_decoys.rating
        threshold = by_decoys.choose_threshold(selected, match.min_precision, match.threshold)
    else:
        rating = calibration.rate(features, best)
        threshold = choose_threshold(
            calibration, features[selected], best[selected], min_precision=match.min_precision, cut=match.threshold
        )
    if not threshold.is_reached:
        _log.warning(
            "match: an expected precision of %g is not reached; the surest pairs are kept", match.min_precision
        )
    accepted = selected & (rating >= threshold.threshold)
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
        confidence=rating[order].astype(np.float32),
        accepted=accepted[order],
        reasons=_reasons(task, task.free(protocol.seeds_from), covered, pairs, selected, accepted),
    )
    reasons = {name: int((alignment.reasons == code).sum()) for code, name in enumerate(REASONS)}
    sure = np.concatenate([np.ones(len(seeds)), rating[accepted]]).astype(np.float32)
    relations = align_relations(task, np.concatenate([seeds, pairs[accepted]]), sure)
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
    return Matched(alignment, relations, outcome)


def _select(graph: CandidateGraph, scores: FloatArray, match: MatchSettings) -> tuple[IntArray, Mask, EdgeRanks]:
    """The edges worth keeping, ascending, which of them the selection chose, and their ranks at both ends."""
    from largegnn.matching.candidates import edge_ranks
    from largegnn.matching.selection import mutual_knn

    ranks = edge_ranks(graph, scores)
    is_selected = np.zeros(len(graph), dtype=bool)
    is_selected[SELECTIONS[match.selection](graph, scores, match.k, ranks)] = True
    is_kept = is_selected.copy()
    is_kept[mutual_knn(graph, scores, match.k, ranks)] = True
    kept = np.flatnonzero(is_kept)
    return kept, is_selected[kept], EdgeRanks(ranks.source[kept], ranks.target[kept])


def _features(graph: CandidateGraph, kept: IntArray, margins: list[FloatArray]) -> npt.NDArray[np.float64]:
    """What a confidence is learnt from, (p, f): the first column of evidence, the two margins, the other columns."""
    first, *others = (graph.column(name)[kept] for name in _feature_columns(graph))
    return np.stack([first, *margins, *others], axis=1).astype(np.float64)


def _feature_columns(graph: CandidateGraph) -> tuple[str, ...]:
    """The columns that are features: the CSLS that counts first, then all that says more."""
    from largegnn.matching.scorings import csls_column

    return (csls_column(graph), *graph.columns_but((*_NO_FEATURE, *_CSLS)))


def _stand_in(stand_in: StandIn, columns: tuple[str, ...]) -> tuple[tuple[float, ...], float]:
    """The weights of features nothing is known of, in their order, and the offset."""
    weights = [stand_in.evidence.get("csls" if name in _CSLS else name, 0.0) for name in columns]
    return (*weights[:1], *stand_in.margins, *weights[1:]), stand_in.offset


def _num_distinct(entities: IntArray, num_entities: int) -> int:
    """How many entities stand in an array (e,): marked, not sorted, for edges are many."""
    is_there = np.zeros(num_entities, dtype=bool)
    is_there[entities] = True
    return int(is_there.sum())


def _degrees(task: AlignmentTask) -> IntArray:
    """The triples of each entity, (n,)."""
    degrees: IntArray = np.bincount(task.triples[:, (0, 2)].ravel(), minlength=task.num_entities)
    return degrees


def _reasons(
    task: AlignmentTask, free: Mask, covered: Mask, pairs: IntArray, selected: Mask, accepted: Mask
) -> IntArray:
    """Why each entity has no accepted pair, as an index in `REASONS`; later lines overrule earlier ones."""
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
