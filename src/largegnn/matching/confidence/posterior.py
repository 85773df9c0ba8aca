"""Fit the curves from evidence to precision that agree with a few labelled pairs, for all pairs.

In: the evidence of all pairs that are both ends' first choice, and of those among them that the valid links label; how
many links there may be. Out: a sample of curves p(x) = (1 - ceiling) * sigmoid(slope * (x - centre) + offset), each
with a number of links: a posterior distribution, from which expectations and intervals follow.

What is observed: N pairs, F entities of a side that may be matched, V valid links, a random sample of the L links. A
curve says that R = sum p(x) of the pairs are right. Then
1. of the valid links, r ~ Binomial(V, R / L) are among the pairs;
2. an end of a valid link that is not matched rightly is in one of the N - R wrong pairs with probability
   (N - R) / (F - R), times a factor that is 1 where all entities have a counterpart, and else not known: entities with
   a counterpart are often better connected, and in more pairs (1 to 1.7 times where it was measured);
3. of the other candidate pairs fewer are right than of these, by a factor that differs little between data sets;
4. the evidence of right labelled pairs is distributed as p(x), that of wrong ones as 1 - p(x), over all pairs.
The first two are the direct evidence of how many are right; the third helps where hardly any pair is labelled; the last
gives the curve its shape. It is not quite true (wrong pairs of entities without a counterpart have less evidence), so
it counts half, and no more than a thousand pairs would.
Everything is summed over a grid that is narrowed twice. Cost: linear in pairs, then independent of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.machine.deferred import deferred
from largegnn.matching.confidence.labelled_pairs import LabelledPairs
from largegnn.matching.confidence.link_count import LinkCount

if TYPE_CHECKING:
    from scipy import special
else:
    special = deferred("scipy.special")

__all__ = ["Curves", "Histogram", "OtherPairs", "fit_curves", "histogram"]

Floats = npt.NDArray[np.float64]

_NUM_BINS = 128
_NUM_CURVES = 200
_CEILINGS = np.array([0.0, 0.02, 0.05, 0.12])  # share of pairs that are wrong however strong the evidence
_SLOPE_SPREAD = 0.35  # of its logarithm; evidence comes as log-odds, so that it should be 1
_OFFSET_SPREAD = 3.0
_SHAPE_WEIGHT, _SHAPE_PAIRS = 0.5, 1000.0
_TILTS = np.arange(-2, 9) / 10  # of the log density of evidence, in units of its spread
_OVERLAP, _OVERLAP_SPREAD = np.log(1.2), 0.35  # of the logarithm of the factor in 2.
# First choices are right some 4 exp(1.5 P) times as often as other pairs, P the precision of the former.
_OTHER_RATIO, _OTHER_GROWTH, _OTHER_SPREAD = np.log(4.0), 1.5, 0.5
_NARROWINGS = 2


@dataclass(frozen=True, eq=False)
class Histogram:
    """Pairs by evidence: mean evidence (b,), ascending, and how many pairs, (b,)."""

    centres: Floats
    counts: Floats

    def place(self, evidence: Floats, weights: Floats | None = None) -> Floats:
        """How many of other pairs (or their weights) belong to each bin, (b,)."""
        middles = (self.centres[1:] + self.centres[:-1]) / 2
        return np.bincount(np.searchsorted(middles, evidence), weights, minlength=len(self.centres)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Curves:
    """A sample of curves (c,), each as likely as another, and the number of links that goes with each."""

    centre: float
    ceilings: Floats
    slopes: Floats
    offsets: Floats
    num_links: Floats

    def precision(self, evidence: Floats, shape: Floats | float = 0.0) -> Floats:
        """The precision by every curve at each evidence, (c, b); `shape` (b,) is added to the log-odds."""
        logits = self.slopes[:, None] * (evidence - self.centre) + self.offsets[:, None] + shape
        return np.asarray((1 - self.ceilings)[:, None] * special.expit(logits))


class OtherPairs(NamedTuple):
    """Pairs that are not both ends' first choice: how many there are, and how many of them are valid links."""

    number: int
    num_right: int


