"""Choose the threshold on the confidence, and estimate the precision of the pairs above it, with an interval.

In: a calibration and the pairs that may be accepted. Out: a `Threshold`.
Default: the threshold with the highest expected F1. If a precision is asked for: the lowest threshold whose pairs are
expected to have it; if there is none, that of the most confident pairs. It never fails: what cannot be promised is
given without promise, and says so.
The interval holds the true precision nine times in ten: it spans the curves that agree with the valid links, and how
far the pairs of one run stray from any of them.
Cost: a sort of the pairs.
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

_ROUNDING = 1e-9  # of a mean over millions of pairs
_AS_SURE = 0.01  # pairs whose expected precision lies this little below the highest are as sure
_INTERVAL = (0.05, 0.95)
_DEVIATIONS = 1.6448536269514722  # of the normal distribution, to the upper end


@dataclass(frozen=True)
class Threshold:
    """The lowest confidence (or score) that is accepted, and what to expect of the `num_pairs` pairs from there on.

    `expected_partial` is the precision to expect by partial gold: of the pairs that touch an entity with a counterpart.
    The true precision lies between `precision_low` and `precision_high` nine times in ten. If a precision was asked
    for, `is_reached` says whether it is expected, and `chance` how probable it is. What is not known is None: nothing
    is expected of pairs that are not calibrated.
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
    """Where to cut pairs with these features (p, f), of which `best` (p,) are both ends' first choice."""
    rates = calibration.rate(features, best)
    if not len(rates):
        return Threshold(1.0, 0, is_reached=not min_precision)
    cuts = _Cuts(rates)
    if not calibration.is_calibrated:
        chosen = cuts.most_confident() if min_precision else cuts.last
        return Threshold(cuts.lowest(chosen), cuts.num_pairs(chosen), is_reached=not min_precision)
    is_reached = True
    if min_precision:
        reaching = cuts.reaching(min_precision)
        is_reached = reaching is not None
        chosen = cuts.most_confident() if reaching is None else reaching
    else:
        chosen = cuts.last if cut == "none" else cuts.best_f1(calibration.num_links)
    lowest = cuts.lowest(chosen)
    return _expect(calibration, features, best, rates >= lowest, lowest, min_precision, is_reached)


class _Cuts:
    """Every place to cut, from few pairs to all; pairs of the same confidence go together."""

    def __init__(self, rates: Floats) -> None:
        ordered = np.sort(rates)[::-1]
        self._counts: IntArray = np.flatnonzero(np.diff(ordered, append=-np.inf)) + 1
        self._lowest = ordered[self._counts - 1]
        self._expected = np.cumsum(ordered)[self._counts - 1]

    @property
    def last(self) -> int:
        """The cut that accepts all."""
        return len(self._counts) - 1

    def lowest(self, cut: int) -> float:
        """The lowest confidence above a cut."""
        return float(self._lowest[cut])

    def num_pairs(self, cut: int) -> int:
        """How many pairs are above a cut."""
        return int(self._counts[cut])

    def best_f1(self, num_links: float) -> int:
        """The cut with the highest expected F1."""
        return int(np.argmax(2 * self._expected / (self._counts + num_links)))

    def reaching(self, precision: float) -> int | None:
        """The last cut with this expected precision."""
        reaching = np.flatnonzero(self._expected / self._counts >= precision - _ROUNDING)
        return int(reaching[-1]) if len(reaching) else None

    def most_confident(self) -> int:
        """The last cut that is about as confident as the most confident pairs."""
        found = self.reaching(float(self._lowest[0]) - _AS_SURE)
        return 0 if found is None else found


def _expect(
    calibration: Calibration,
    features: npt.NDArray[Any],
    best: Mask,
    accepted: Mask,
    lowest: float,
    min_precision: float,
    is_reached: bool,
) -> Threshold:
    """What every curve that agrees with the valid links says of the accepted pairs."""
    evidence, count = calibration.evidence(features[accepted]), int(accepted.sum())
    right = np.zeros(len(calibration.curves))
    for is_best in (True, False):
        own = evidence[best[accepted] == is_best]
        right += calibration.precision_at_knots(is_best) @ _shares(own, np.asarray(calibration.knots))
    precisions, links = right / count, np.array([row.num_links for row in calibration.curves])
    mean = float(precisions.mean())
    stray = float(np.sqrt(max(mean * (1 - mean), 0.25 / count) / count))
    low, high = np.quantile(precisions, _INTERVAL)
    reaching = special.ndtr((precisions - min_precision) / stray)
    expected_links = float(links.mean())
    return Threshold(
        threshold=lowest,
        num_pairs=count,
        expected_precision=mean,
        # One pair to either side: a share of so many pairs is no finer.
        precision_low=max(0.0, mean - float(np.hypot(mean - low, _DEVIATIONS * stray)) - 1 / count),
        precision_high=min(1.0, mean + float(np.hypot(high - mean, _DEVIATIONS * stray)) + 1 / count),
        expected_recall=min(1.0, mean * count / expected_links),
        expected_f1=2 * mean * count / (count + expected_links),
        expected_partial=mean / (mean + (1 - mean) * calibration.wrong_touching) if mean else 0.0,
        is_reached=is_reached,
        chance=float(reaching.mean()) if min_precision else None,
    )


def _shares(evidence: Floats, knots: Floats) -> Floats:
    """How much each knot counts (k,) when a line through the knots is read at all these places and summed up."""
    place = np.interp(evidence, knots, np.arange(len(knots), dtype=np.float64))
    below = np.minimum(place.astype(np.int64), len(knots) - 1)
    above, part = np.minimum(below + 1, len(knots) - 1), place - below
    shares = np.bincount(below, weights=1 - part, minlength=len(knots))
    shares += np.bincount(above, weights=part, minlength=len(knots))
    return np.asarray(shares)
