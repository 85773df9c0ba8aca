"""How alike two values of one kind are: our comparators.

In: two lists of texts of one length. Out: a similarity from 0 to 1 for each pair. What cannot be read as its kind is
compared as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import FloatArray
from largegnn.literals.normalise import normalise
from largegnn.literals.values import parse_date, parse_number

__all__ = ["Comparator", "codes", "coordinates", "dates", "names", "numbers", "texts", "truth_values"]

Comparator = Callable[[Sequence[str], Sequence[str]], FloatArray]
_NEAR_KM = 1.0
_LONGEST = 200


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
    one, other = (_read(texts, lambda text: (parse_number(text),), 1)[:, 0] for texts in (left, right))
    largest = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(one - other) / np.where(largest > 0, largest, 1.0)
    # Two infinities that are the same have no difference that is a number.
    found = np.where(one == other, 1.0, np.maximum(0.0, 1.0 - np.nan_to_num(apart, nan=1.0)))
    return _or_equal(found, np.isnan(one) | np.isnan(other), left, right)


def dates(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where all that both dates say is the same, else less, by how much of it differs."""
    one, other = (_read(texts, parse_date, 3) for texts in (left, right))
    # The first of January often stands for a year alone.
    is_year = [(date[:, 1] == 0) | ((date[:, 1] == 1) & (date[:, 2] == 1)) for date in (one, other)]
    by_day = np.where((one[:, 2] == 0) | (other[:, 2] == 0) | (one[:, 2] == other[:, 2]), 1.0, 0.7)
    by_month = np.where(is_year[0] | is_year[1], 1.0, np.where(one[:, 1] == other[:, 1], by_day, 0.5))
    years = np.abs(one[:, 0] - other[:, 0])
    found = np.where(years == 0, by_month, np.where(years == 1, 0.3, 0.0))
    return _or_equal(found, np.isnan(one[:, 0]) | np.isnan(other[:, 0]), left, right)


def codes(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where the letters and digits are the same, however they are grouped."""
    pairs = zip(normalise(left), normalise(right), strict=True)
    return _similarities(float(one.replace(" ", "") == other.replace(" ", "") != "") for one, other in pairs)


def coordinates(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 within a kilometre, falling to 0 at ten."""
    one, other = (_read(texts, _coordinate, 2) for texts in (left, right))
    middle = np.radians((one[:, 0] + other[:, 0]) / 2)
    km = 111.2 * np.hypot(one[:, 0] - other[:, 0], (one[:, 1] - other[:, 1]) * np.cos(middle))
    found = np.clip(1.0 - (np.nan_to_num(km, nan=np.inf) - _NEAR_KM) / 9.0, 0.0, 1.0)
    return _or_equal(found, np.isnan(one[:, 0]) | np.isnan(other[:, 0]), left, right)


def truth_values(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """1 where both say yes, or both no."""
    yes = {"true", "yes", "1"}
    pairs = zip(left, right, strict=True)
    return _similarities(float((one.strip().lower() in yes) == (other.strip().lower() in yes)) for one, other in pairs)


def _coordinate(text: str) -> tuple[float, float] | None:
    found = re.findall(r"[+-]?\d+(?:\.\d+)?", text[:_LONGEST])
    return (float(found[0]), float(found[1])) if len(found) >= 2 else None


def _read(
    texts: Sequence[str], read: Callable[[str], Sequence[float | None] | None], width: int
) -> npt.NDArray[np.float64]:
    """Each text as numbers (n, width), each distinct one read once; not a number for what cannot be read."""
    number_of: dict[str, int] = {}
    rows = [number_of.setdefault(text, len(number_of)) for text in texts]
    values = np.full((len(number_of), width), np.nan)
    for row, text in enumerate(number_of):
        found = read(text)
        if found is not None and None not in found:
            values[row] = found
    return values[rows] if rows else values


def _or_equal(
    found: npt.NDArray[np.float64], unread: npt.NDArray[np.bool_], left: Sequence[str], right: Sequence[str]
) -> FloatArray:
    """The similarities, and for what could not be read whether the texts are equal."""
    for row in np.flatnonzero(unread).tolist():
        found[row] = float(left[row].strip() == right[row].strip())
    return found.astype(np.float32)


def _similarities(values: object) -> FloatArray:
    found: FloatArray = np.fromiter(values, dtype=np.float32)  # type: ignore[call-overload]
    return found
