"""The stages `search` and `match`: from one vector for each entity to pairs with a confidence and a decision.

`search` finds the nearest free entities (no seeds) of the other side, both ways. `match` scores the candidate pairs,
counts the support of their neighbourhoods, calibrates a confidence on the valid links where they are no seeds, and
decides. Test links are never looked at.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, EntityEmbeddings, IntArray, Neighbors, are_among
from largegnn.errors import InputError
from largegnn.matching import SearchOptions, search_both
from largegnn.matching.candidates import CandidateGraph, FloatArray, Places, build_candidates, csls, margins, places
from largegnn.matching.confidence import (
    Calibration,
    Threshold,
    best_f1,
    calibrate,
    cross_checked,
    highest_recall,
    uncalibrated,
)
from largegnn.matching.dense import dense_plan, fits_dense
from largegnn.matching.selection import SELECTIONS, mutual_knn
from largegnn.matching.support import SUPPORT_PER_SCORE, SupportFinder
from largegnn.matching.transport import transport_sparse
from largegnn.settings import MatchSettings, Settings

__all__ = ["match", "score_candidates", "search"]

_log = logging.getLogger(__name__)
Mask = npt.NDArray[np.bool_]
# Margin of a pair without a rival, by scoring; larger ones are cut to it. Transport scores are logarithms.
_ALONE = {"cosine": 0.25, "csls": 0.5, "transport": 5.0}
# Weights of CSLS, the two margins and support: a stand-in for runs without valid links. Those of CSLS were learnt from
# the valid links of ContEA_FR_EN, those of transport follow from how often pairs of EN_FR_15K_V1 are right by margin.
_STAND_IN = {
    "cosine": ((3.2, 13.0, 10.0, 0.4), -2.1),
    "csls": ((3.2, 6.5, 5.0, 0.4), -2.1),
    "transport": ((0.0, 0.65, 0.65, 0.0), -0.9),
}


def search(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, device: torch.device, seed: int
) -> tuple[Neighbors, Neighbors, dict[str, Any]]:
    """The nearest free targets of each free source, the other way round, and how they were found."""
    free = _free(task, settings) & embeddings.covered
    split = task.num_source_entities
    found = search_both(
        embeddings.vectors[:split],
        embeddings.vectors[split:],
        settings.search.k,
        settings.search.method,
        source_covered=free[:split],
        target_covered=free[split:],
        options=SearchOptions(
            device=str(device),
            recall=settings.search.recall,
            seed=seed % 2**31,
            max_memory_gb=settings.search.max_memory_gb,
        ),
    )
    neighbors, facts = [], {}
    for name, result, offset, others in (("source", found[0], 0, split), ("target", found[1], split, 0)):
        rows = np.flatnonzero((result.positions >= 0).any(axis=1))
        ids = result.positions[rows]
        neighbors.append(Neighbors(rows + offset, np.where(ids >= 0, ids + others, -1), result.scores[rows]))
        facts[f"{name}_search"] = {"method": result.method, "recall": result.recall, "sample": result.recall_sample}
        if result.recall is not None:
            _log.info("search: %s from the %s side, recall %.3f on a sample", result.method, name, result.recall)
    return neighbors[0], neighbors[1], facts


def match(
    task: AlignmentTask,
    embeddings: EntityEmbeddings,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    settings: Settings,
    device: torch.device,
) -> tuple[Alignment, dict[str, Any]]:
    """Candidate pairs with evidence, confidence and decision, and what was learnt about them."""
    options, seeds = settings.match, task.seeds(settings.protocol.seeds_from)
    graph = build_candidates(source_neighbors, target_neighbors)
    plain = csls(graph, source_neighbors, target_neighbors, options.csls_k)
    supported, support = plain, np.zeros_like(plain)
    if options.support_weight:
        # No name for the finder: it is large, and needed no longer.
        weight = options.support_weight * SUPPORT_PER_SCORE["csls"]
        supported, support = SupportFinder(task, seeds, weight).add_to(graph, plain)
    scores = score_candidates(graph, embeddings, supported, support, options, device)
    kept, selected, place = _select(graph, scores, options)
    most = _ALONE[options.scoring]
    gaps = [margins(ends, scores, most, kept) for ends in (graph.sources, graph.targets)]
    limited = [np.clip(gap, -most, most) for gap in gaps]
    features = np.stack([plain[kept], *limited, support[kept]], axis=1).astype(np.float64)
    best = (place.source == 1) & (place.target == 1)
    pairs = np.stack([graph.sources[kept], graph.targets[kept]], axis=1)
    calibration, learnt = _learn(task, settings, pairs, features, best, (source_neighbors, target_neighbors))
    confidence = calibration.confidence(features, best)
    threshold = _cut(confidence[selected], calibration, options)
    accepted = selected & (confidence >= threshold.confidence)
    order = np.lexsort((place.source, pairs[:, 0]))
    alignment = Alignment(
        pairs=pairs[order],
        cosines=graph.cosines[kept][order],
        scores=scores[kept][order],
        margins=np.minimum(*gaps)[order],
        source_ranks=place.source[order],
        target_ranks=place.target[order],
        confidence=confidence[order].astype(np.float32),
        accepted=accepted[order],
        reasons=_reasons(task, settings, embeddings.covered, pairs, selected, accepted),
    )
    facts = {
        "num_candidates": len(pairs),
        "num_accepted": int(accepted.sum()),
        "threshold": dataclasses.asdict(threshold),
        "calibration": dataclasses.asdict(calibration),
        "reasons": {name: int((alignment.reasons == code).sum()) for code, name in enumerate(REASONS)},
        **learnt,
    }
    return alignment, facts


def _select(graph: CandidateGraph, scores: FloatArray, options: MatchSettings) -> tuple[IntArray, Mask, Places]:
    """The edges worth keeping, ascending, which of them the selection chose, and their places at both ends."""
    place = places(graph, scores)
    is_chosen = np.zeros(len(graph), dtype=bool)
    is_chosen[SELECTIONS[options.selection](graph, scores, options.k, place)] = True
    is_kept = is_chosen.copy()
    is_kept[mutual_knn(graph, scores, options.k, place)] = True
    kept = np.flatnonzero(is_kept)
    return kept, is_chosen[kept], Places(place.source[kept], place.target[kept])


def score_candidates(
    graph: CandidateGraph,
    embeddings: EntityEmbeddings,
    supported_csls: FloatArray,
    support: FloatArray,
    options: MatchSettings,
    device: torch.device,
) -> FloatArray:
    """The score of each edge by the scoring of the settings, support counted in."""
    if options.scoring == "csls":
        return supported_csls
    cosines = graph.cosines + np.float32(options.support_weight) * support
    if options.scoring == "cosine" or not len(graph):
        return np.asarray(cosines, dtype=np.float32)
    sources, rows = np.unique(graph.sources, return_inverse=True)
    targets, columns = np.unique(graph.targets, return_inverse=True)
    shape = (len(sources), len(targets))
    how = options.temperature, options.iterations
    if not fits_dense(shape, device):
        return np.asarray(transport_sparse(rows, columns, cosines, shape, *how), dtype=np.float32)
    vectors = embeddings.vectors[sources], embeddings.vectors[targets]
    plan = dense_plan(*vectors, (rows, columns), cosines, *how, device)
    values: FloatArray = plan[torch.from_numpy(rows).to(device), torch.from_numpy(columns).to(device)].cpu().numpy()
    return values


def _free(task: AlignmentTask, settings: Settings) -> Mask:
    """Which entities are no seeds, (num_entities,)."""
    free = np.ones(task.num_entities, dtype=bool)
    free[task.seeds(settings.protocol.seeds_from).ravel()] = False
    return free


def _learn(
    task: AlignmentTask,
    settings: Settings,
    pairs: IntArray,
    features: npt.NDArray[np.float64],
    best: Mask,
    found: tuple[Neighbors, Neighbors],
) -> tuple[Calibration, dict[str, Any]]:
    """A calibration from the valid links, with a reliability table; a stand-in where there are too few."""
    num_free = (len(found[0].queries), len(found[1].queries))
    is_valid = settings.protocol.seeds_from == "train"
    valid = task.valid_links if is_valid else task.valid_links[:0]
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
            "match: %s, so the confidence is not calibrated: it orders pairs, but is no probability",
            "there are no valid links" if not len(valid) else "too few valid links were found among the pairs",
        )
        return uncalibrated(*_STAND_IN[settings.match.scoring], float(min(num_free))), {"reliability": None}
    sizes = (len(halves[0]), len(halves[1]))
    return calibration, {"reliability": cross_checked(features, right, touched, best, sizes, num_free)}


def _cut(confidence: npt.NDArray[np.float64], calibration: Calibration, options: MatchSettings) -> Threshold:
    """Where to cut the selected pairs."""
    if options.min_precision > 0:
        if not calibration.is_calibrated:
            raise InputError(
                "a precision cannot be promised without valid links",
                expected="valid links that are no seeds (the default protocol keeps a tenth of the seeds)",
                fix="leave --min-precision out, or use --seeds-from train with --valid-share above 0",
            )
        threshold = highest_recall(confidence, calibration.num_links, options.min_precision)
        if threshold is not None:
            return threshold
        best = highest_recall(confidence, calibration.num_links, float(confidence.max())) if len(confidence) else None
        raise InputError(
            f"no set of pairs reaches an expected precision of {options.min_precision:g}",
            found="no pairs at all"
            if best is None
            else f"at best {best.expected_precision:.3f}, with {best.num_pairs:,} pairs",
            fix="ask for less, give more seeds, or leave --min-precision out",
        )
    if options.threshold == "none" or not calibration.is_calibrated:
        kept = np.sort(confidence)
        everything = float(kept[0]) if len(kept) else 1.0
        expected = float(kept.sum()) if calibration.is_calibrated else None
        links = calibration.num_links
        return Threshold(
            everything,
            len(kept),
            None if expected is None or not len(kept) else expected / len(kept),
            None if expected is None else min(expected / links, 1.0),
            None if expected is None else 2 * expected / (len(kept) + links),
        )
    return best_f1(confidence, calibration.num_links)


def _reasons(
    task: AlignmentTask, settings: Settings, covered: Mask, pairs: IntArray, selected: Mask, accepted: Mask
) -> IntArray:
    """Why each entity has no accepted pair, as a place in `REASONS`; later lines overrule earlier ones."""
    code = {name: index for index, name in enumerate(REASONS)}
    reasons = np.full(task.num_entities, code["not mutual"], dtype=np.uint8)
    reasons[pairs[selected].ravel()] = code["below threshold"]
    reasons[~covered] = code["not covered"]
    isolated = np.ones(task.num_entities, dtype=bool)
    isolated[task.triples[:, 0]] = isolated[task.triples[:, 2]] = False
    reasons[isolated] = code["isolated"]
    reasons[pairs[accepted].ravel()] = code["aligned"]
    reasons[~_free(task, settings)] = code["seed"]
    return reasons
