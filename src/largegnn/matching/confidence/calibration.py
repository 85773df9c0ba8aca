"""Calibrate by the valid links how likely a pair is right, among all entities, with an interval.

In: pairs with features, the valid links, and how many links there may be. Out: a `Calibration` that turns features
into a confidence, and keeps a sample of the curves that agree with the valid links, for intervals.
The idea, in three steps, each in a file of its own:
1. `labelled_pairs`: pairs that touch a valid link are right or wrong for certain; by them features become one number.
2. `link_count`: how many links there are at all, since most entities may have no counterpart.
3. `posterior`: the curves from evidence to precision that agree with both.
Where many pairs are labelled, the curves are bent to them (`_bend`). Pairs that are not both ends' first choice have
curves of their own: the same, shifted, by how many valid links are among them.
The numbers mean what they say if valid links are a random sample of all links. With fewer than 30 valid links nothing
is calibrated: there is a score that orders pairs, and no confidence.
Cost: linear in pairs, apart from a sort; a million take some seconds.

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

__all__ = ["FEWEST_VALID", "Calibration", "CurveRow", "calibrate", "uncalibrated"]

Floats = npt.NDArray[np.float64]

FEWEST_VALID = 30
_PER_BEND, _MOST_BENDS, _BEND_PRIOR = 40, 16, 5.0  # labelled pairs for each knot of the bend; pairs that speak for none
_OTHER_SHIFT, _OTHER_SPREAD = -1.0, 1.0  # of the log-odds of pairs that are not both ends' first choice
_GOLDEN = (np.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class CurveRow:
    """One curve that agrees with the valid links, and the number of links that goes with it."""

    ceiling: float
    slope: float
    offset: float
    other_shift: float
    num_links: float


@dataclass(frozen=True)
class Calibration:
    """What was learnt from the valid links: weights of the features, and curves from evidence to precision.

    It rests on `num_valid` valid links; `num_judged` first choices touch one of them, `num_right` are one.
    `num_links` estimates the links among entities that are no seeds, with a 90 % interval; of the wrong first choices,
    the share `wrong_touching` has an end with a counterpart elsewhere. The curves are read at `knots` of evidence,
    where `bend` is added to their log-odds. If `is_calibrated` is False there were too few valid links: what `rate`
    gives is a score that orders pairs and is no estimate of how many are right.
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
        """What to call the numbers of `rate`."""
        return "confidence" if self.is_calibrated else "score"

    def evidence(self, features: npt.NDArray[Any]) -> Floats:
        """One number for each pair (p,)."""
        return Weights(np.asarray(self.weights), self.offset).evidence(features)

    def rate(self, features: npt.NDArray[Any], best: Mask) -> Floats:
        """The confidence of each pair, or its score, (p,) from 0 to 1; `best` are both ends' first choice."""
        evidence = self.evidence(features)
        if not self.is_calibrated:
            return np.asarray(special.expit(evidence) * np.where(best, 1.0, 0.5))
        first, other = (self.precision_at_knots(is_best).mean(axis=0) for is_best in (True, False))
        rates = np.interp(evidence, self.knots, first)
        rates[~best] = np.interp(evidence[~best], self.knots, other)
        return np.asarray(rates, dtype=np.float64)

    def precision_at_knots(self, is_best: bool) -> Floats:
        """The precision by every curve at the knots, (c, k), rising; of first choices, or of other pairs."""
        rows = np.array([(row.ceiling, row.slope, row.offset, row.num_links) for row in self.curves]).T
        shift = 0.0 if is_best else np.array([row.other_shift for row in self.curves])
        curves = Curves(self.centre, rows[0], rows[1], rows[2] + shift, rows[3])
        found = curves.precision(np.asarray(self.knots), np.asarray(self.bend) if is_best else 0.0)
        return np.asarray(np.maximum.accumulate(found, axis=1))


