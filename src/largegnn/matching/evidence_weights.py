"""Learn weights that combine several kinds of evidence into one similarity, from the most confident pairs.

In: a candidate graph and columns of evidence (e, c) of its edges. Out: weights (c,), none below zero, that add up to 1.
The idea: pairs that are each other's clear best by the present weights are taken for right, the other candidates of
their ends for wrong; a logistic regression finds which evidence separates them; this is repeated. Evidence that does
not separate gets no weight, so a column of noise does no harm. With known links these are the right ones.
Cost: a few regressions over the edges of the confident pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.matching.candidates import preferred
from largegnn.matching.confidence.logistic import fit_logistic

__all__ = ["confident_edges", "learn_weights", "localised"]

Floats = npt.NDArray[np.float64]
_RIDGE = 1e-3
_PASSES = 4
_SURE_SHARE = 0.75
_ALONE = 1.0  # margin of an edge without a rival: as clear as can be
_MOST_EDGES = 400_000


def learn_weights(
    graph: CandidateGraph, evidence: Floats, start: Floats, known: Mask | None = None, seed: int = 0
) -> Floats:
    """Weights of the columns of `evidence` (e, c) by the edges themselves, or by those `known` (e,) to be right."""
    weights: Floats = start / start.sum()
    for _ in range(1 if known is not None else _PASSES):
        right = known
        if right is None:
            right = np.zeros(len(graph), dtype=bool)
            right[confident_edges(graph, evidence @ weights)] = True
        if int(right.sum()) < 2 * evidence.shape[1]:
            return weights
        rows = np.flatnonzero(
            np.isin(graph.sources, graph.sources[right]) | np.isin(graph.targets, graph.targets[right])
        )
        if len(rows) > _MOST_EDGES:
            rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST_EDGES, replace=False))
        found = _fit(evidence[rows], right[rows])
        if found.sum() <= 0:
            return weights
        weights = found / found.sum()
    return weights


def confident_edges(graph: CandidateGraph, scores: Floats) -> IntArray:
    """The clearest three quarters of the edges that are best at both ends."""
    best, gaps = preferred(graph, scores.astype(np.float32), _ALONE)
    clear: IntArray = best[np.argsort(-gaps, kind="stable")[: int(_SURE_SHARE * len(best))]]
    return clear


def localised(graph: CandidateGraph, scores: Floats, k: int) -> Floats:
    """CSLS of each edge (e,) among the candidates: twice the score less the means of the k best of both ends."""
    result = 2 * scores
    for ends in (graph.sources, graph.targets):
        # Of k, also where there are fewer: candidates that were not found are no nearer than zero.
        result -= _sums_of_best(ends, scores, k, int(ends.max(initial=-1)) + 1)[ends] / k
    return result


@compiled
def _sums_of_best(ends: IntArray, scores: Floats, k: int, num_ends: int) -> Floats:
    """The sum of the k highest scores of each end (n,), from the highest down."""
    best = np.full((num_ends, k), -np.inf)
    for edge in range(len(ends)):
        own, score = best[ends[edge]], scores[edge]
        place = k - 1
        if score <= own[place]:
            continue
        while place > 0 and score > own[place - 1]:
            own[place] = own[place - 1]
            place -= 1
        own[place] = score
    sums = np.zeros(num_ends)
    for end in range(num_ends):
        for place in range(k):
            if best[end, place] == -np.inf:
                break
            sums[end] += best[end, place]
    return sums


def _fit(evidence: Floats, right: Mask) -> Floats:
    """Weights (c,) of a logistic regression, drawn a little to zero."""
    scale, num_columns = np.maximum(evidence.std(axis=0), 1e-6), evidence.shape[1]
    counts = np.full(len(evidence), 1 / len(evidence))
    spread = np.append(np.full(num_columns, (2 * _RIDGE) ** -0.5), np.inf)
    found = fit_logistic(evidence / scale, right.astype(np.float64), counts, np.zeros(num_columns + 1), spread)
    weights: Floats = found[:-1] / scale
    return weights
