"""From evidence to a probability: how likely a pair is right among all entities, and which pairs to put out.

In: features of candidate pairs (p, f), each of which speaks for a pair the more the higher it is, and which of the
pairs are valid links or touch one. Out: a `Calibration` that turns features into a confidence, and thresholds.
The idea, in three steps:
1. The features become one number, the evidence: a logistic regression with weights that are never negative, so that
   more evidence never lowers a confidence. It learns from pairs with an end in a valid link, whose truth is known.
2. Most entities may have no counterpart, and valid links say nothing about those. But valid links are a sample of all
   links, V of L: of the right pairs in a stretch of evidence V / L are valid links, so with r of them among N pairs its
   precision is r L / (V N). L is not known; it follows from the best stretch, where nearly all pairs are right:
   L <= N V / r there, and the tightest of these bounds is taken, less the errors seen among pairs with valid ends.
3. These precisions, made monotone (isotonic regression) and joined by straight lines, are the confidence.
It holds if valid links are like the links to be found. Cost: a sort and a small regression.

# Departs: the paper puts out every mutual neighbour and has no confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from largegnn.artifacts import ReliabilityRow
from largegnn.errors import ArtifactError

__all__ = [
    "Calibration",
    "Threshold",
    "best_f1",
    "calibrate",
    "cross_checked",
    "everything",
    "highest_recall",
    "reliability",
    "uncalibrated",
]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Knots = tuple[tuple[float, ...], tuple[float, ...]]
_RIGHT_PER_BIN = 25
_MOST_BINS = 40
_FEWEST_RIGHT = 10  # fewer known right pairs say too little
_RIDGE = 1e-3
_FIXPOINT = 20
_ROUNDING = 1e-9  # of a mean over millions of pairs


@dataclass(frozen=True)
class Calibration:
    """Weights of the features, and knots (evidence, confidence) of rising lines; `num_links` estimates all links.

    Pairs that are both ends' first choice have a line of their own: with the same evidence they are right more often
    than pairs that one end has something better for. `is_calibrated` is False where too few valid links were found to
    learn from: then the confidence is a stand-in that orders pairs but promises nothing.
    """

    weights: tuple[float, ...]
    offset: float
    best_knots: Knots
    other_knots: Knots
    num_links: float
    num_right: int
    is_calibrated: bool

    def evidence(self, features: npt.NDArray[Any]) -> Floats:
        """One number for each pair (p,)."""
        return np.asarray(features @ np.asarray(self.weights) + self.offset, dtype=np.float64)

    def confidence(self, features: npt.NDArray[Any], best: Mask) -> Floats:
        """The probability that each pair is right, (p,); `best` are both ends' first choice."""
        evidence = self.evidence(features)
        if not self.is_calibrated:
            return np.where(best, special.expit(evidence), 0.5 * special.expit(evidence))
        return np.where(best, np.interp(evidence, *self.best_knots), np.interp(evidence, *self.other_knots))


@dataclass(frozen=True)
class Threshold:
    """Where to cut: the lowest confidence put out, and what to expect of the pairs above it."""

    confidence: float
    num_pairs: int
    expected_precision: float | None
    expected_recall: float | None
    expected_f1: float | None


def uncalibrated(weights: tuple[float, ...], offset: float, num_links: float) -> Calibration:
    """A stand-in where there are no valid links to learn from."""
    return Calibration(weights, offset, ((), ()), ((), ()), num_links, 0, False)


def calibrate(
    features: npt.NDArray[Any], right: Mask, known: Mask, best: Mask, num_valid: int, num_free: tuple[int, int]
) -> Calibration | None:
    """Learn from pairs whose truth is `known`; `right` are valid links, `best` both ends' first choice.

    None if fewer than ten valid links are among the pairs. There are `num_valid` valid links in all, and `num_free`
    sources and targets that are no seeds.
    """
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2 or not (len(features) == len(right) == len(known) == len(best)):
        raise ArtifactError("features, truth and choice must be of the same pairs")
    if int((right & best).sum()) < _FEWEST_RIGHT:
        return None
    weights, offset = _fit_logistic(features[known], right[known])
    evidence = features @ weights + offset
    num_links = _estimate_links(evidence[best], right[best], known[best], num_valid, num_free)
    best_knots, other_knots = (
        _precision_knots(evidence[group], right[group], num_links / num_valid) for group in (best, ~best)
    )
    return Calibration(
        weights=tuple(map(float, weights)),
        offset=offset,
        best_knots=best_knots,
        other_knots=other_knots,
        num_links=num_links,
        num_right=int((right & best).sum()),
        is_calibrated=True,
    )