def uncalibrated(weights: tuple[float, ...], offset: float, num_links: float, num_valid: int = 0) -> Calibration:
    """A score where there are too few valid links to learn from."""
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
    """A calibration of pairs (p, 2) with features (p, f) by valid links (v, 2), and how reliable it is by the same.

    `best` (p,) are both ends' first choice. There are `num_free` sources and targets that may be matched; `default`
    are weights and offset without enough valid links. The reliability is None where nothing is calibrated.
    """
    features = np.asarray(features, dtype=np.float64)
    if features.ndim != 2 or not len(pairs) == len(features) == len(best) or features.shape[1] != len(default[0]):
        raise ArtifactError("pairs, features, first choices and default weights must fit together")
    if len(valid) < FEWEST_VALID or not best.any():
        return uncalibrated(*default, links.mean, len(valid)), None
    first = np.flatnonzero(best)
    labelled = label_pairs(pairs[first], valid)
    evidence = learn_evidence(features[first], labelled, Weights(np.asarray(default[0]), default[1]))
    counts = histogram(evidence.all)
    other = np.flatnonzero(~best)
    others = OtherPairs(len(other), int(are_among(pairs[other], valid).sum()))
    curves = fit_curves(counts, labelled, evidence.labelled, others, len(valid), links, num_free)
    bend = _bend(counts, labelled, evidence, curves)
    other_counts = histogram(evidence.weights.evidence(features[other]))
    shifts = _other_shifts(curves, other_counts, others.num_right, len(valid))
    knots = np.union1d(counts.centres, other_counts.centres)
    num_wrong = float(counts.counts @ (1 - curves.precision(counts.centres, bend).mean(axis=0)))
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
        bend=tuple(np.interp(knots, counts.centres, bend).tolist()),
        curves=tuple(CurveRow(*(round(float(number), 6) for number in row)) for row in rows),
    )
    line = calibration.precision_at_knots(is_best=True).mean(axis=0)
    own, crossed = (np.interp(values, knots, line) for values in (evidence.all, evidence.labelled))
    return calibration, reliability_by_labels(own, crossed, labelled, sum(linked))


def _linked_ends(labelled: LabelledPairs, num_wrong: float, links_per_valid: float) -> tuple[float, float]:
    """The share of the wrong first choices whose source, and whose target, has a counterpart elsewhere."""
    # Half an end more: that none was seen does not mean that there are none.
    seen = ((ends + 0.5) * links_per_valid for ends in labelled.wrong_ends)
    sources, targets = (min(1.0, ends / max(num_wrong, 1.0)) for ends in seen)
    return sources, targets


def _bend(pairs: Histogram, labelled: LabelledPairs, evidence: Evidence, curves: Curves) -> Floats:
    """What to add to the log-odds at each bin of the pairs (b,), so that the mean curve follows the labelled pairs.

    Groups of labelled pairs compare how many are right with how many should be. The sum over all pairs stays as it is:
    how many are right in all is known better than how many of the labelled ones are.
    """
    num_groups = min(len(labelled.rows) // _PER_BEND, _MOST_BENDS)
    if num_groups < 3:
        return np.zeros(len(pairs.centres))
    counts, right = labelled.counts, labelled.counts * labelled.right
    expected = special.logit(np.clip(curves.precision(evidence.labelled).mean(axis=0), 1e-6, 1 - 1e-6))
    # Where entities lack a counterpart, labelled pairs are right more often than others.
    expected = special.expit(expected + _shift_to(expected, counts, float(right.sum())))
    knots, steps = [], []
    for group in np.array_split(np.argsort(evidence.labelled, kind="stable"), num_groups):
        seen, should, size = (float(sums[group].sum()) for sums in (right, counts * expected, counts))
        knots.append(float(evidence.labelled[group].mean()))
        steps.append(_log_ratio(seen, should) - _log_ratio(size - seen, size - should))
    mean = np.clip(curves.precision(pairs.centres).mean(axis=0), 1e-6, 1 - 1e-6)
    line = special.logit(mean)
    rising = optimize.isotonic_regression(line + np.interp(pairs.centres, knots, steps), weights=pairs.counts).x
    return np.asarray(rising + _shift_to(rising, pairs.counts, float(pairs.counts @ mean)) - line)


def _log_ratio(seen: float, expected: float) -> float:
    return float(np.log((seen + _BEND_PRIOR) / (expected + _BEND_PRIOR)))


def _shift_to(logits: Floats, counts: Floats, total: float) -> float:
    """What to add to the logits so that the probabilities, so often each, sum up to `total`."""
    total = float(np.clip(total, 1e-6 * counts.sum(), (1 - 1e-6) * counts.sum()))
    return float(optimize.brentq(lambda shift: counts @ special.expit(logits + shift) - total, -40.0, 40.0))


def _other_shifts(curves: Curves, pairs: Histogram, num_right: int, num_valid: int) -> Floats:
    """How far the log-odds of pairs that are no first choice lie below, (c,), by the valid links found among them."""
    num_curves = len(curves.slopes)
    if not len(pairs.centres):
        return np.full(num_curves, _OTHER_SHIFT)
    shifts = np.linspace(-6.0, 4.0, 81)
    fits = []
    for shift in shifts:
        expected = num_valid / curves.num_links * (curves.precision(pairs.centres, shift) @ pairs.counts)
        prior = -0.5 * ((shift - _OTHER_SHIFT) / _OTHER_SPREAD) ** 2
        fits.append(special.xlogy(num_right, expected) - expected + prior)
    weights = special.softmax(np.stack(fits, axis=1), axis=1)
    # One shift for each curve, spread evenly over what is likely.
    drawn = (np.arange(num_curves) * _GOLDEN + 0.5) % 1.0
    places = (np.cumsum(weights, axis=1) < drawn[:, None]).sum(axis=1)
    return np.asarray(shifts[np.minimum(places, len(shifts) - 1)])
