"""Several kinds of evidence become one similarity, with weights that are learnt from the pairs that are surely right.

In: columns of evidence (e, c) of candidate edges. Out: weights (c,), none below zero, that add up to 1.
The idea: pairs that are each other's clear best by the present weights are taken for right, the other candidates of
their ends for wrong; a logistic regression says which evidence tells them apart; then the same again. Evidence that
does not separate gets no weight, so a column of noise does no harm. With known links these are the right ones.
Cost: a few regressions over the edges of the sure pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from largegnn.artifacts import IntArray, Mask

__all__ = ["best_at_both_ends", "fit_weights", "learn_weights", "localised"]

Floats = npt.NDArray[np.float64]
_RIDGE = 1e-3
_PASSES = 4
_SURE_SHARE = 0.75
_MOST_EDGES = 400_000


def learn_weights(
    sources: IntArray, targets: IntArray, evidence: Floats, start: Floats, known: Mask | None = None, seed: int = 0
) -> Floats:
    """Weights of the columns of `evidence` (e, c) by the edges themselves, or by those `known` (e,) to be right."""
    weights: Floats = start / start.sum()
    for _ in range(1 if known is not None else _PASSES):
        right = known if known is not None else _sure(sources, targets, evidence @ weights)
        if int(right.sum()) < 2 * evidence.shape[1]:
            return weights
        rows = np.flatnonzero(np.isin(sources, sources[right]) | np.isin(targets, targets[right]))
        if len(rows) > _MOST_EDGES:
            rows = np.sort(np.random.default_rng(seed).choice(rows, _MOST_EDGES, replace=False))
        found = fit_weights(evidence[rows], right[rows])
        if found.sum() <= 0:
            return weights
        weights = found / found.sum()
    return weights


def fit_weights(evidence: Floats, right: Mask) -> Floats:
    """Weights (c,), none below zero, of a logistic regression."""
    scale = np.maximum(evidence.std(axis=0), 1e-6)
    scaled, truth = evidence / scale, right.astype(np.float64)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        weights, offset = parameters[:-1], parameters[-1]
        logits = scaled @ weights + offset
        value = float(np.mean(np.logaddexp(0, logits) - truth * logits)) + _RIDGE * float(weights @ weights)
        error = (special.expit(logits) - truth) / len(truth)
        return value, np.concatenate([error @ scaled + 2 * _RIDGE * weights, [error.sum()]])

    start = np.concatenate([np.full(evidence.shape[1], 0.1), [0.0]])
    bounds = [(0.0, None)] * evidence.shape[1] + [(None, None)]
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x[:-1] / scale)


def best_at_both_ends(sources: IntArray, targets: IntArray, scores: Floats) -> tuple[IntArray, Floats]:
    """The edges that are best at both ends, and how far each lies above the best rival of either end, or above zero."""
    firsts, seconds = [], []
    for ends in (sources, targets):
        first = np.full(int(ends.max(initial=-1)) + 1, -np.inf)
        np.maximum.at(first, ends, scores)
        second = np.zeros_like(first)
        lower = scores < first[ends]
        np.maximum.at(second, ends[lower], scores[lower])
        firsts.append(first)
        seconds.append(second)
    best = np.flatnonzero((scores >= firsts[0][sources]) & (scores >= firsts[1][targets]))
    rival = np.maximum(seconds[0][sources[best]], seconds[1][targets[best]])
    return best, scores[best] - rival


def localised(sources: IntArray, targets: IntArray, scores: Floats, k: int) -> Floats:
    """CSLS of each edge (e,) among the candidates: twice the score less the means of the k best of both ends."""
    result = 2 * scores
    for ends in (sources, targets):
        order = np.lexsort((-scores, ends))
        grouped = ends[order]
        starts = np.flatnonzero(np.concatenate([[True], grouped[1:] != grouped[:-1]])) if len(order) else order
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        near = order[rank < k]
        # Of k, also where there are fewer: candidates that were not found are no nearer than zero.
        means = np.bincount(ends[near], scores[near], minlength=int(ends.max(initial=-1)) + 1) / k
        result = result - means[ends]
    return result


def _sure(sources: IntArray, targets: IntArray, scores: Floats) -> Mask:
    """The clearest three quarters of the pairs that are each other's best."""
    best, gaps = best_at_both_ends(sources, targets, scores)
    right = np.zeros(len(scores), dtype=bool)
    right[best[np.argsort(-gaps, kind="stable")[: int(_SURE_SHARE * len(best))]]] = True
    return right
