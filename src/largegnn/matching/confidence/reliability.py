"""Measure the reliability of confidences: the share of correct pairs in each tenth of the confidence.

In: confidences, and the truth by test links (`reliability`) or by valid links (`reliability_by_labels`). Out: ten rows
that together hold every pair once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import ReliabilityRow
from largegnn.matching.confidence.labelled_pairs import LabelledPairs

__all__ = ["reliability", "reliability_by_labels"]

Floats = npt.NDArray[np.float64]

_NUM_ROWS = 10


def reliability(confidence: npt.NDArray[Any], is_correct: npt.NDArray[Any]) -> tuple[ReliabilityRow, ...]:
    """Group pairs (p,) by confidence, and compute the share of correct pairs of each group."""
    return _rows(confidence, confidence, np.asarray(is_correct, dtype=np.float64), np.ones(len(confidence)))


def reliability_by_labels(
    confidence: Floats, cross_fitted: Floats, labelled: LabelledPairs, ends_per_wrong: float
) -> tuple[ReliabilityRow, ...]:
    """Group pairs (p,) by confidence, and estimate the share of correct pairs of each group from the labelled pairs.

    `cross_fitted` (j,) is the confidence of the labelled pairs by weights not fitted to them. A correct pair has two
    ends with a counterpart, a wrong pair `ends_per_wrong` on average. Pairs are labelled through such ends, hence wrong
    pairs are labelled more seldom, and count more.
    """
    sample_weight = np.where(labelled.is_correct, 1.0, labelled.is_linked.sum(axis=1) / ends_per_wrong)
    return _rows(confidence, cross_fitted, labelled.is_correct.astype(np.float64), sample_weight)


def _rows(
    confidence: npt.NDArray[Any], cross_fitted: npt.NDArray[Any], is_correct: Floats, sample_weight: Floats
) -> tuple[ReliabilityRow, ...]:
    rows = _row_of(np.asarray(confidence))
    labelled_rows = _row_of(np.asarray(cross_fitted))
    sizes = np.bincount(rows, minlength=_NUM_ROWS)
    sums = np.bincount(rows, weights=confidence, minlength=_NUM_ROWS)
    totals = np.bincount(labelled_rows, weights=sample_weight, minlength=_NUM_ROWS)
    correct = np.bincount(labelled_rows, weights=sample_weight * is_correct, minlength=_NUM_ROWS)
    num_labelled = np.bincount(labelled_rows, minlength=_NUM_ROWS)
    return tuple(
        ReliabilityRow(
            low=row / _NUM_ROWS,
            high=(row + 1) / _NUM_ROWS,
            pairs=int(sizes[row]),
            confidence=float(sums[row] / sizes[row]) if sizes[row] else None,
            right=float(correct[row] / totals[row]) if totals[row] else None,
            judged=int(num_labelled[row]),
        )
        for row in range(_NUM_ROWS)
    )


def _row_of(confidence: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.minimum((confidence * _NUM_ROWS).astype(np.int64), _NUM_ROWS - 1)
