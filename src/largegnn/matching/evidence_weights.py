"""Learn weights that combine several kinds of evidence into one similarity, from the most confident pairs.

In: a candidate graph and columns of evidence (e, c) of its edges. Out: weights (c,), none below zero, with a sum of 1.
The idea: the clearest pairs that are best at both ends by the present weights are assumed correct, the other candidates
of their ends wrong; a logistic regression finds the evidence that separates them; and this is repeated. Evidence that
does not separate them gets no weight, so that a column of noise does no harm. Known links replace the assumed pairs.
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
_CONFIDENT_SHARE = 0.75
_LONE_MARGIN = 1.0  # margin of an edge without a rival
_MAX_EDGES = 400_000


def learn_weights(
    graph: CandidateGraph, evidence: Floats, start: Floats, known: Mask | None = None, seed: int = 0
) -> Floats:
    """Learn weights of the columns of `evidence` (e, c), from confident edges or edges `known` (e,) to be right."""
    weights: Floats = start / start.sum()
    for _ in range(1 if known is not None else _PASSES):
        is_correct = known
        if is_correct is None:
            is_correct = np.zeros(len(graph), dtype=bool)
            is_correct[confident_edges(graph, evidence @ weights)] = True
        if int(is_correct.sum()) < 2 * evidence.shape[1]:
            return weights
        rows = np.flatnonzero(
            np.isin(graph.sources, graph.sources[is_correct]) | np.isin(graph.targets, graph.targets[is_correct])
        )
        if len(rows) > _MAX_EDGES:
            rows = np.sort(np.random.default_rng(seed).choice(rows, _MAX_EDGES, replace=False))
        fitted = _fit(evidence[rows], is_correct[rows])
        if fitted.sum() <= 0:
            return weights
        weights = fitted / fitted.sum()
    return weights


def confident_edges(graph: CandidateGraph, scores: Floats) -> IntArray:
    """Find the three quarters of the edges that are best at both ends with the largest margins."""
    best, gaps = preferred(graph, scores.astype(np.float32), _LONE_MARGIN)
    clear: IntArray = best[np.argsort(-gaps, kind="stable")[: int(_CONFIDENT_SHARE * len(best))]]
    return clear


def localised(graph: CandidateGraph, scores: Floats, k: int) -> Floats:
    """Compute CSLS of each edge (e,) among the candidates: twice the score less the mean of the k best of each end."""
    result = 2 * scores
    for ends in (graph.sources, graph.targets):
        # Divided by k even if an end has fewer candidates: missing candidates count as 0.
        result -= _sums_of_best(ends, scores, k, int(ends.max(initial=-1)) + 1)[ends] / k
    return result


@compiled
def _sums_of_best(ends: IntArray, scores: Floats, k: int, num_ends: int) -> Floats:
    """Sum the k highest scores of each end (n,), in descending order."""
    best = np.full((num_ends, k), -np.inf)
    for edge in range(len(ends)):
        row, score = best[ends[edge]], scores[edge]
        place = k - 1
        if score <= row[place]:
            continue
        while place > 0 and score > row[place - 1]:
            row[place] = row[place - 1]
            place -= 1
        row[place] = score
    sums = np.zeros(num_ends)
    for end in range(num_ends):
        for place in range(k):
            if best[end, place] == -np.inf:
                break
            sums[end] += best[end, place]
    return sums


def _fit(evidence: Floats, is_correct: Mask) -> Floats:
    """Fit the weights (c,) of a logistic regression that is slightly regularised towards zero."""
    scale, num_columns = np.maximum(evidence.std(axis=0), 1e-6), evidence.shape[1]
    sample_weight = np.full(len(evidence), 1 / len(evidence))
    prior_std = np.append(np.full(num_columns, (2 * _RIDGE) ** -0.5), np.inf)
    prior_mean = np.zeros(num_columns + 1)
    parameters = fit_logistic(evidence / scale, is_correct.astype(np.float64), sample_weight, prior_mean, prior_std)
    weights: Floats = parameters[:-1] / scale
    return weights
