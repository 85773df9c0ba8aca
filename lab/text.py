"""Write figures as text: shares, means with their deviation, differences."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

__all__ = ["difference", "difference_text", "mean_text", "share_text"]


def share_text(value: float) -> str:
    """A share with three digits and nothing before the point."""
    return f"{value:.3f}".removeprefix("0").replace("-0.", "-.")


def mean_text(values: Sequence[float]) -> str:
    """The mean, and of several values the sample deviation."""
    mean = share_text(statistics.fmean(values))
    return f"{mean} ± {share_text(statistics.stdev(values))}" if len(values) > 1 else mean


def difference(values: Sequence[float], others: Sequence[float]) -> tuple[float, float]:
    """How far apart two means are, and the sample deviations of both together; a difference is one only beyond that."""
    spreads = [statistics.stdev(end) for end in (values, others) if len(end) > 1]
    return statistics.fmean(values) - statistics.fmean(others), math.hypot(*spreads)


def difference_text(gain: float, deviation: float) -> str:
    """A difference of shares with its sign and its deviation."""
    return f"{'-' if gain < 0 else '+'}{share_text(abs(gain))} ± {share_text(deviation)}"
