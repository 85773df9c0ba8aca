"""Estimate the number of all links from the known links and the degrees of entities, as a distribution.

In: the degree of every entity, and the known links. Out: a `LinkCount`, possible numbers of links with probabilities.
The idea: entities with many triples have a counterpart more often than others, so known links hold more of them than
the graphs do, and how many more tells the share of entities with a counterpart. If an entity of degree d has one with
probability rho(d), a known link has an end of degree d with a probability proportional to (entities of degree d) *
rho(d). rho is a logistic curve in log(1 + d) that does not fall; its value at the highest degrees cannot be observed
and is assumed near 1. That every entity of the smaller graph has a counterpart has a probability of its own.
From 100 known links on, the mean was within .8 and 1.25 of the truth (EN_FR_15K_V1, EN_DE_15K_V1, ContEA_FR_EN,
generated pairs), if the known links are a random sample of all links. Cost: linear in entities.
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
_NUM_DEGREE_CLASSES = 32  # of entities by degree
_ALL_LINKED_PRIOR = 0.5  # prior probability that every entity of the smaller graph has a counterpart
_TOP_QUANTILE = 0.95  # of the degrees: at that degree rho is near 1
_TOP_POWER = 5.0  # prior density of rho at that degree: rho ** 5
_SLOPE_PRIOR_STD = 1.0
_NO_SLOPE_RATIO = 5.0  # prior of a slope of 0, relative to that of a small slope
_ENDS_WEIGHT = 0.55  # weight of an end of a link: both have similar degrees, hence are less evidence than two links
_MAX_KNOWN_LINKS = 400  # known links that count: with more, errors of the curve would outweigh chance
_MODEL_STD = 0.15  # standard deviation of the logarithm of the number, from errors of the curve


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
    """Estimate the number of links that are not seeds, from `known` links (k, 2), of which `num_seeds` are seeds.

    `degrees` (num_entities,) counts the triples of each entity; `num_free` are the sources and the targets that may be
    matched.
    """
    sides = (degrees[:num_source_entities], degrees[num_source_entities:])
    ends = (known[:, 0], known[:, 1] - num_source_entities)
    max_links = min(len(side) for side in sides)
    if not max_links:
        return LinkCount(np.zeros(1), np.ones(1))
    edges = np.linspace(0.0, max_links, _NUM_VALUES + 1)
    values = (edges[1:] + edges[:-1]) / 2
    strength = _ENDS_WEIGHT * min(1.0, _MAX_KNOWN_LINKS / max(len(known), 1))
    prior = np.full(_NUM_VALUES, -np.inf)
    log_likelihood = np.zeros(_NUM_VALUES)
    log_all_linked = 0.0
    for side, end in zip(sides, ends, strict=True):
        fit = _fit_side(side, end, edges)
        log_likelihood += strength * fit.likelihood
        # If all entities of the smaller graph have a counterpart, its known entities are a random sample of them.
        log_all_linked += strength * (fit.sample if len(side) == max_links else float(fit.likelihood[-1]))
        if len(side) == max_links:
            prior = fit.prior
    log_weights = prior + log_likelihood + np.log1p(-_ALL_LINKED_PRIOR)
    log_all_linked += np.log(_ALL_LINKED_PRIOR)
    highest = max(float(log_weights.max()), log_all_linked)
    weights = np.append(_widen(values, np.exp(log_weights - highest)), np.exp(log_all_linked - highest))
    free = float(min(num_free))
    numbers = np.append(np.clip(values - num_seeds, min(len(known) - num_seeds + 1.0, free), free), free)
    return LinkCount(numbers, weights / weights.sum())


@dataclass(frozen=True)
class _SideFit:
    """Log prior and log likelihood of the known ends of one graph, by number of links (m,).

    `sample` is the log likelihood if the known ends are a random sample of the entities.
    """

    prior: Floats
    likelihood: Floats
    sample: float


def _fit_side(degrees: IntArray, ends: IntArray, edges: Floats) -> _SideFit:
    """Compute how well each number of links explains the degrees of the known entities."""
    log_degrees = np.log1p(np.asarray(degrees, dtype=np.float64))
    borders = np.unique(np.quantile(log_degrees, np.linspace(0, 1, _NUM_DEGREE_CLASSES + 1)))
    classes = np.searchsorted(borders, log_degrees, side="right") - 1
    sizes = np.bincount(classes, minlength=len(borders)).astype(np.float64)
    centres = np.bincount(classes, weights=log_degrees, minlength=len(borders)) / np.maximum(sizes, 1)
    num_known = np.bincount(classes[ends], minlength=len(borders)).astype(np.float64)
    is_used = sizes > 0
    sizes, centres, num_known = sizes[is_used], centres[is_used], num_known[is_used]
    tops, slopes = (np.arange(120) + 0.5) / 120, np.linspace(0.0, 4.0, 60)
    logits = special.logit(tops)[:, None, None] + slopes[:, None] * (centres - np.quantile(log_degrees, _TOP_QUANTILE))
    linked = special.expit(logits) * sizes  # (tops, slopes, classes)
    totals = linked.sum(axis=2)
    likelihood = np.log(linked / totals[:, :, None]) @ num_known
    prior = _TOP_POWER * np.log(tops)[:, None] - 0.5 * (slopes / _SLOPE_PRIOR_STD) ** 2
    prior[:, 0] += np.log(_NO_SLOPE_RATIO)
    prior -= special.logsumexp(prior)
    cells = np.searchsorted(edges, totals.ravel()) - 1
    within = cells < len(edges) - 1
    sums = [np.full(len(edges) - 1, -np.inf) for _ in range(2)]
    for total, values in zip(sums, (prior, prior + likelihood), strict=True):
        np.logaddexp.at(total, cells[within], values.ravel()[within])
    reached = np.isfinite(sums[0])
    mean = np.full(len(edges) - 1, -1e9)
    mean[reached] = sums[1][reached] - sums[0][reached]
    return _SideFit(sums[0] - special.logsumexp(sums[0]), mean, float(np.log(sizes / sizes.sum()) @ num_known))


def _widen(values: Floats, weights: Floats) -> Floats:
    """Widen the weights (m,) by a normal error of the logarithm of each value, of deviation `_MODEL_STD`."""
    kernel = np.exp(-0.5 * (np.subtract.outer(np.log(values), np.log(values)) / _MODEL_STD) ** 2)
    widened: Floats = (kernel / kernel.sum(axis=0)) @ weights
    return widened
