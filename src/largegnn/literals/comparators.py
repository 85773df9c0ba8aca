"""How alike two values of one kind are: our comparators.

In: two lists of texts of one length. Out: a similarity from 0 to 1 for each pair. What cannot be read as its kind is
compared as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from largegnn.artifacts import FloatArray
from largegnn.literals.normalise import normalise
from largegnn.literals.values import parse_date, parse_number

__all__ = ["Comparator", "codes", "coordinates", "dates", "names", "numbers", "texts", "truth_values"]

Comparator = Callable[[Sequence[str], Sequence[str]], FloatArray]
_NEAR_KM = 1.0


def names(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """Jaro-Winkler of the words in order, or the share of words both have, whichever is higher."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import JaroWinkler

    pairs = zip(normalise(left), normalise(right), strict=True)
    return _similarities(
        max(JaroWinkler.similarity(one, other), fuzz.token_sort_ratio(one, other) / 100) for one, other in pairs
    )


def texts(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """The share of words both texts have."""
    from rapidfuzz import fuzz

    pairs = zip(normalise(left), normalise(right), strict=True)
    return _similarities(fuzz.token_set_ratio(one, other) / 100 for one, other in pairs)


def numbers(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """One less the relative difference."""

    def compare(one: str, other: str) -> float:
        a, b = parse_number(one), parse_number(other)
        if a is None or b is None:
            return float(one.strip() == other.strip())
        largest = max(abs(a), abs(b))
        return 1.0 if a == b else max(0.0, 1.0 - abs(a - b) / largest)

    return _similarities(compare(one, other) for one, other in zip(left, right, strict=True))


def dates(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where all that both dates say is the same, else less, by how much of it differs."""

    def compare(one: str, other: str) -> float:
        a, b = parse_date(one), parse_date(other)
        if a is None or b is None:
            return float(one.strip() == other.strip())
        if a.year != b.year:
            return 0.3 if abs(a.year - b.year) == 1 else 0.0
        # The first of January often stands for a year alone.
        if 0 in (a.month, b.month) or (a.month, a.day) == (1, 1) or (b.month, b.day) == (1, 1):
            return 1.0
        if a.month != b.month:
            return 0.5
        return 1.0 if 0 in (a.day, b.day) or a.day == b.day else 0.7

    return _similarities(compare(one, other) for one, other in zip(left, right, strict=True))


def codes(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where the letters and digits are the same, however they are grouped."""
    pairs = zip(normalise(left), normalise(right), strict=True)
    return _similarities(float(one.replace(" ", "") == other.replace(" ", "") != "") for one, other in pairs)


def coordinates(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 within a kilometre, falling to 0 at ten."""
    import re

    def read(text: str) -> tuple[float, float] | None:
        found = re.findall(r"[+-]?\d+(?:\.\d+)?", text)
        return (float(found[0]), float(found[1])) if len(found) >= 2 else None

    def compare(one: str, other: str) -> float:
        a, b = read(one), read(other)
        if a is None or b is None:
            return float(one.strip() == other.strip())
        km = 111.2 * float(np.hypot(a[0] - b[0], (a[1] - b[1]) * np.cos(np.radians((a[0] + b[0]) / 2))))
        return float(np.clip(1.0 - (km - _NEAR_KM) / 9.0, 0.0, 1.0))

    return _similarities(compare(one, other) for one, other in zip(left, right, strict=True))


def truth_values(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where both say yes, or both no."""
    yes = {"true", "yes", "1"}
    pairs = zip(left, right, strict=True)
    return _similarities(float((one.strip().lower() in yes) == (other.strip().lower() in yes)) for one, other in pairs)


def _similarities(values: object) -> FloatArray:
    found: FloatArray = np.fromiter(values, dtype=np.float32)  # type: ignore[call-overload]
    return found
