"""Format figures as text: shares, means with their deviation, differences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

__all__ = ["difference", "difference_text", "mean_text", "share_text"]


def share_text(value: float) -> str:
    """Format a share with three digits and no zero before the point."""
    return f"{value:.3f}".removeprefix("0").replace("-0.", "-.")


def mean_text(values: Sequence[float]) -> str:
    """Format the mean and, if there are several values, the sample deviation."""
    mean = share_text(statistics.fmean(values))
    return f"{mean} ± {share_text(statistics.stdev(values))}" if len(values) > 1 else mean


def difference(values: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """Return the difference of two means, and its deviation from both samples; smaller differences mean nothing."""
    spreads = [statistics.stdev(sample) for sample in (values, others) if len(sample) > 1]
    return statistics.fmean(values) - statistics.fmean(others), math.hypot(*spreads)


def difference_text(gain: float, deviation: float) -> str:
    """Format a difference of shares with its sign and its deviation."""
    return f"{'-' if gain < 0 else '+'}{share_text(abs(gain))} ± {share_text(deviation)}"
