"""Compute the outcome of other thresholds: pairs, expected precision and recall, and both on held-out links.

In: an alignment and its calibration. Out: a row for each hundredth of the confidence (or score), and one for the
threshold in use, whose numbers are those of the run to the last digit. Cost: a sort of the pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import REASONS, Alignment, IntArray, Mask, are_among

if TYPE_CHECKING:
    from largegnn.matching.match import MatchOutcome

__all__ = ["Cut", "selected_pairs", "threshold_cuts", "wilson_interval"]

_STEPS = 100
_DEVIATIONS = 1.6449  # of the normal distribution, for an interval of 90%


@dataclass(frozen=True)
class Cut:
    """The pairs accepted at a threshold; `judged` of them touch a held-out link, and `right` of those equal one."""

    threshold: float
    pairs: int
    expected_precision: float | None
    expected_recall: float | None
    judged: int
    right: int
    precision_low: float | None
    precision_high: float | None
    recall: float | None


def wilson_interval(right: int, judged: int) -> tuple[float, float]:
    """The 90% interval (Wilson) of a share of `right` among `judged`; 0 to 1 where no pair was judged."""
    if not judged:
        return 0.0, 1.0
    share, spread = right / judged, _DEVIATIONS**2 / judged
    centre = share + spread / 2
    half = _DEVIATIONS * math.sqrt(share * (1 - share) / judged + spread / (4 * judged))
    return max(0.0, (centre - half) / (1 + spread)), min(1.0, (centre + half) / (1 + spread))


def selected_pairs(alignment: Alignment, selection: str, k: int) -> Mask:
    """The pairs that the selection chose (p,): those that a lower threshold would accept."""
    if selection in ("mutual_top1", "mutual_knn"):
        least = 1 if selection == "mutual_top1" else k
        near: Mask = (alignment.source_ranks <= least) & (alignment.target_ranks <= least)
        return near
    # Any other selection is recovered from the reasons of both ends.
    below = alignment.reasons == REASONS.index("below threshold")
    waiting = below[alignment.pairs].all(axis=1) if len(alignment.pairs) else np.zeros(0, dtype=bool)
    found: Mask = alignment.accepted | waiting
    return found


def threshold_cuts(alignment: Alignment, match: MatchOutcome, selected: Mask, valid: IntArray) -> tuple[Cut, ...]:
    """Every cut, from the lowest threshold to the highest; `valid` (v, 2) are held-out links, possibly none."""
    pairs, rating = alignment.pairs[selected], alignment.confidence[selected].astype(np.float64)
    order = np.argsort(-rating, kind="stable")
    pairs, rating = pairs[order], rating[order]
    ends = np.zeros(1 + int(max(pairs.max(initial=0), valid.max(initial=0))), dtype=bool)
    ends[valid.ravel()] = True
    judged = np.cumsum(ends[pairs].any(axis=1)) if len(pairs) else np.zeros(0, dtype=np.int64)
    right = np.cumsum(are_among(pairs, valid)) if len(pairs) else judged
    expected = np.cumsum(rating)
    own, calibration = match.threshold, match.calibration
    steps = sorted({number / _STEPS for number in range(_STEPS + 1)} | {own.threshold})
    cuts = []
    for step in steps:
        is_own = step == own.threshold
        count = match.num_accepted if is_own else int(np.searchsorted(-rating, -np.float32(step), side="right"))
        # A selection of another package may have accepted pairs that are not among these.
        last = min(count, len(pairs)) - 1
        number, hits = (int(judged[last]), int(right[last])) if last >= 0 else (0, 0)
        precision = recall = None
        if calibration.is_calibrated and last >= 0:
            precision = own.expected_precision if is_own else float(expected[last]) / count
            if own.expected_recall is not None:
                found = min(1.0, float(expected[last]) / calibration.num_links) if calibration.num_links else None
                recall = own.expected_recall if is_own else found
        low, high = wilson_interval(hits, number) if number else (None, None)
        share = hits / len(valid) if len(valid) else None
        cuts.append(Cut(step, count, precision, recall, number, hits, low, high, share))
    return tuple(cuts)