def everything(confidence: npt.NDArray[Any], calibration: Calibration) -> Threshold:
    """The cut that accepts every pair (p,); nothing is expected of pairs that are not calibrated."""
    kept = np.sort(confidence)
    lowest = float(kept[0]) if len(kept) else 1.0
    if not calibration.is_calibrated:
        return Threshold(lowest, len(kept), None, None, None)
    return _threshold(float(kept.sum()), len(kept), lowest, calibration.num_links)


def best_f1(confidence: npt.NDArray[Any], num_links: float) -> Threshold:
    """The cut with the highest expected F1 over pairs (p,)."""
    expected, counts, lowest = _possible_cuts(confidence)
    if not len(counts):
        return _threshold(0.0, 0, 1.0, num_links)
    best = int(np.argmax(2 * expected / (counts + num_links)))
    return _threshold(expected[best], counts[best], lowest[best], num_links)


def highest_recall(confidence: npt.NDArray[Any], num_links: float, precision: float) -> Threshold | None:
    """The cut that puts out most pairs with at least this expected precision; None if no pair is that sure."""
    expected, counts, lowest = _possible_cuts(confidence)
    reaching = np.flatnonzero(expected / counts >= precision - _ROUNDING)
    if not len(reaching):
        return None
    most = reaching[-1]
    return _threshold(expected[most], counts[most], lowest[most], num_links)


def reliability(
    confidence: npt.NDArray[Any], right: npt.NDArray[Any], num_bins: int = 10
) -> tuple[ReliabilityRow, ...]:
    """Tenths of the confidence: pairs in it, mean confidence, and the share `right` (p,) adds up to."""
    place = np.minimum((np.asarray(confidence) * num_bins).astype(np.int64), num_bins - 1)
    rows = []
    for index in range(num_bins):
        inside = place == index
        count = int(inside.sum())
        rows.append(
            ReliabilityRow(
                low=index / num_bins,
                high=(index + 1) / num_bins,
                pairs=count,
                confidence=float(np.mean(confidence[inside])) if count else None,
                right=min(float(np.mean(right[inside])), 1.0) if count else None,
            )
        )
    return tuple(rows)


def cross_checked(
    features: npt.NDArray[Any],
    right: Mask,
    touched: Mask,
    best: Mask,
    num_valid: tuple[int, int],
    num_free: tuple[int, int],
) -> tuple[ReliabilityRow, ...] | None:
    """A reliability table in which each half of the valid links is judged by what the other half taught.

    `right` and `touched` (p, 2) say for either half which pairs are its links, and which have an end in one of them.
    """
    confidences, rights = [], []
    for teacher, judge in ((0, 1), (1, 0)):
        taught = calibrate(features, right[:, teacher], touched[:, teacher], best, num_valid[teacher], num_free)
        if taught is None:
            return None
        rows = best & ~right[:, teacher]
        # What the teacher knew is taken out, so the judge's links stand for all the others.
        scale = (taught.num_links - num_valid[teacher]) / num_valid[judge]
        confidences.append(taught.confidence(features, best)[rows])
        rights.append(scale * right[rows, judge])
    return reliability(np.concatenate(confidences), np.concatenate(rights))


def _possible_cuts(confidence: npt.NDArray[Any]) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """For each cut: right pairs to expect above it, pairs above it, the lowest confidence (c,), from few to all pairs.

    Pairs of equal confidence go together; there are many of those, where the line of a calibration is level.
    """
    ordered = np.sort(np.asarray(confidence, dtype=np.float64))[::-1]
    counts = np.flatnonzero(np.diff(ordered, append=-np.inf)) + 1
    return np.cumsum(ordered)[counts - 1], counts, ordered[counts - 1]


