"""Label candidate pairs by the valid links and fit, by logistic regression, one evidence score per pair.

In: pairs (p, 2) with features (p, f), and the valid links. Out: `LabelledPairs`, correct and wrong pairs that touch a
valid link; and `Evidence`, one number for every pair: a weighted sum of the features. No weight is negative, so that
more of a feature never makes a pair less likely.
The weights are regularised towards the default weights of the scoring; the fewer labelled pairs, the stronger the pull.
The evidence of labelled pairs is cross-fitted: its weights come from the other folds, since a pair looks better by
weights that were fitted to it. A pair that touches two links is in the fold of one of them, which is a slight leak.
Cost: linear in pairs, a few dozen passes over the labelled pairs.
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
_WEIGHT_PRIOR_STD = 0.5  # of a weight around its default, in units of 1 / the standard deviation of the feature
_OFFSET_PRIOR_STD = 3.0
_MIN_LABELLED = 5  # labelled pairs for a regression


class Weights(NamedTuple):
    """Weights of the features (f,), none below zero, and an offset."""

    features: Floats
    offset: float

    def evidence(self, features: npt.NDArray[Any]) -> Floats:
        """Compute the evidence of each pair (p,) from its features (p, f)."""
        # Column by column: a matrix product may round a row differently depending on the other rows.
        total = np.full(len(features), self.offset)
        for column, weight in enumerate(self.features):
            total += weight * features[:, column]
        return total


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs that touch a valid link, by their `rows` (j,) among all pairs.

    `is_correct` (j,): whether the pair is a valid link. `is_linked` (j, 2): whether its source and its target have a
    valid link. `folds` (j,) are by valid link: the pairs of one link are in one fold, unless they touch another, too.
    """

    rows: IntArray
    is_correct: Mask
    is_linked: Mask
    folds: IntArray

    @property
    def num_right(self) -> int:
        """The number of labelled pairs that are valid links."""
        return int(self.is_correct.sum())

    @property
    def num_linked_in_wrong(self) -> tuple[int, int]:
        """The numbers of sources and of targets with a valid link that are in a wrong pair."""
        sources, targets = self.is_linked[~self.is_correct].sum(axis=0).tolist()
        return sources, targets

    @property
    def sample_weight(self) -> Floats:
        """The weights (j,) of the pairs in fits: 1 for a correct pair, half for a wrong pair with one linked end.

        A correct pair is always found through both of its ends.
        """
        return np.where(self.is_correct, 1.0, self.is_linked.sum(axis=1) / 2)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Weights of the features, the evidence of all pairs (p,), and the cross-fitted evidence of labelled pairs (j,)."""

    weights: Weights
    all: Floats
    labelled: Floats


def label_pairs(pairs: IntArray, valid: IntArray) -> LabelledPairs:
    """Label the pairs (p, 2) that touch one of the valid links (v, 2)."""
    link_of = np.full(1 + max(int(pairs.max(initial=-1)), int(valid.max(initial=-1))), -1, dtype=np.int64)
    link_of[valid] = np.arange(len(valid))[:, None]
    links = link_of[pairs].reshape(-1, 2)
    rows = np.flatnonzero((links >= 0).any(axis=1))
    is_correct = are_among(pairs[rows], valid) if len(rows) else np.empty(0, dtype=bool)
    return LabelledPairs(rows, is_correct, links[rows] >= 0, links[rows].max(axis=1, initial=-1) % _NUM_FOLDS)


def learn_evidence(features: Floats, labelled: LabelledPairs, default_weights: Weights) -> Evidence:
    """Fit the weights of the features (p, f) to the labelled pairs, and compute the evidence of all pairs."""
    labelled_features = features[labelled.rows]
    is_correct, sample_weight = labelled.is_correct.astype(np.float64), labelled.sample_weight
    if len(labelled_features) < _MIN_LABELLED:
        return Evidence(
            default_weights, default_weights.evidence(features), default_weights.evidence(labelled_features)
        )
    scale = np.maximum(features.std(axis=0), 1e-6)
    weights = _fit(labelled_features, is_correct, sample_weight, default_weights, scale)
    cross_fitted = np.empty(len(labelled_features))
    for fold in range(_NUM_FOLDS):
        in_fold = labelled.folds == fold
        rest = ~in_fold
        fold_weights = _fit(labelled_features[rest], is_correct[rest], sample_weight[rest], default_weights, scale)
        cross_fitted[in_fold] = fold_weights.evidence(labelled_features[in_fold])
    return Evidence(weights, weights.evidence(features), cross_fitted)


def _fit(features: Floats, is_correct: Floats, sample_weight: Floats, default: Weights, scale: Floats) -> Weights:
    """Fit a logistic regression that is regularised towards the default weights."""
    prior_mean = np.append(default.features * scale, default.offset)
    prior_std = np.append(np.full(features.shape[1], _WEIGHT_PRIOR_STD), _OFFSET_PRIOR_STD)
    parameters = fit_logistic(features / scale, is_correct, sample_weight, prior_mean, prior_std)
    return Weights(parameters[:-1] / scale, float(parameters[-1]))
