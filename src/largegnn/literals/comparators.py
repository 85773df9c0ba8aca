"""Compare values of one kind: names, texts, numbers, dates, codes, coordinates or truth values.

In: two lists of texts of one length. Out: a similarity from 0 to 1 for each pair. Numbers, dates and coordinates that
cannot be parsed are similar only if their texts are equal.
The idea: a value is part of many pairs. So a comparator has two functions: `read` is called once for each value,
`compare` for pairs of values that were read.
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

Values = npt.NDArray[Any]  # the result of `read`, one row for each value
_NEAR_KM = 1.0
_MAX_CHARS = 200  # of a coordinate


@dataclass(frozen=True)
class Comparator:
    """A way to compare values: `read` makes one row of each text, `compare` gives the similarity of pairs of rows."""

    read: Callable[[Sequence[str]], Values]
    compare: Callable[[Values, Values], FloatArray]

    def __call__(self, left: Sequence[str], right: Sequence[str]) -> FloatArray:
        """The similarity of each pair of texts."""
        return self.compare(self.read(left), self.read(right))


def _read_names(values: Sequence[str]) -> Values:
    """The normalised names, as they are and with their words in alphabetical order (n, 2)."""
    names = normalise(values)
    return _strings([names, [" ".join(sorted(name.split())) for name in names]])


def _compare_names(left: Values, right: Values) -> FloatArray:
    """The Jaro-Winkler similarity of the names, or the Indel similarity of their sorted words if that is higher."""
    from rapidfuzz.distance import Indel, JaroWinkler

    in_order = _rapidfuzz_similarity(JaroWinkler.normalized_similarity, left[:, 0], right[:, 0])
    return np.maximum(in_order, _rapidfuzz_similarity(Indel.normalized_similarity, left[:, 1], right[:, 1]))


def _read_texts(values: Sequence[str]) -> Values:
    return _strings([normalise(values)])


def _compare_texts(left: Values, right: Values) -> FloatArray:
    """The token set ratio of rapidfuzz, which compares the common words and the remaining ones in any order."""
    from rapidfuzz import fuzz

    return _rapidfuzz_similarity(fuzz.token_set_ratio, left[:, 0], right[:, 0]) / np.float32(100)


def _compare_numbers(left: Values, right: Values) -> FloatArray:
    """1 minus the relative difference of the numbers, at least 0."""
    left_numbers, right_numbers = left["value"][:, 0], right["value"][:, 0]
    largest = np.maximum(np.abs(left_numbers), np.abs(right_numbers))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(left_numbers - right_numbers) / np.where(largest > 0, largest, 1.0)
    # Equal numbers are tested by themselves: the difference of two equal infinities is not a number.
    by_difference = np.maximum(0.0, 1.0 - np.nan_to_num(difference, nan=1.0))
    return _or_equal_texts(np.where(left_numbers == right_numbers, 1.0, by_difference), left, right)


def _compare_dates(left: Values, right: Values) -> FloatArray:
    """1 if all parts that both dates have are equal; 0.7 if days differ, 0.5 for months, 0.3 for successive years."""
    (left_year, left_month, left_day), (right_year, right_month, right_day) = left["value"].T, right["value"].T
    # The first of January often stands for a year whose month and day are unknown.
    left_is_year = (left_month == 0) | ((left_month == 1) & (left_day == 1))
    right_is_year = (right_month == 0) | ((right_month == 1) & (right_day == 1))
    by_day = np.where((left_day == 0) | (right_day == 0) | (left_day == right_day), 1.0, 0.7)
    by_month = np.where(left_is_year | right_is_year, 1.0, np.where(left_month == right_month, by_day, 0.5))
    years = np.abs(left_year - right_year)
    return _or_equal_texts(np.where(years == 0, by_month, np.where(years == 1, 0.3, 0.0)), left, right)


def _read_codes(values: Sequence[str]) -> Values:
    return _strings([[code.replace(" ", "") for code in normalise(values)]])


def _compare_codes(left: Values, right: Values) -> FloatArray:
    """1 if the letters and digits are equal, whatever separates them, else 0."""
    left_codes, right_codes = left[:, 0], right[:, 0]
    return np.asarray((left_codes == right_codes) & (left_codes != ""), dtype=np.float32)


def _compare_coordinates(left: Values, right: Values) -> FloatArray:
    """1 within one kilometre, falling to 0 at ten kilometres."""
    (left_latitude, left_longitude), (right_latitude, right_longitude) = left["value"].T, right["value"].T
    middle = np.radians((left_latitude + right_latitude) / 2)
    km = 111.2 * np.hypot(left_latitude - right_latitude, (left_longitude - right_longitude) * np.cos(middle))
    return _or_equal_texts(np.clip(1.0 - (np.nan_to_num(km, nan=np.inf) - _NEAR_KM) / 9.0, 0.0, 1.0), left, right)


def _read_truth_values(values: Sequence[str]) -> Values:
    return np.array([text.strip().lower() in ("true", "yes", "1") for text in values], dtype=bool)


def _compare_truth_values(left: Values, right: Values) -> FloatArray:
    """1 if both values mean yes or both mean no, else 0."""
    return np.asarray(left == right, dtype=np.float32)


def _coordinate(text: str) -> tuple[float, float] | None:
    numbers = re.findall(r"[+-]?\d+(?:\.\d+)?", text[:_MAX_CHARS])
    return (float(numbers[0]), float(numbers[1])) if len(numbers) >= 2 else None


def _reader(parse: Callable[[str], Sequence[float | None] | None], width: int) -> Callable[[Sequence[str]], Values]:
    """A function that parses each text as `width` numbers, and keeps the text if it cannot be parsed."""

    def read(values: Sequence[str]) -> Values:
        row_of: dict[str, int] = {}
        rows = [row_of.setdefault(text, len(row_of)) for text in values]
        distinct = np.zeros(len(row_of), dtype=[("value", np.float64, (width,)), ("text", object)])
        for row, text in enumerate(row_of):
            numbers = parse(text)
            is_parsed = numbers is not None and None not in numbers
            distinct[row] = (numbers if is_parsed else np.nan, None if is_parsed else text.strip())
        return distinct[rows] if rows else distinct

    return read


def _or_equal_texts(similarities: npt.NDArray[np.float64], left: Values, right: Values) -> FloatArray:
    """Replace the similarity of values that could not be parsed by 1 or 0: whether their texts are equal."""
    unparsed = np.isnan(left["value"][:, 0]) | np.isnan(right["value"][:, 0])
    similarities[unparsed] = (left["text"][unparsed] == right["text"][unparsed]).astype(np.float64)
    return similarities.astype(np.float32)


def _strings(columns: list[list[str]]) -> Values:
    """Columns of texts as one array of objects (n, c)."""
    rows = np.empty((len(columns[0]), len(columns)), dtype=object)
    for number, column in enumerate(columns):
        rows[:, number] = column
    return rows


def _rapidfuzz_similarity(scorer: Any, left: Values, right: Values) -> FloatArray:
    """The similarity of each pair of texts by a scorer of rapidfuzz, computed on all processors."""
    from rapidfuzz.process import cpdist

    similarities: FloatArray = cpdist(left.tolist(), right.tolist(), scorer=scorer, dtype=np.float32, workers=-1)
    return similarities


COMPARATORS: dict[str, Comparator] = {
    "name": Comparator(_read_names, _compare_names),
    "text": Comparator(_read_texts, _compare_texts),
    "number": Comparator(_reader(lambda text: (parse_number(text),), 1), _compare_numbers),
    "date": Comparator(_reader(parse_date, 3), _compare_dates),
    "code": Comparator(_read_codes, _compare_codes),
    "coordinate": Comparator(_reader(_coordinate, 2), _compare_coordinates),
    "truth_value": Comparator(_read_truth_values, _compare_truth_values),
}
