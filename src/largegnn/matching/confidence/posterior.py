"""Fit the curves from evidence to precision that agree with a few labelled pairs, for all pairs.

In: the evidence of all first choices of both ends and of the labelled pairs among them; a `LinkCount`. Out: a posterior
sample of curves p(x) = (1 - ceiling) * sigmoid(slope * (x - centre) + offset), each with a number of links.
Observed are N pairs, F entities of a side that may be matched, V valid links, a random sample of the L links. A curve
says that R = sum p(x) of the pairs are correct. Its likelihood has four factors:
1. r ~ Binomial(V, R / L) of the valid links are among the pairs;
2. an end of any other valid link is in a wrong pair with probability (N - R) / (F - R), times an overlap (`_level`);
3. of the other candidate pairs a smaller share is correct, by a ratio that differs little between data sets;
4. the evidence of correct labelled pairs is distributed as p(x), that of wrong ones as 1 - p(x), over all pairs.
Everything is summed over a grid that is refined twice. Cost: linear in pairs to make a histogram, then constant.
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
_SLOPE_PRIOR_STD = 0.35  # of the log slope around 0: evidence comes as log-odds, hence with a slope of about 1
_OFFSET_PRIOR_STD = 3.0
# Of factor 4: it counts half, since wrong pairs of entities without a counterpart have less evidence than it assumes,
# and no more than a thousand pairs would.
_SHAPE_WEIGHT, _MAX_SHAPE_PAIRS = 0.5, 1000.0
_TILTS = (
    np.arange(-2, 9) / 10
)  # slopes added to the log density of wrong evidence, in units of 1 / its standard deviation
# Of the log overlap in 2.: entities with a counterpart are often better connected, hence in more pairs (1 to 1.7 times
# as many where it was measured).
_OVERLAP_PRIOR_MEAN, _OVERLAP_PRIOR_STD = np.log(1.2), 0.35
# First choices are correct about 4 exp(1.5 P) times as often as other pairs, where P is the precision of first choices.
_OTHER_RATIO, _OTHER_GROWTH, _OTHER_PRIOR_STD = np.log(4.0), 1.5, 0.5
_NUM_REFINEMENTS = 2


@dataclass(frozen=True, eq=False)
class Histogram:
    """Pairs in bins of evidence: the mean evidence (b,), ascending, and the number of pairs (b,) of each bin."""

    centres: Floats
    counts: Floats

    def bin_sums(self, evidence: Floats, weights: Floats | None = None) -> Floats:
        """Sum the weights of other pairs, by default 1, in each bin (b,)."""
        middles = (self.centres[1:] + self.centres[:-1]) / 2
        return np.bincount(np.searchsorted(middles, evidence), weights, minlength=len(self.centres)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Curves:
    """A sample of equally likely curves (c,), and the number of links that each curve assumes."""

    centre: float
    ceilings: Floats
    slopes: Floats
    offsets: Floats
    num_links: Floats

    def precision(self, evidence: Floats, shape: Floats | float = 0.0) -> Floats:
        """Compute the precision by every curve at each evidence, (c, b); `shape` (b,) is added to the log-odds."""
        logits = self.slopes[:, None] * (evidence - self.centre) + self.offsets[:, None] + shape
        return np.asarray((1 - self.ceilings)[:, None] * special.expit(logits))


class OtherPairs(NamedTuple):
    """Pairs that are not both ends' first choice: how many there are, and how many of them are valid links."""

    number: int
    num_right: int


def histogram(evidence: Floats) -> Histogram:
    """Divide pairs by evidence into at most 128 bins of equal size."""
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
    """Sample curves that agree with the evidence (j,) of the labelled pairs, with the other pairs and the links."""
    grid = _Grid(pairs, labelled, evidence, others, num_valid, links, num_free)
    slopes, offsets = np.geomspace(0.3, 3.0, 11), np.linspace(-9.0, 9.0, 73)
    weights = grid.weigh(slopes, offsets)
    for _ in range(_NUM_REFINEMENTS):
        slopes = np.exp(_refined(np.log(slopes), weights.sum(axis=(0, 1, 3)), 11))
        offsets = _refined(offsets, weights.sum(axis=(0, 1, 2)), 49)
        weights = grid.weigh(slopes, offsets)
    return grid.sample(slopes, offsets, weights)


