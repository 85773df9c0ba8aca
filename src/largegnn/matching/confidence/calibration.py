"""Calibrate the confidence of pairs by the valid links, with an interval for the number of links.

In: pairs with features, the valid links, and how many links there may be. Out: a `Calibration` that turns features into
a confidence, with a sample of the curves that agree with the valid links, for intervals. Three steps:
1. `labelled_pairs`: pairs that touch a valid link are known to be correct or wrong; they turn features into one number.
2. `link_count`: the number of all links, since most entities may have no counterpart.
3. `posterior`: the curves from evidence to precision that agree with 1. and 2.
With many labelled pairs the curves are corrected to follow them (`_bend`). Pairs that are not the first choice of both
ends have shifted curves. A confidence is a probability if valid links are a random sample of all links; with fewer than
30 there is only a score, which orders pairs. Cost: linear in pairs, and a sort; some seconds for a million.

# Departs: the paper accepts every mutual neighbour and has no confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, Mask, ReliabilityRow, are_among
from largegnn.errors import ArtifactError
from largegnn.machine.deferred import deferred
from largegnn.matching.confidence.labelled_pairs import Evidence, LabelledPairs, Weights, label_pairs, learn_evidence
from largegnn.matching.confidence.link_count import LinkCount
from largegnn.matching.confidence.posterior import Curves, Histogram, OtherPairs, fit_curves, histogram
from largegnn.matching.confidence.reliability import reliability_by_labels

if TYPE_CHECKING:
    from scipy import optimize, special
else:
    optimize, special = deferred("scipy.optimize"), deferred("scipy.special")

__all__ = ["MIN_VALID_LINKS", "Calibration", "CurveRow", "calibrate", "uncalibrated"]

Floats = npt.NDArray[np.float64]

MIN_VALID_LINKS = 30
# Of the correction of the curves: labelled pairs for each knot, knots, and pairs added to each knot as if expected.
_PAIRS_PER_KNOT, _MAX_KNOTS, _KNOT_PRIOR = 40, 16, 5.0
_OTHER_PRIOR_MEAN, _OTHER_PRIOR_STD = -1.0, 1.0  # shift of the log-odds of pairs that are not both ends' first choice
_GOLDEN_RATIO = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class CurveRow:
    """The parameters of a curve that agrees with the valid links, and the number of links that it assumes."""

    ceiling: float
    slope: float
    offset: float
    other_shift: float
    num_links: float


@dataclass(frozen=True)
class Calibration:
    """Weights of the features, and curves from evidence to precision, both fitted to the valid links.

    Of the first choices, `num_judged` touch one of the `num_valid` valid links and `num_right` are a valid link.
    `num_links` estimates the links among entities that are not seeds, with a 90 % interval. `wrong_touching` is the
    share of the wrong first choices that have an end with a counterpart elsewhere. The curves are evaluated at `knots`
    of evidence, where `bend` is added to their log-odds. `is_calibrated` is False if there were too few valid links:
    `rate` then gives a score that orders pairs, no estimate of how many are correct.
    """

    weights: tuple[float, ...]
    offset: float
    num_valid: int
    num_judged: int
    num_right: int
    num_links: float
    num_links_low: float
    num_links_high: float
    is_calibrated: bool
    wrong_touching: float = 1.0
    centre: float = 0.0
    knots: tuple[float, ...] = ()
    bend: tuple[float, ...] = ()
    curves: tuple[CurveRow, ...] = ()
    basis: Literal["valid links", "decoys"] = "valid links"

    @property
    def measure(self) -> Literal["confidence", "score"]:
        """The name of the numbers that `rate` gives."""
        return "confidence" if self.is_calibrated else "score"

    def evidence(self, features: npt.NDArray[Any]) -> Floats:
        """Compute the evidence of each pair (p,) from its features (p, f)."""
        return Weights(np.asarray(self.weights), self.offset).evidence(features)

    def rate(self, features: npt.NDArray[Any], best: Mask) -> Floats:
        """Compute the confidence or score (p,) of each pair, from 0 to 1; `best` (p,): first choices of both ends."""
        evidence = self.evidence(features)
        if not self.is_calibrated:
            return np.asarray(special.expit(evidence) * np.where(best, 1.0, 0.5))
        best_precision = self.precision_at_knots(is_best=True).mean(axis=0)
        other_precision = self.precision_at_knots(is_best=False).mean(axis=0)
        confidence = np.interp(evidence, self.knots, best_precision)
        confidence[~best] = np.interp(evidence[~best], self.knots, other_precision)
        return np.asarray(confidence, dtype=np.float64)

    def precision_at_knots(self, is_best: bool) -> Floats:
        """Compute the precision by every curve at the knots, (c, k), ascending; for first choices or other pairs."""
        rows = np.array([(row.ceiling, row.slope, row.offset, row.num_links) for row in self.curves]).T
        shift = 0.0 if is_best else np.array([row.other_shift for row in self.curves])
        curves = Curves(self.centre, rows[0], rows[1], rows[2] + shift, rows[3])
        precision = curves.precision(np.asarray(self.knots), np.asarray(self.bend) if is_best else 0.0)
        return np.asarray(np.maximum.accumulate(precision, axis=1))


def uncalibrated(weights: tuple[float, ...], offset: float, num_links: float, num_valid: int = 0) -> Calibration:
    """Make a calibration that only scores pairs, for too few valid links."""
    return Calibration(weights, offset, num_valid, 0, 0, num_links, 0.0, num_links, False)


def calibrate(
    pairs: IntArray,
    features: npt.NDArray[Any],
    best: Mask,
    valid: IntArray,
    links: LinkCount,
    num_free: tuple[int, int],
    default: tuple[tuple[float, ...], float],
) -> tuple[Calibration, tuple[ReliabilityRow, ...] | None]:
    """Calibrate pairs (p, 2) with features (p, f) by valid links (v, 2), and measure the reliability by these links.

    `best` (p,): whether a pair is the first choice of both ends. `num_free`: how many sources and targets may be
    matched. `default`: weights and offset for too few valid links; the reliability is then None.
    """
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2 or not len(pairs) == len(features) == len(best) or features.shape[1] != len(default[0]):
        raise ArtifactError("pairs, features, first choices and default weights must fit together")
    if len(valid) < MIN_VALID_LINKS or not best.any():
        return uncalibrated(*default, links.mean, len(valid)), None
    first = np.flatnonzero(best)
    labelled = label_pairs(pairs[first], valid)
    evidence = learn_evidence(features[first], labelled, Weights(np.asarray(default[0]), default[1]))
    best_histogram = histogram(evidence.all)
    other = np.flatnonzero(~best)
    others = OtherPairs(len(other), int(are_among(pairs[other], valid).sum()))
    curves = fit_curves(best_histogram, labelled, evidence.labelled, others, len(valid), links, num_free)
    bend = _bend(best_histogram, labelled, evidence, curves)
    other_histogram = histogram(evidence.weights.evidence(features[other]))
    shifts = _other_shifts(curves, other_histogram, others.num_right, len(valid))
    knots = np.union1d(best_histogram.centres, other_histogram.centres)
    mean_precision = curves.precision(best_histogram.centres, bend).mean(axis=0)
    num_wrong = float(best_histogram.counts @ (1 - mean_precision))
    linked = _linked_ends(labelled, num_wrong, float(curves.num_links.mean()) / len(valid))
    low, high = np.quantile(curves.num_links, (0.05, 0.95)).tolist()
    rows = zip(curves.ceilings, curves.slopes, curves.offsets, shifts, curves.num_links, strict=True)
    calibration = Calibration(
        weights=tuple(evidence.weights.features.tolist()),
        offset=evidence.weights.offset,
        num_valid=len(valid),
        num_judged=len(labelled.rows),
        num_right=labelled.num_right,
        num_links=float(curves.num_links.mean()),
        num_links_low=low,
        num_links_high=high,
        is_calibrated=True,
        wrong_touching=1 - (1 - linked[0]) * (1 - linked[1]),
        centre=curves.centre,
        knots=tuple(knots.tolist()),
        bend=tuple(np.interp(knots, best_histogram.centres, bend).tolist()),
        curves=tuple(CurveRow(*(round(float(number), 6) for number in row)) for row in rows),
    )
    precision = calibration.precision_at_knots(is_best=True).mean(axis=0)
    confidence = np.interp(evidence.all, knots, precision)
    cross_fitted = np.interp(evidence.labelled, knots, precision)
    return calibration, reliability_by_labels(confidence, cross_fitted, labelled, sum(linked))


def _linked_ends(labelled: LabelledPairs, num_wrong: float, links_per_valid: float) -> tuple[float, float]:
    """Estimate the shares of wrong first choices whose source, and whose target, has a counterpart elsewhere."""
    # Plus half an end: none among the valid links does not mean none at all.
    num_linked = ((ends + 0.5) * links_per_valid for ends in labelled.num_linked_in_wrong)
    sources, targets = (min(1.0, ends / max(num_wrong, 1.0)) for ends in num_linked)
    return sources, targets


def _bend(pairs: Histogram, labelled: LabelledPairs, evidence: Evidence, curves: Curves) -> Floats:
    """Compute what to add to the log-odds at each bin (b,) so that the mean curve follows the labelled pairs.

    In groups of labelled pairs the number of correct pairs is compared with the expected number. The sum over all pairs
    is kept: the number of all correct pairs is better known than that of correct labelled pairs.
    """
    num_groups = min(len(labelled.rows) // _PAIRS_PER_KNOT, _MAX_KNOTS)
    if num_groups < 3:
        return np.zeros(len(pairs.centres))
    sample_weight, correct = labelled.sample_weight, labelled.sample_weight * labelled.is_correct
    expected = special.logit(np.clip(curves.precision(evidence.labelled).mean(axis=0), 1e-6, 1 - 1e-6))
    # Labelled pairs have an end with a counterpart, hence are correct more often than other pairs.
    expected = special.expit(expected + _shift_to(expected, sample_weight, float(correct.sum())))
    knots, corrections = [], []
    for group in np.array_split(np.argsort(evidence.labelled, kind="stable"), num_groups):
        num_correct = float(correct[group].sum())
        num_expected = float((sample_weight * expected)[group].sum())
        size = float(sample_weight[group].sum())
        knots.append(float(evidence.labelled[group].mean()))
        corrections.append(_log_ratio(num_correct, num_expected) - _log_ratio(size - num_correct, size - num_expected))
    mean = np.clip(curves.precision(pairs.centres).mean(axis=0), 1e-6, 1 - 1e-6)
    logits = special.logit(mean)
    corrected = logits + np.interp(pairs.centres, knots, corrections)
    rising = optimize.isotonic_regression(corrected, weights=pairs.counts).x
    return np.asarray(rising + _shift_to(rising, pairs.counts, float(pairs.counts @ mean)) - logits)


def _log_ratio(observed: float, expected: float) -> float:
    return float(np.log((observed + _KNOT_PRIOR) / (expected + _KNOT_PRIOR)))


def _shift_to(logits: Floats, weights: Floats, total: float) -> float:
    """Find what to add to the logits so that the weighted sum of the probabilities is `total`."""
    total = float(np.clip(total, 1e-6 * weights.sum(), (1 - 1e-6) * weights.sum()))
    return float(optimize.brentq(lambda shift: weights @ special.expit(logits + shift) - total, -40.0, 40.0))


def _other_shifts(curves: Curves, pairs: Histogram, num_right: int, num_valid: int) -> Floats:
    """Estimate for each curve (c,) the shift of its log-odds for pairs that are not first choices.

    `num_right` of the `num_valid` valid links are among these pairs.
    """
    num_curves = len(curves.slopes)
    if not len(pairs.centres):
        return np.full(num_curves, _OTHER_PRIOR_MEAN)
    shifts = np.linspace(-6.0, 4.0, 81)
    log_posteriors = []
    for shift in shifts:
        expected = num_valid / curves.num_links * (curves.precision(pairs.centres, shift) @ pairs.counts)
        prior = -0.5 * ((shift - _OTHER_PRIOR_MEAN) / _OTHER_PRIOR_STD) ** 2
        log_posteriors.append(special.xlogy(num_right, expected) - expected + prior)
    weights = special.softmax(np.stack(log_posteriors, axis=1), axis=1)
    # One shift for each curve, at quantiles that the golden ratio spreads evenly.
    levels = (np.arange(num_curves) * _GOLDEN_RATIO + 0.5) % 1.0
    indices = (np.cumsum(weights, axis=1) < levels[:, None]).sum(axis=1)
    return np.asarray(shifts[np.minimum(indices, len(shifts) - 1)])