def histogram(evidence: Floats) -> Histogram:
    """At most 128 bins with equally many pairs."""
    if not len(evidence):
        return Histogram(np.empty(0), np.empty(0))
    pieces = np.array_split(np.sort(evidence), min(_NUM_BINS, len(evidence)))
    return Histogram(np.array([piece.mean() for piece in pieces]), np.array([float(len(piece)) for piece in pieces]))


def fit_curves(
    pairs: Histogram,
    labelled: LabelledPairs,
    evidence: Floats,
    others: OtherPairs,
    num_valid: int,
    links: LinkCount,
    num_free: tuple[int, int],
) -> Curves:
    """The curves that agree with the labelled pairs, whose evidence (j,) is given, and with what is known of others."""
    grid = _Grid(pairs, labelled, evidence, others, num_valid, links, num_free)
    slopes, offsets = np.geomspace(0.3, 3.0, 11), np.linspace(-9.0, 9.0, 73)
    weights = grid.weigh(slopes, offsets)
    for _ in range(_NARROWINGS):
        slopes = np.exp(_narrowed(np.log(slopes), weights.sum(axis=(0, 1, 3)), 11))
        offsets = _narrowed(offsets, weights.sum(axis=(0, 1, 2)), 49)
        weights = grid.weigh(slopes, offsets)
    return grid.sample(slopes, offsets, weights)


class _Grid:
    """What was observed, and how likely it is by curves on a grid (links, ceilings, slopes, offsets)."""

    def __init__(
        self,
        pairs: Histogram,
        labelled: LabelledPairs,
        evidence: Floats,
        others: OtherPairs,
        num_valid: int,
        links: LinkCount,
        num_free: tuple[int, int],
    ) -> None:
        self._pairs, self._others, self._num_valid, self._num_free = pairs, others, num_valid, num_free
        possible = links.weights > 1e-4
        self._links, self._link_weights = links.values[possible], links.weights[possible]
        self._centre = float(np.average(pairs.centres, weights=pairs.counts))
        self._right = pairs.place(evidence, labelled.is_correct.astype(np.float64))
        self._wrong = pairs.place(evidence, np.where(labelled.is_correct, 0, labelled.is_linked.sum(axis=1)))

    def weigh(self, slopes: Floats, offsets: Floats) -> Floats:
        """The posterior probability of every cell."""
        precision, most = self._precision(slopes, offsets), min(self._num_free)
        num_right = precision @ self._pairs.counts
        prior = -0.5 * (np.log(slopes)[:, None] / _SLOPE_SPREAD) ** 2 - 0.5 * (offsets / _OFFSET_SPREAD) ** 2
        everyone, someone = self._shape(precision, num_right)
        cells = [
            prior + (everyone if links >= most else someone) + self._level(num_right, links) + np.log(weight)
            for links, weight in zip(self._links, self._link_weights, strict=True)
        ]
        weights = np.exp(np.stack(cells) - max(float(cell.max()) for cell in cells))
        return np.asarray(weights / weights.sum())

    def sample(self, slopes: Floats, offsets: Floats, weights: Floats) -> Curves:
        """Curves drawn evenly over the posterior, in the order of how many pairs they call right."""
        num_right = np.broadcast_to(self._precision(slopes, offsets) @ self._pairs.counts, weights.shape)
        order = np.argsort(num_right, axis=None, kind="stable")
        reached = np.cumsum(weights.ravel()[order])
        drawn = order[np.searchsorted(reached, (np.arange(_NUM_CURVES) + 0.5) / _NUM_CURVES * reached[-1])]
        link, ceiling, slope, offset = np.unravel_index(drawn, weights.shape)
        return Curves(self._centre, _CEILINGS[ceiling], slopes[slope], offsets[offset], self._links[link])

    def _precision(self, slopes: Floats, offsets: Floats) -> Floats:
        """The precision at each bin by every curve, (ceilings, slopes, offsets, bins)."""
        logits = slopes[:, None, None] * (self._pairs.centres - self._centre) + offsets[:, None]
        # Not quite 0 or 1: the logarithms of both are taken.
        return np.clip((1 - _CEILINGS)[:, None, None, None] * special.expit(logits), 1e-12, 1 - 1e-12)

    def _shape(self, precision: Floats, num_right: Floats) -> tuple[Floats, Floats]:
        """How well the evidence of labelled pairs fits (log likelihood), if all entities are linked, and if not.

        If not, wrong pairs of entities with a counterpart may have more evidence than other wrong pairs.
        """
        num_labelled = self._right.sum() + self._wrong.sum()
        strength = min(_SHAPE_WEIGHT, _SHAPE_PAIRS / max(num_labelled, 1.0))
        right = np.log(precision) @ self._right - self._right.sum() * np.log(num_right)
        from_centre = self._pairs.centres - self._centre
        tilts = _TILTS / max(float(np.sqrt(np.average(from_centre**2, weights=self._pairs.counts))), 1e-9)
        totals = (1 - precision) @ (self._pairs.counts[:, None] * np.exp(from_centre[:, None] * tilts))
        wrong = (np.log1p(-precision) @ self._wrong)[..., None] - self._wrong.sum() * np.log(totals)
        wrong = strength * (wrong + (self._wrong @ from_centre) * tilts)
        untilted = int(np.flatnonzero(_TILTS == 0)[0])
        everyone = strength * right + wrong[..., untilted]
        someone = strength * right + special.logsumexp(wrong + _tilt_weights(), axis=-1)
        return np.asarray(everyone), np.asarray(someone)

    def _level(self, num_right: Floats, num_links: float) -> Floats:
        """How well the numbers of right and wrong ends fit, as a log likelihood."""
        seen, wrong = self._right.sum(), self._wrong.sum()
        share = np.clip(num_right / num_links, 1e-12, 1 - 1e-12)
        fit = special.xlogy(seen, share) + special.xlog1py(self._num_valid - seen, -share)
        fit = np.where(num_right < num_links, fit, -1e9)
        num_wrong = self._pairs.counts.sum() - num_right
        chance = sum(num_wrong / np.maximum(free - num_right, 1.0) for free in self._num_free)
        # The nearer the links are to all entities, the less room there is for a factor other than 1.
        rest = np.maximum(min(self._num_free) - num_right, 1.0) / np.maximum(num_links - num_right, 1.0)
        room = np.clip(np.log2(np.maximum(rest, 1.0)), 0.0, 1.0)
        expected = np.maximum((self._num_valid - seen) * chance, 1e-9)
        fit = fit + _blurred_poisson(wrong, expected, room * _OVERLAP, room * _OVERLAP_SPREAD)
        if self._others.number:
            precision = num_right / self._pairs.counts.sum()
            right = self._others.number * precision * np.exp(-_OTHER_RATIO - _OTHER_GROWTH * precision)
            zero = np.zeros_like(right)
            fit = fit + _blurred_poisson(
                self._others.num_right,
                np.maximum(right * self._num_valid / num_links, 1e-9),
                zero,
                zero + _OTHER_SPREAD,
            )
        return np.asarray(fit)


