"""Compute the number of pairs, the precision and the recall at every threshold, for the slider of the report.

In: an alignment and its calibration. Out: a `Cut` for each hundredth of the confidence, and one for the threshold of
the run, with exactly the numbers of the run. Precision and recall are expected values by the confidence, and, where
held-out links are known, shares counted on those links. Cost: a sort of the pairs.
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
_NORMAL_QUANTILE = 1.6449  # of 95%, for an interval that leaves out 5% on either side


@dataclass(frozen=True)
class Cut:
    """The pairs accepted at a threshold; `judged` pairs touch a held-out link, `right` pairs are held-out links."""

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
    share, spread = right / judged, _NORMAL_QUANTILE**2 / judged
    centre = share + spread / 2
    half = _NORMAL_QUANTILE * math.sqrt(share * (1 - share) / judged + spread / (4 * judged))
    return max(0.0, (centre - half) / (1 + spread)), min(1.0, (centre + half) / (1 + spread))


def selected_pairs(alignment: Alignment, selection: str, k: int) -> Mask:
    """The pairs that the selection chose (p,), whatever their confidence: a threshold of 0 would accept them all."""
    if selection in ("mutual_top1", "mutual_knn"):
        max_rank = 1 if selection == "mutual_top1" else k
        is_mutual: Mask = (alignment.source_ranks <= max_rank) & (alignment.target_ranks <= max_rank)
        return is_mutual
    # For any other selection, the reasons of both ends tell which pairs only the threshold rejected.
    below = alignment.reasons == REASONS.index("below threshold")
    is_rejected = below[alignment.pairs].all(axis=1) if len(alignment.pairs) else np.zeros(0, dtype=bool)
    selected: Mask = alignment.accepted | is_rejected
    return selected


def threshold_cuts(alignment: Alignment, match: MatchOutcome, selected: Mask, valid: IntArray) -> tuple[Cut, ...]:
    """Compute the cuts, lowest threshold first; `valid` (v, 2) are the held-out links, possibly none."""
    confidence = alignment.confidence[selected].astype(np.float64)
    order = np.argsort(-confidence, kind="stable")
    pairs, confidence = alignment.pairs[selected][order], confidence[order]
    is_in_link = np.zeros(1 + int(max(pairs.max(initial=0), valid.max(initial=0))), dtype=bool)
    is_in_link[valid.ravel()] = True
    judged = np.cumsum(is_in_link[pairs].any(axis=1)) if len(pairs) else np.zeros(0, dtype=np.int64)
    right = np.cumsum(are_among(pairs, valid)) if len(pairs) else judged
    expected = np.cumsum(confidence)
    used, calibration = match.threshold, match.calibration
    thresholds = sorted({number / _STEPS for number in range(_STEPS + 1)} | {used.threshold})
    cuts = []
    for threshold in thresholds:
        is_used = threshold == used.threshold
        count = int(np.searchsorted(-confidence, -np.float32(threshold), side="right"))
        count = match.num_accepted if is_used else count
        # A selection of another package may have accepted pairs that are not among these.
        last = min(count, len(pairs)) - 1
        num_judged, num_right = (int(judged[last]), int(right[last])) if last >= 0 else (0, 0)
        precision = recall = None
        if calibration.is_calibrated and last >= 0:
            precision = used.expected_precision if is_used else float(expected[last]) / count
            if is_used:
                recall = used.expected_recall
            elif used.expected_recall is not None and calibration.num_links:
                recall = min(1.0, float(expected[last]) / calibration.num_links)
        low, high = wilson_interval(num_right, num_judged) if num_judged else (None, None)
        link_recall = num_right / len(valid) if len(valid) else None
        cuts.append(Cut(threshold, count, precision, recall, num_judged, num_right, low, high, link_recall))
    return tuple(cuts)
