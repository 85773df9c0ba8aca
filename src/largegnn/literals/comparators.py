"""Compare two values of one kind.

In: two lists of texts of one length. Out: a similarity from 0 to 1 for each pair. Values that cannot be read as their
kind are compared as texts.
The idea: a value is part of many pairs. So a comparator has two halves: `read` is called once for the values, `compare`
for pairs of what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import FloatArray
from largegnn.literals.normalise import normalise
from largegnn.literals.profiles import parse_date, parse_number

__all__ = ["COMPARATORS", "Comparator", "Values"]

Values = npt.NDArray[Any]  # values as `read` returns them, a row each
_NEAR_KM = 1.0
_LONGEST = 200


@dataclass(frozen=True)
class Comparator:
    """A comparator that reads each value once: `read` makes a row of a text, `compare` gives the similarity of rows."""

    read: Callable[[Sequence[str]], Values]
    compare: Callable[[Values, Values], FloatArray]

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> FloatArray:
        """The similarity of each pair of texts."""
        return self.compare(self.read(left), self.read(right))


def _read_names(values: Sequence[str]) -> Values:
    """The normalised name, and the same with its words in alphabetical order (n, 2)."""
    spelled = normalise(values)
    return _strings([spelled, [" ".join(sorted(name.split())) for name in spelled]])


def _compare_names(left: Values, right: Values) -> FloatArray:
    """Jaro-Winkler of the words in order, or the share of common letters of sorted words, whichever is higher."""
    from rapidfuzz.distance import Indel, JaroWinkler

    in_order = _by_pairs(JaroWinkler.normalized_similarity, left[:, 0], right[:, 0])
    return np.maximum(in_order, _by_pairs(Indel.normalized_similarity, left[:, 1], right[:, 1]))


def _read_texts(values: Sequence[str]) -> Values:
    return _strings([normalise(values)])


def _compare_texts(left: Values, right: Values) -> FloatArray:
    """The share of common words."""
    from rapidfuzz import fuzz

    return _by_pairs(fuzz.token_set_ratio, left[:, 0], right[:, 0]) / np.float32(100)


def _compare_numbers(left: Values, right: Values) -> FloatArray:
    """One less the relative difference."""
    one, other = left["value"][:, 0], right["value"][:, 0]
    largest = np.maximum(np.abs(one), np.abs(other))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(one - other) / np.where(largest > 0, largest, 1.0)
    # The difference of two equal infinities is not a number.
    found = np.where(one == other, 1.0, np.maximum(0.0, 1.0 - np.nan_to_num(apart, nan=1.0)))
    return _or_equal(found, left, right)


def _compare_dates(left: Values, right: Values) -> FloatArray:
    """1 where the parts that both dates have are the same, else less, by how much of them differs."""
    one, other = left["value"], right["value"]
    # The first of January often stands for a year alone.
    is_year = [(date[:, 1] == 0) | ((date[:, 1] == 1) & (date[:, 2] == 1)) for date in (one, other)]
    by_day = np.where((one[:, 2] == 0) | (other[:, 2] == 0) | (one[:, 2] == other[:, 2]), 1.0, 0.7)
    by_month = np.where(is_year[0] | is_year[1], 1.0, np.where(one[:, 1] == other[:, 1], by_day, 0.5))
    years = np.abs(one[:, 0] - other[:, 0])
    return _or_equal(np.where(years == 0, by_month, np.where(years == 1, 0.3, 0.0)), left, right)


def _read_codes(values: Sequence[str]) -> Values:
    return _strings([[code.replace(" ", "") for code in normalise(values)]])


def _compare_codes(left: Values, right: Values) -> FloatArray:
    """1 where the letters and digits are the same, however they are grouped."""
    one, other = left[:, 0], right[:, 0]
    return np.asarray((one == other) & (one != ""), dtype=np.float32)


def _compare_coordinates(left: Values, right: Values) -> FloatArray:
    """1 within a kilometre, falling to 0 at ten."""
    one, other = left["value"], right["value"]
    middle = np.radians((one[:, 0] + other[:, 0]) / 2)
    km = 111.2 * np.hypot(one[:, 0] - other[:, 0], (one[:, 1] - other[:, 1]) * np.cos(middle))
    return _or_equal(np.clip(1.0 - (np.nan_to_num(km, nan=np.inf) - _NEAR_KM) / 9.0, 0.0, 1.0), left, right)


def _read_truth_values(values: Sequence[str]) -> Values:
    return np.array([text.strip().lower() in ("true", "yes", "1") for text in values], dtype=bool)


def _compare_truth_values(left: Values, right: Values) -> FloatArray:
    """1 where both mean yes, or both no."""
    return np.asarray(left == right, dtype=np.float32)


def _coordinate(text: str) -> tuple[float, float] | None:
    found = re.findall(r"[+-]?\d+(?:\.\d+)?", text[:_LONGEST])
    return (float(found[0]), float(found[1])) if len(found) >= 2 else None


def _reading(parse: Callable[[str], Sequence[float | None] | None], width: int) -> Callable[[Sequence[str]], Values]:
    """A function that reads texts as rows of `width` numbers, and of the text where it cannot be parsed."""

    def read(values: Sequence[str]) -> Values:
        row_of: dict[str, int] = {}
        rows = [row_of.setdefault(text, len(row_of)) for text in values]
        distinct = np.zeros(len(row_of), dtype=[("value", np.float64, (width,)), ("text", object)])
        for row, text in enumerate(row_of):
            found = parse(text)
            is_read = found is not None and None not in found
            distinct[row] = (found if is_read else np.nan, None if is_read else text.strip())
        return distinct[rows] if rows else distinct

    return read


def _or_equal(found: npt.NDArray[np.float64], left: Values, right: Values) -> FloatArray:
    """The similarities, and for values that could not be parsed whether the texts are equal."""
    unread = np.isnan(left["value"][:, 0]) | np.isnan(right["value"][:, 0])
    equal = (left["text"][unread] == right["text"][unread]).astype(np.float64)
    found[unread] = equal
    return found.astype(np.float32)


def _strings(columns: list[list[str]]) -> Values:
    rows = np.empty((len(columns[0]), len(columns)), dtype=object)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


def _by_pairs(scorer: Any, left: Values, right: Values) -> FloatArray:
    """The similarity of each pair of texts by a scorer of rapidfuzz, by all processors."""
    from rapidfuzz.process import cpdist

    found: FloatArray = cpdist(left.tolist(), right.tolist(), scorer=scorer, dtype=np.float32, workers=-1)
    return found


COMPARATORS: dict[str, Comparator] = {
    "name": Comparator(_read_names, _compare_names),
    "text": Comparator(_read_texts, _compare_texts),
    "number": Comparator(_reading(lambda text: (parse_number(text),), 1), _compare_numbers),
    "date": Comparator(_reading(parse_date, 3), _compare_dates),
    "code": Comparator(_read_codes, _compare_codes),
    "coordinate": Comparator(_reading(_coordinate, 2), _compare_coordinates),
    "truth_value": Comparator(_read_truth_values, _compare_truth_values),
}
