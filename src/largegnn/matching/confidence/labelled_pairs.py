"""Label the pairs that touch a valid link as right or wrong, and learn from them what the features are worth.

In: pairs (p, 2) with features (p, f), and the valid links. Out: which pairs are right or wrong by the valid links, and
one number for every pair, its evidence: a weighted sum of the features, none with a negative weight, so that more of a
feature never makes a pair less likely.
The weights are those of a logistic regression that is drawn to the default weights of the scoring, the more the fewer
pairs are labelled. A labelled pair gets its own evidence from weights learnt from the other valid links: those it
contributed to would flatter it.
Cost: linear in pairs, a few dozen passes over the labelled ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, Mask, are_among
from largegnn.matching.confidence.logistic import fit_logistic

__all__ = ["Evidence", "LabelledPairs", "Weights", "label_pairs", "learn_evidence"]

Floats = npt.NDArray[np.float64]

_NUM_FOLDS = 5
_WEIGHT_SPREAD = 0.5  # how far a weight may lie from its default, in units of the feature's spread
_OFFSET_SPREAD = 3.0
_FEWEST = 5  # labelled pairs that are worth a regression


class Weights(NamedTuple):
    """Weights of the features (f,), none below zero, and an offset."""

    features: Floats
    offset: float

    def evidence(self, features: npt.NDArray[Any]) -> Floats:
        """One number for each pair (p,)."""
        # Column by column: a matrix product may round the same row differently beside other rows.
        total = np.full(len(features), self.offset)
        for column, weight in enumerate(self.features):
            total += weight * features[:, column]
        return total


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Rows (j,) of pairs that touch a valid link; which are one, (j,); which of their ends are in one, (j, 2).

    `folds` (j,) puts the pairs that touch the same valid link together.
    """

    rows: IntArray
    right: Mask
    ends: Mask
    folds: IntArray

    @property
    def num_right(self) -> int:
        """How many are valid links."""
        return int(self.right.sum())

    @property
    def wrong_ends(self) -> tuple[int, int]:
        """How many sources and targets of valid links are in a pair that is wrong."""
        sources, targets = self.ends[~self.right].sum(axis=0).tolist()
        return sources, targets

    @property
    def counts(self) -> Floats:
        """What each counts (j,), so that right and wrong pairs count alike: a right one is noticed at both ends."""
        return np.where(self.right, 1.0, self.ends.sum(axis=1) / 2)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence of all pairs (p,), of labelled ones by weights not learnt from them (j,), and the weights."""

    weights: Weights
    all: Floats
    labelled: Floats


def label_pairs(pairs: IntArray, valid: IntArray) -> LabelledPairs:
    """Which of the pairs (p, 2) the valid links (v, 2) say something about."""
    link_of = np.full(1 + max(int(pairs.max(initial=-1)), int(valid.max(initial=-1))), -1, dtype=np.int64)
    link_of[valid] = np.arange(len(valid))[:, None]
    links = link_of[pairs].reshape(-1, 2)
    rows = np.flatnonzero((links >= 0).any(axis=1))
    right = are_among(pairs[rows], valid) if len(rows) else np.empty(0, dtype=bool)
    return LabelledPairs(rows, right, links[rows] >= 0, links[rows].max(axis=1, initial=-1) % _NUM_FOLDS)


def learn_evidence(features: Floats, labelled: LabelledPairs, default_weights: Weights) -> Evidence:
    """The evidence of pairs with these features (p, f)."""
    own, right, counts = features[labelled.rows], labelled.right.astype(np.float64), labelled.counts
    if len(own) < _FEWEST:
        return Evidence(default_weights, default_weights.evidence(features), default_weights.evidence(own))
    scale = np.maximum(features.std(axis=0), 1e-6)
    weights = _fit(own, right, counts, default_weights, scale)
    crossed = np.empty(len(own))
    for fold in range(_NUM_FOLDS):
        here = labelled.folds == fold
        others = _fit(own[~here], right[~here], counts[~here], default_weights, scale)
        crossed[here] = others.evidence(own[here])
    return Evidence(weights, weights.evidence(features), crossed)


def _fit(features: Floats, right: Floats, counts: Floats, default_weights: Weights, scale: Floats) -> Weights:
    """A logistic regression drawn to the default."""
    centre = np.append(default_weights.features * scale, default_weights.offset)
    spread = np.append(np.full(features.shape[1], _WEIGHT_SPREAD), _OFFSET_SPREAD)
    found = fit_logistic(features / scale, right, counts, centre, spread)
    return Weights(found[:-1] / scale, float(found[-1]))
