"""Choose the threshold on the confidence, and estimate the precision of the pairs above it, with an interval.

In: a calibration and the pairs that may be accepted. Out: a `Threshold`.
By default: the threshold with the highest expected F1. If a precision is asked for: the lowest threshold whose pairs
are expected to reach it; if none does, the threshold of the most confident pairs, with `is_reached` False. The function
never fails. The interval holds the true precision nine times in ten: it covers the curves that agree with the valid
links, and the chance deviation of one set of pairs from a curve. Cost: a sort of the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, Mask
from largegnn.machine.deferred import deferred
from largegnn.matching.confidence.calibration import Calibration

if TYPE_CHECKING:
    from scipy import special
else:
    special = deferred("scipy.special")

__all__ = ["Threshold", "choose_threshold"]

Floats = npt.NDArray[np.float64]

_ROUNDING_ERROR = 1e-9  # of a mean over millions of pairs
_CONFIDENT_TOLERANCE = 0.01  # below the highest confidence, for pairs that count as the most confident
_INTERVAL = (0.05, 0.95)
_NORMAL_QUANTILE = 1.6448536269514722  # of the normal distribution, at the upper end of the interval


@dataclass(frozen=True)
class Threshold:
    """The lowest confidence (or score) that is accepted, and the expected figures of the `num_pairs` accepted pairs.

    `expected_partial` is the expected precision by partial gold: among the pairs that touch an entity with a
    counterpart. The true precision lies between `precision_low` and `precision_high` nine times in ten. If a precision
    was asked for, `is_reached` is whether it is expected, and `chance` its probability. Figures are None if unknown, as
    all are without calibration.
    """

    threshold: float
    num_pairs: int
    expected_precision: float | None = None
    precision_low: float | None = None
    precision_high: float | None = None
    expected_recall: float | None = None
    expected_f1: float | None = None
    expected_partial: float | None = None
    is_reached: bool = True
    chance: float | None = None


def choose_threshold(
    calibration: Calibration,
    features: npt.NDArray[Any],
    best: Mask,
    *,
    min_precision: float = 0.0,
    cut: Literal["f1", "none"] = "f1",
) -> Threshold:
    """Choose the threshold of pairs with these features (p, f); `best` (p,): the first choices of both ends."""
    confidence = calibration.rate(features, best)
    if not len(confidence):
        return Threshold(1.0, 0, is_reached=not min_precision)
    thresholds = _Thresholds(confidence)
    if not calibration.is_calibrated:
        index = thresholds.most_confident() if min_precision else thresholds.last
        return Threshold(thresholds.value(index), thresholds.num_pairs(index), is_reached=not min_precision)
    is_reached = True
    if min_precision:
        reaching = thresholds.reaching(min_precision)
        is_reached = reaching is not None
        index = thresholds.most_confident() if reaching is None else reaching
    else:
        index = thresholds.last if cut == "none" else thresholds.best_f1(calibration.num_links)
    lowest = thresholds.value(index)
    return _expect(calibration, features, best, confidence >= lowest, lowest, min_precision, is_reached)


class _Thresholds:
    """All possible thresholds, descending: every distinct confidence, with the pairs at or above it."""

    def __init__(self, confidence: Floats) -> None:
        ordered = np.sort(confidence)[::-1]
        self._num_pairs: IntArray = np.flatnonzero(np.diff(ordered, append=-np.inf)) + 1
        self._values = ordered[self._num_pairs - 1]
        self._num_right = np.cumsum(ordered)[self._num_pairs - 1]

    @property
    def last(self) -> int:
        """The index of the threshold that accepts all pairs."""
        return len(self._values) - 1

    def value(self, index: int) -> float:
        """The threshold at an index."""
        return float(self._values[index])

    def num_pairs(self, index: int) -> int:
        """The number of pairs at or above a threshold."""
        return int(self._num_pairs[index])

    def best_f1(self, num_links: float) -> int:
        """The index of the threshold with the highest expected F1."""
        return int(np.argmax(2 * self._num_right / (self._num_pairs + num_links)))

    def reaching(self, precision: float) -> int | None:
        """The index of the lowest threshold with at least this expected precision, None if no threshold has it."""
        reaching = np.flatnonzero(self._num_right / self._num_pairs >= precision - _ROUNDING_ERROR)
        return int(reaching[-1]) if len(reaching) else None

    def most_confident(self) -> int:
        """The index of the lowest threshold whose expected precision is about the highest confidence."""
        index = self.reaching(float(self._values[0]) - _CONFIDENT_TOLERANCE)
        return 0 if index is None else index


def _expect(
    calibration: Calibration,
    features: npt.NDArray[Any],
    best: Mask,
    accepted: Mask,
    lowest: float,
    min_precision: float,
    is_reached: bool,
) -> Threshold:
    """Compute the expected figures of the accepted pairs from every curve that agrees with the valid links."""
    evidence, count = calibration.evidence(features[accepted]), int(accepted.sum())
    num_right = np.zeros(len(calibration.curves))
    for is_best in (True, False):
        selected = evidence[best[accepted] == is_best]
        num_right += calibration.precision_at_knots(is_best) @ _knot_weights(selected, np.asarray(calibration.knots))
    precisions, links = num_right / count, np.array([row.num_links for row in calibration.curves])
    mean = float(precisions.mean())
    std = float(np.sqrt(max(mean * (1 - mean), 0.25 / count) / count))
    low, high = np.quantile(precisions, _INTERVAL)
    reaching = special.ndtr((precisions - min_precision) / std)
    expected_links = float(links.mean())
    return Threshold(
        threshold=lowest,
        num_pairs=count,
        expected_precision=mean,
        # One pair wider on either side: a share of `count` pairs has steps of 1 / count.
        precision_low=max(0.0, mean - float(np.hypot(mean - low, _NORMAL_QUANTILE * std)) - 1 / count),
        precision_high=min(1.0, mean + float(np.hypot(high - mean, _NORMAL_QUANTILE * std)) + 1 / count),
        expected_recall=min(1.0, mean * count / expected_links),
        expected_f1=2 * mean * count / (count + expected_links),
        expected_partial=mean / (mean + (1 - mean) * calibration.wrong_touching) if mean else 0.0,
        is_reached=is_reached,
        chance=float(reaching.mean()) if min_precision else None,
    )


def _knot_weights(evidence: Floats, knots: Floats) -> Floats:
    """Compute the weight of each knot (k,) in the sum of a piecewise linear function over all `evidence` (p,)."""
    position = np.interp(evidence, knots, np.arange(len(knots), dtype=np.float64))
    below = np.minimum(position.astype(np.int64), len(knots) - 1)
    above = np.minimum(below + 1, len(knots) - 1)
    fraction = position - below
    weights = np.bincount(below, weights=1 - fraction, minlength=len(knots))
    weights += np.bincount(above, weights=fraction, minlength=len(knots))
    return np.asarray(weights)