def _threshold(expected: float, count: int, lowest: float, num_links: float) -> Threshold:
    expected, count = float(expected), int(count)
    return Threshold(
        confidence=float(lowest),
        num_pairs=count,
        expected_precision=expected / count if count else None,
        expected_recall=min(expected / num_links, 1.0) if num_links else None,
        expected_f1=2 * expected / (count + num_links) if count + num_links else None,
    )


def _fit_logistic(features: Floats, right: Mask) -> tuple[Floats, float]:
    """Weights (f,), none below zero, and offset of a logistic regression."""
    scale = np.maximum(features.std(axis=0), 1e-6)
    scaled, truth = features / scale, right.astype(np.float64)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits = scaled @ parameters[:-1] + parameters[-1]
        value = float(np.mean(np.logaddexp(0, logits) - truth * logits)) + _RIDGE * float(
            parameters[:-1] @ parameters[:-1]
        )
        error = (special.expit(logits) - truth) / len(truth)
        gradient = np.concatenate([error @ scaled + 2 * _RIDGE * parameters[:-1], [error.sum()]])
        return value, gradient

    bounds = [(0.0, None)] * features.shape[1] + [(None, None)]
    start = np.concatenate([np.full(features.shape[1], 0.1), [0.0]])
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return found.x[:-1] / scale, float(found.x[-1])


def _estimate_links(evidence: Floats, right: Mask, known: Mask, num_valid: int, num_free: tuple[int, int]) -> float:
    """How many links there are, valid ones included: the tightest bound over the best stretches of evidence."""
    order = np.argsort(-evidence, kind="stable")
    num_right = np.cumsum(right[order])
    num_wrong = np.cumsum((known & ~right)[order])
    count = np.arange(1, len(order) + 1)
    least = max(_FEWEST_RIGHT, 0.1 * num_right[-1])
    marks = np.searchsorted(num_right, np.linspace(least, num_right[-1], 20))
    marks = np.minimum(marks, len(order) - 1)
    rights, wrongs = num_right[marks].astype(np.float64), num_wrong[marks]
    # The lowest of twenty noisy bounds would be too low: each is widened by one standard error first.
    bounds = count[marks] * num_valid / rights * (1 + 1 / np.sqrt(rights))
    num_links = float(min(num_free))
    for _ in range(_FIXPOINT):
        # A wrong pair is noticed if one of its ends is a valid link's: the likelier, the more entities have links.
        noticed = num_links / num_free[0] + num_links / num_free[1]
        found = float((bounds * rights / (rights + wrongs / noticed)).min())
        num_links = float(np.clip(found, num_valid, min(num_free)))
    return num_links


def _precision_knots(evidence: Floats, right: Mask, links_per_valid: float) -> Knots:
    """Knots of the line from evidence to precision."""
    if not len(evidence):
        return (0.0,), (0.0,)
    order = np.argsort(evidence, kind="stable")
    evidence, right = evidence[order], right[order]
    num_right = int(right.sum())
    num_bins = int(np.clip(num_right // _RIGHT_PER_BIN, 1, _MOST_BINS))
    # Bins hold equally many right pairs: wide where right pairs are rare. Below the lowest right pair there is a bin of
    # its own, which expects half a right pair.
    so_far = np.cumsum(right)
    before: npt.NDArray[np.int64] = so_far - right
    above = so_far > 0
    bins = np.where(above, 1 + np.minimum(before * num_bins // max(num_right, 1), num_bins - 1), 0)
    counts = np.bincount(bins, minlength=num_bins + 1).astype(np.float64)
    found = np.bincount(bins, weights=right, minlength=num_bins + 1)
    found[0] = 0.5
    filled = counts > 0
    centres = np.bincount(bins, weights=evidence, minlength=num_bins + 1)[filled] / counts[filled]
    precision = np.minimum(links_per_valid * found[filled] / counts[filled], 1.0)
    rising = optimize.isotonic_regression(precision, weights=counts[filled], increasing=True).x
    return tuple(centres.tolist()), tuple(np.clip(rising, 0.0, 1.0).tolist())