class _Grid:
    """The observations, and their likelihood by curves on a grid (links, ceilings, slopes, offsets)."""

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
        self._correct = pairs.bin_sums(evidence, labelled.is_correct.astype(np.float64))
        self._wrong = pairs.bin_sums(evidence, np.where(labelled.is_correct, 0, labelled.is_linked.sum(axis=1)))

    def weigh(self, slopes: Floats, offsets: Floats) -> Floats:
        """Compute the posterior probability of every cell."""
        precision = self._precision(slopes, offsets)
        max_links = min(self._num_free)
        num_right = precision @ self._pairs.counts
        prior = -0.5 * (np.log(slopes)[:, None] / _SLOPE_PRIOR_STD) ** 2 - 0.5 * (offsets / _OFFSET_PRIOR_STD) ** 2
        all_linked, some_unlinked = self._shape(precision, num_right)
        cells = [
            prior
            + (all_linked if links >= max_links else some_unlinked)
            + self._level(num_right, links)
            + np.log(weight)
            for links, weight in zip(self._links, self._link_weights, strict=True)
        ]
        weights = np.exp(np.stack(cells) - max(float(cell.max()) for cell in cells))
        return np.asarray(weights / weights.sum())

    def sample(self, slopes: Floats, offsets: Floats, weights: Floats) -> Curves:
        """Sample curves at even quantiles of the posterior, ordered by the expected number of correct pairs."""
        num_right = np.broadcast_to(self._precision(slopes, offsets) @ self._pairs.counts, weights.shape)
        order = np.argsort(num_right, axis=None, kind="stable")
        cumulative = np.cumsum(weights.ravel()[order])
        levels = (np.arange(_NUM_CURVES) + 0.5) / _NUM_CURVES * cumulative[-1]
        link, ceiling, slope, offset = np.unravel_index(order[np.searchsorted(cumulative, levels)], weights.shape)
        return Curves(self._centre, _CEILINGS[ceiling], slopes[slope], offsets[offset], self._links[link])

    def _precision(self, slopes: Floats, offsets: Floats) -> Floats:
        """Compute the precision at each bin by every curve, (ceilings, slopes, offsets, bins)."""
        logits = slopes[:, None, None] * (self._pairs.centres - self._centre) + offsets[:, None]
        # Never 0 or 1: logarithms are taken of the precision and of 1 - precision.
        return np.clip((1 - _CEILINGS)[:, None, None, None] * special.expit(logits), 1e-12, 1 - 1e-12)

    def _shape(self, precision: Floats, num_right: Floats) -> tuple[Floats, Floats]:
        """Compute the log likelihood of the evidence of labelled pairs, if all entities are linked, and if not.

        If not, wrong pairs of entities with a counterpart may have more evidence than other wrong pairs (a tilt).
        """
        num_labelled = self._correct.sum() + self._wrong.sum()
        strength = min(_SHAPE_WEIGHT, _MAX_SHAPE_PAIRS / max(num_labelled, 1.0))
        correct = np.log(precision) @ self._correct - self._correct.sum() * np.log(num_right)
        from_centre = self._pairs.centres - self._centre
        tilts = _TILTS / max(float(np.sqrt(np.average(from_centre**2, weights=self._pairs.counts))), 1e-9)
        totals = (1 - precision) @ (self._pairs.counts[:, None] * np.exp(from_centre[:, None] * tilts))
        wrong = (np.log1p(-precision) @ self._wrong)[..., None] - self._wrong.sum() * np.log(totals)
        wrong = strength * (wrong + (self._wrong @ from_centre) * tilts)
        untilted = int(np.flatnonzero(_TILTS == 0)[0])
        all_linked = strength * correct + wrong[..., untilted]
        some_unlinked = strength * correct + special.logsumexp(wrong + _tilt_weights(), axis=-1)
        return np.asarray(all_linked), np.asarray(some_unlinked)

    def _level(self, num_right: Floats, num_links: float) -> Floats:
        """Compute the log likelihood of the numbers of correct pairs, of wrong ends, and of correct other pairs."""
        num_observed, num_wrong_ends = self._correct.sum(), self._wrong.sum()
        share = np.clip(num_right / num_links, 1e-12, 1 - 1e-12)
        fit = special.xlogy(num_observed, share) + special.xlog1py(self._num_valid - num_observed, -share)
        fit = np.where(num_right < num_links, fit, -1e9)
        num_wrong = self._pairs.counts.sum() - num_right
        chance = sum(num_wrong / np.maximum(free - num_right, 1.0) for free in self._num_free)
        # The overlap is 1 if all entities are linked: the fewer entities lack a link, the nearer it is to 1.
        unmatched_ratio = np.maximum(min(self._num_free) - num_right, 1.0) / np.maximum(num_links - num_right, 1.0)
        scale = np.clip(np.log2(np.maximum(unmatched_ratio, 1.0)), 0.0, 1.0)
        expected = np.maximum((self._num_valid - num_observed) * chance, 1e-9)
        fit = fit + _log_poisson_lognormal(
            num_wrong_ends, expected, scale * _OVERLAP_PRIOR_MEAN, scale * _OVERLAP_PRIOR_STD
        )
        if self._others.number:
            precision = num_right / self._pairs.counts.sum()
            num_right_others = self._others.number * precision * np.exp(-_OTHER_RATIO - _OTHER_GROWTH * precision)
            zero = np.zeros_like(num_right_others)
            fit = fit + _log_poisson_lognormal(
                self._others.num_right,
                np.maximum(num_right_others * self._num_valid / num_links, 1e-9),
                zero,
                zero + _OTHER_PRIOR_STD,
            )
        return np.asarray(fit)


def _log_poisson_lognormal(count: float, expected: Floats, mean: Floats, std: Floats) -> Floats:
    """Approximate log P(count) by a Poisson distribution with mean `expected` * exp(normal(mean, std)) (Laplace)."""
    variance = np.maximum(std, 1e-3) ** 2
    factor = (count * np.log((count + 0.5) / expected) + mean / variance) / (count + 1 / variance)
    for _ in range(8):
        rate = expected * np.exp(factor)
        factor = factor + np.clip((count - rate - (factor - mean) / variance) / (rate + 1 / variance), -1.0, 1.0)
    rate = expected * np.exp(factor)
    penalty = (factor - mean) ** 2 / (2 * variance)
    return np.asarray(count * np.log(rate) - rate - penalty - 0.5 * np.log1p(variance * rate))


def _refined(grid: Floats, weights: Floats, number: int) -> Floats:
    """Make a finer grid over the range that holds most of the weights (g,) of the old grid."""
    mean = float(grid @ weights)
    step = float(grid[1] - grid[0])
    std = float(np.sqrt(((grid - mean) ** 2) @ weights)) + 0.5 * step
    return np.linspace(max(grid[0], mean - 4 * std), min(grid[-1], mean + 4 * std), number)


@cache
def _tilt_weights() -> Floats:
    """Compute the log prior probability of each tilt."""
    return np.asarray(special.log_softmax(-0.5 * ((_TILTS - 0.1) / 0.3) ** 2))