def _blurred_poisson(count: float, expected: Floats, mean: Floats, spread: Floats) -> Floats:
    """Log P(count) where the mean of the Poisson distribution is `expected` times exp(normal(mean, spread))."""
    variance = np.maximum(spread, 1e-3) ** 2
    factor = (count * np.log((count + 0.5) / expected) + mean / variance) / (count + 1 / variance)
    for _ in range(8):
        rate = expected * np.exp(factor)
        factor = factor + np.clip((count - rate - (factor - mean) / variance) / (rate + 1 / variance), -1.0, 1.0)
    rate = expected * np.exp(factor)
    away = (factor - mean) ** 2 / (2 * variance)
    return np.asarray(count * np.log(rate) - rate - away - 0.5 * np.log1p(variance * rate))


def _narrowed(grid: Floats, weights: Floats, number: int) -> Floats:
    """A finer grid over where the weights (g,) of the old one are."""
    mean = float(grid @ weights)
    step = float(grid[1] - grid[0])
    spread = float(np.sqrt(((grid - mean) ** 2) @ weights)) + 0.5 * step
    return np.linspace(max(grid[0], mean - 4 * spread), min(grid[-1], mean + 4 * spread), number)


@cache
def _tilt_weights() -> Floats:
    """How likely each tilt is before looking, as logarithms."""
    return np.asarray(special.log_softmax(-0.5 * ((_TILTS - 0.1) / 0.3) ** 2))
