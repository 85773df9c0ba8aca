"""Synthetic pairs whose truth is known, and what a run would know of them: for tests of calibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import ReliabilityRow
from largegnn.matching.confidence.calibration import Calibration, calibrate
from largegnn.matching.confidence.link_count import LinkCount, estimate_links

Array = npt.NDArray[Any]
DEFAULT_WEIGHTS = ((1.0, 1.5, 1.0), -1.0)


@dataclass(frozen=True)
class SyntheticPairs:
    """Two graphs of equal size, the pairs that are each other's first choice in them, and some other candidates.

    Entities of high degree have a counterpart more often. Some links are found; of the entities left over, some choose
    each other wrongly. A right pair has more of each feature, with much overlap. 100 links are seeds, some are valid.
    """

    degrees: Array
    num_side: int
    seeds: Array
    valid: Array
    links: Array  # that are no seeds
    pairs: Array
    features: Array
    best: Array
    true: Array

    @property
    def num_free(self) -> tuple[int, int]:
        return self.num_side - len(self.seeds), self.num_side - len(self.seeds)

    @property
    def num_links(self) -> int:
        return len(self.links)

    def count_links(self) -> LinkCount:
        known = np.concatenate([self.seeds, self.valid])
        return estimate_links(self.degrees, self.num_side, known, len(self.seeds), self.num_free)

    def calibrated(self) -> tuple[Calibration, tuple[ReliabilityRow, ...] | None]:
        links = self.count_links()
        return calibrate(self.pairs, self.features, self.best, self.valid, links, self.num_free, DEFAULT_WEIGHTS)


def synthetic_pairs(
    *, all_linked: bool, num_valid: int, found: float = 0.4, num_side: int = 4_000, overlap: float = 1.0, seed: int = 0
) -> SyntheticPairs:
    """`found` is the share of the links that are first choices; the higher `overlap`, the worse features tell."""
    rng = np.random.default_rng(seed)
    degrees = rng.geometric(0.2, num_side)
    chance = np.ones(num_side) if all_linked else 1 / (1 + np.exp(-1.5 * (np.log1p(degrees) - 2.0)))
    sources = rng.permutation(np.flatnonzero(rng.random(num_side) < chance))
    # The i-th linked source goes with the i-th linked target, which is about as well known.
    targets = rng.permutation(num_side)[: len(sources)] + num_side
    both = np.concatenate([degrees, rng.permutation(degrees)])
    rest = np.setdiff1d(np.arange(num_side, 2 * num_side), targets)
    both[targets] = np.maximum(1, np.round(degrees[sources] * rng.uniform(0.7, 1.4, len(sources))))
    both[rest] = rng.permutation(np.delete(degrees, sources))
    links = np.stack([sources, targets], axis=1)
    seeds, valid, open_links = links[:100], links[100 : 100 + num_valid], links[100:]
    right = open_links[rng.random(len(open_links)) < found]
    left = [
        np.setdiff1d(np.arange(start, start + num_side), np.concatenate([seeds[:, side], right[:, side]]))
        for side, start in ((0, 0), (1, num_side))
    ]
    size = len(left[0]) // 4
    wrong, other = (np.stack([rng.permutation(side)[:size] for side in left], axis=1) for _ in range(2))
    missed = open_links[~np.isin(open_links[:, 0], right[:, 0])]
    near = missed[rng.random(len(missed)) < 0.1]
    pairs = np.concatenate([right, wrong, other, near])
    true = np.isin(pairs[:, 0] * 2 * num_side + pairs[:, 1], links[:, 0] * 2 * num_side + links[:, 1])
    best = np.arange(len(pairs)) < len(right) + len(wrong)
    order = rng.permutation(len(pairs))
    features = np.stack(
        [
            rng.normal(np.where(true, 1.2, 0.0), overlap),
            rng.exponential(np.where(true, 0.8, 0.3)),
            (rng.random(len(pairs)) < np.where(true, 0.6, 0.15)).astype(float),
        ],
        axis=1,
    )
    features[~best] -= 1.0
    return SyntheticPairs(
        both, num_side, seeds, valid, open_links, pairs[order], features[order], best[order], true[order]
    )
