"""Estimate how many links exist from the known ones alone, as a distribution.

In: the degree of every entity, and the known links. Out: a `LinkCount`, possible numbers of links with probabilities.
The idea: entities with many triples nearly all have a counterpart, others more seldom. So the known links hold
more of the former than the graphs do, and by how much tells the share of all entities that have a counterpart: where
an entity of degree d has one with probability rho(d), a known link has an end of degree d with a probability
proportional to (entities of degree d) * rho(d). rho is a logistic curve in log(1 + d) that does not fall; what it
reaches at the highest degrees cannot be seen, and is taken to be near 1. If known links look like all entities, most
likely every entity of the smaller graph has a counterpart, which gets a probability of its own.
On EN_FR_15K_V1, EN_DE_15K_V1 (all entities), ContEA_FR_EN (43 of 94 thousand) and generated pairs the mean is within
.8 and 1.25 of the truth from 100 links on. It holds if the known links are a random sample of all links.
Cost: linear in entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.machine.deferred import deferred

if TYPE_CHECKING:
    from scipy import special
else:
    special = deferred("scipy.special")

__all__ = ["LinkCount", "estimate_links"]

Floats = npt.NDArray[np.float64]

_NUM_VALUES = 60
_NUM_CLASSES = 32  # of entities by degree
_ALL_LINKED = 0.5  # probability, before looking, that every entity of the smaller graph has a counterpart
_TOP_QUANTILE = 0.95  # of the degrees: there rho is near 1
_TOP_POWER = 5.0  # density of rho at the top, before looking: top ** 5
_SLOPE_SPREAD = 1.0
_NO_SLOPE = 5.0  # how much likelier no slope is than a given small one
_ENDS_TOGETHER = 0.55  # the two ends of a link have similar degrees: they say less than two links would
_MOST_LINKS = 400  # more known links than these would be taken to know more than the curve is true
_SPREAD = 0.15  # of the logarithm: what the curve may be off


@dataclass(frozen=True, eq=False)
class LinkCount:
    """Possible numbers of links (m,), ascending, and their probabilities (m,)."""

    values: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """The expected number of links."""
        return float(self.values @ self.weights)


def estimate_links(
    degrees: IntArray, num_source_entities: int, known: IntArray, num_seeds: int, num_free: tuple[int, int]
) -> LinkCount:
    """How many links join entities that are no seeds, from `known` links (k, 2), of which `num_seeds` are seeds.

    `degrees` (num_entities,) counts the triples of each entity; `num_free` are the sources and the targets that may be
    matched.
    """
    sides = (degrees[:num_source_entities], degrees[num_source_entities:])
    ends = (known[:, 0], known[:, 1] - num_source_entities)
    most = min(len(side) for side in sides)
    if not most:
        return LinkCount(np.zeros(1), np.ones(1))
    edges = np.linspace(0.0, most, _NUM_VALUES + 1)
    values = (edges[1:] + edges[:-1]) / 2
    strength = _ENDS_TOGETHER * min(1.0, _MOST_LINKS / max(len(known), 1))
    prior = np.full(_NUM_VALUES, -np.inf)
    some, every = np.zeros(_NUM_VALUES), 0.0
    for side, end in zip(sides, ends, strict=True):
        fit = _fit_side(side, end, edges)
        some += strength * fit.likelihood
        # All of the smaller graph have a counterpart: then its known entities are a random sample of it.
        every += strength * (fit.sample if len(side) == most else float(fit.likelihood[-1]))
        if len(side) == most:
            prior = fit.prior
    log_weights = prior + some + np.log1p(-_ALL_LINKED)
    every += np.log(_ALL_LINKED)
    top = max(float(log_weights.max()), every)
    weights = np.append(_widen(values, np.exp(log_weights - top)), np.exp(every - top))
    free = float(min(num_free))
    numbers = np.append(np.clip(values - num_seeds, min(len(known) - num_seeds + 1.0, free), free), free)
    return LinkCount(numbers, weights / weights.sum())


@dataclass(frozen=True)
class _SideFit:
    """Of one graph, by number of links (m,): log prior, log likelihood of the known ends; that of a random sample."""

    prior: Floats
    likelihood: Floats
    sample: float


def _fit_side(degrees: IntArray, ends: IntArray, edges: Floats) -> _SideFit:
    """How well each number of links explains the degrees of the known entities."""
    position = np.log1p(np.asarray(degrees, dtype=np.float64))
    borders = np.unique(np.quantile(position, np.linspace(0, 1, _NUM_CLASSES + 1)))
    classes = np.searchsorted(borders, position, side="right") - 1
    sizes = np.bincount(classes, minlength=len(borders)).astype(np.float64)
    centres = np.bincount(classes, weights=position, minlength=len(borders)) / np.maximum(sizes, 1)
    seen = np.bincount(classes[ends], minlength=len(borders)).astype(np.float64)
    there = sizes > 0
    sizes, centres, seen = sizes[there], centres[there], seen[there]
    tops, slopes = (np.arange(120) + 0.5) / 120, np.linspace(0.0, 4.0, 60)
    logits = special.logit(tops)[:, None, None] + slopes[:, None] * (centres - np.quantile(position, _TOP_QUANTILE))
    linked = special.expit(logits) * sizes  # (tops, slopes, classes)
    totals = linked.sum(axis=2)
    likelihood = np.log(linked / totals[:, :, None]) @ seen
    prior = _TOP_POWER * np.log(tops)[:, None] - 0.5 * (slopes / _SLOPE_SPREAD) ** 2
    prior[:, 0] += np.log(_NO_SLOPE)
    prior -= special.logsumexp(prior)
    cells = np.searchsorted(edges, totals.ravel()) - 1
    within = cells < len(edges) - 1
    sums = [np.full(len(edges) - 1, -np.inf) for _ in range(2)]
    for total, values in zip(sums, (prior, prior + likelihood), strict=True):
        np.logaddexp.at(total, cells[within], values.ravel()[within])
    reached = np.isfinite(sums[0])
    mean = np.full(len(edges) - 1, -1e9)
    mean[reached] = sums[1][reached] - sums[0][reached]
    return _SideFit(sums[0] - special.logsumexp(sums[0]), mean, float(np.log(sizes / sizes.sum()) @ seen))


def _widen(values: Floats, weights: Floats) -> Floats:
    """Weights (m,) as if the logarithm of each value were known to `_SPREAD` only."""
    kernel = np.exp(-0.5 * (np.subtract.outer(np.log(values), np.log(values)) / _SPREAD) ** 2)
    widened: Floats = (kernel / kernel.sum(axis=0)) @ weights
    return widened
