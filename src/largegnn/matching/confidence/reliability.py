"""Measure the reliability of confidences: pairs by tenths of confidence, and how many of each are right.

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


def reliability(confidence: npt.NDArray[Any], right: npt.NDArray[Any]) -> tuple[ReliabilityRow, ...]:
    """Pairs (p,) by confidence, and the share of them that is right."""
    return _rows(confidence, confidence, np.asarray(right, dtype=np.float64), np.ones(len(confidence)))


def reliability_by_labels(
    confidence: Floats, own: Floats, labelled: LabelledPairs, ends_per_wrong: float
) -> tuple[ReliabilityRow, ...]:
    """Pairs (p,) by confidence, and the share that is right by those the valid links label.

    `own` (j,) is the confidence of the labelled pairs by weights not learnt from them. A right pair has two ends with a
    counterpart, a wrong one `ends_per_wrong` on average, and is noticed the more seldom.
    """
    counts = np.where(labelled.right, 1.0, labelled.ends.sum(axis=1) / ends_per_wrong)
    return _rows(confidence, own, labelled.right.astype(np.float64), counts)


def _rows(
    confidence: npt.NDArray[Any], own: npt.NDArray[Any], right: Floats, counts: Floats
) -> tuple[ReliabilityRow, ...]:
    where, judged = (_row_of(np.asarray(values)) for values in (confidence, own))
    sizes = np.bincount(where, minlength=_NUM_ROWS)
    sums = np.bincount(where, weights=confidence, minlength=_NUM_ROWS)
    totals, found = (np.bincount(judged, weights=values, minlength=_NUM_ROWS) for values in (counts, counts * right))
    num_judged = np.bincount(judged, minlength=_NUM_ROWS)
    return tuple(
        ReliabilityRow(
            low=row / _NUM_ROWS,
            high=(row + 1) / _NUM_ROWS,
            pairs=int(sizes[row]),
            confidence=float(sums[row] / sizes[row]) if sizes[row] else None,
            right=float(found[row] / totals[row]) if totals[row] else None,
            judged=int(num_judged[row]),
        )
        for row in range(_NUM_ROWS)
    )


def _row_of(confidence: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    return np.minimum((confidence * _NUM_ROWS).astype(np.int64), _NUM_ROWS - 1)
