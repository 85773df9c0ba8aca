"""The stage `match`: candidates with evidence become pairs with a confidence and a decision.

The channels give the candidates and their evidence; a scoring rates them, a selection says which may be accepted, and a
calibration on the valid links that are no seeds says how likely each is right. Test links are never looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

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
    Mask,
    Neighbors,
    ReliabilityRow,
    are_among,
)
from largegnn.errors import InputError
from largegnn.machine.devices import choose_device
from largegnn.matching.confidence import (
    Calibration,
    Threshold,
    best_f1,
    calibrate,
    cross_checked,
    everything,
    highest_recall,
    uncalibrated,
)
from largegnn.seams.tables import SELECTIONS
from largegnn.settings import MatchSettings, ProtocolSettings

__all__ = ["MatchOutcome", "Matched", "match"]

_log = logging.getLogger(__name__)
_NO_FEATURE = ("cosine",)  # CSLS says the same, better


@dataclass(frozen=True)
class MatchOutcome:
    """What was learnt about the pairs: how they were calibrated, where they are cut, why others have none.

    `reliability` judges each half of the valid links by what the other half taught; None without calibration.
    """

    num_candidates: int
    num_accepted: int
    evidence: tuple[str, ...]
    threshold: Threshold
    calibration: Calibration
    reliability: tuple[ReliabilityRow, ...] | None
    reasons: Mapping[str, int]

    def sentence(self) -> str:
        """How sure the accepted pairs are, in words."""
        threshold = self.threshold
        if not self.calibration.is_calibrated:
            return "Not calibrated: there are too few valid links to say how many are right."
        if threshold.expected_precision is None:
            return "Nothing can be expected of no pairs."
        recall = "" if threshold.expected_recall is None else f", expected recall {threshold.expected_recall:.3f}"
        return f"Expected precision {threshold.expected_precision:.3f}{recall}, from the valid links."


@dataclass(frozen=True)
class Matched:
    """The pairs."""

    alignment: Alignment
    outcome: MatchOutcome


def match(
    task: AlignmentTask,
    final_embeddings: EntityEmbeddings,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    device: str,
) -> Matched:
    """Score, select, calibrate and decide."""
    from largegnn.matching.candidates import margins
    from largegnn.matching.channels import ChannelContext, gather_candidates
    from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence

    seeds = task.seeds(protocol.seeds_from)
    context = ChannelContext(
        task, seeds, final_embeddings, source_neighbors, target_neighbors, match.csls_k, match.weights
    )
    graph = gather_candidates(channels, context)
    scoring = scoring_of(match.scoring)
    balance = ScoringContext(final_embeddings, match.temperature, match.iterations, choose_device(device))
    scores = scoring.score(graph, weighted_evidence(graph, match.weights), balance)
    kept, selected, ranks = _select(graph, scores, match)
    most = scoring.lone_margin
    gaps = [margins(ends, scores, most, kept) for ends in (graph.sources, graph.targets)]
    features = _features(graph, kept, [np.clip(gap, -most, most) for gap in gaps])
    best = (ranks.source == 1) & (ranks.target == 1)
    pairs = graph.pairs(kept)
    num_free = (len(source_neighbors.queries), len(target_neighbors.queries))
    learnt = _learn(task.held_out(protocol.seeds_from), pairs, features, best, num_free)
    if learnt is None:
        stand_in, columns = scoring.stand_in, graph.columns_but(_NO_FEATURE)
        weights = [*(stand_in.evidence.get(name, 0.0) for name in columns[:1]), *stand_in.margins]
        weights += [stand_in.evidence.get(name, 0.0) for name in columns[1:]]
        calibration, reliability = uncalibrated(tuple(weights), stand_in.offset, float(min(num_free))), None
    else:
        calibration, reliability = learnt
    confidence = calibration.confidence(features, best)
    threshold = _cut(confidence[selected], calibration, match)
    accepted = selected & (confidence >= threshold.confidence)
    order = np.lexsort((ranks.source, pairs[:, 0]))
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
        reasons=_reasons(task, task.free(protocol.seeds_from), final_embeddings.covered, pairs, selected, accepted),
    )
    reasons = {name: int((alignment.reasons == code).sum()) for code, name in enumerate(REASONS)}
    outcome = MatchOutcome(len(pairs), int(accepted.sum()), names, threshold, calibration, reliability, reasons)
    return Matched(alignment, outcome)


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
    columns = [graph.column(name)[kept] for name in graph.columns_but(_NO_FEATURE)]
    return np.stack([*columns[:1], *margins, *columns[1:]], axis=1).astype(np.float64)


def _learn(
    valid: IntArray,
    pairs: IntArray,
    features: npt.NDArray[np.float64],
    best: Mask,
    num_free: tuple[int, int],
) -> tuple[Calibration, tuple[ReliabilityRow, ...] | None] | None:
    """A calibration from the valid links, with a reliability table; None where there are too few to learn from."""
    halves = (valid[::2], valid[1::2])
    right = np.stack([are_among(pairs, half) for half in halves], axis=1)
    touched = np.stack([np.isin(pairs, half).any(axis=1) for half in halves], axis=1)
    calibration = None
    if len(valid):
        calibration = calibrate(
            features, right[:, 0] | right[:, 1], touched[:, 0] | touched[:, 1], best, len(valid), num_free
        )
    if calibration is None:
        _log.warning(
            "match: %s, so the scores are not calibrated: they order pairs, but are no probabilities",
            "there are no valid links" if not len(valid) else "too few valid links were found among the pairs",
        )
        return None
    sizes = (len(halves[0]), len(halves[1]))
    return calibration, cross_checked(features, right, touched, best, sizes, num_free)


def _cut(confidence: npt.NDArray[np.float64], calibration: Calibration, match: MatchSettings) -> Threshold:
    """Where to cut the selected pairs."""
    if match.min_precision > 0 and calibration.is_calibrated:
        threshold = highest_recall(confidence, calibration.num_links, match.min_precision)
        if threshold is not None:
            return threshold
        raise InputError(f"no set of pairs reaches an expected precision of {match.min_precision:g}")
    if match.threshold == "none" or not calibration.is_calibrated:
        return everything(confidence, calibration)
    return best_f1(confidence, calibration.num_links)


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
