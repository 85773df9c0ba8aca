"""Tables of the documents that come from records: how a figure is written, and where a table goes.

In: values, a page. Out: text; the page with what stands between `<!-- NAME -->` and `<!-- /NAME -->` made anew.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from largegnn.errors import InputError

__all__ = ["difference", "difference_text", "mean_text", "put_table", "share_text"]


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


def put_table(page: Path, name: str, table: str) -> None:
    """Write a table between its marks; a page that does not have them once is refused."""
    first, last = f"<!-- {name} -->", f"<!-- /{name} -->"
    text = page.read_text(encoding="utf-8")
    if not (text.count(first) == text.count(last) == 1 and text.index(first) < text.index(last)):
        raise InputError("the page has no one place for a table", where=str(page), expected=f"{first} ... {last}, once")
    before, rest = text.split(first)
    page.write_text(f"{before}{first}\n{table}\n{last}{rest.split(last)[1]}", encoding="utf-8")
