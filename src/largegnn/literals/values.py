"""Values read as what they are: numbers, dates, codes, coordinates, truth values.

In: texts as people and programs write them. Out: parsed values, None for what is none; nothing here ever fails.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Date", "is_code", "is_coordinate", "is_truth_value", "parse_date", "parse_number"]

_NUMBER = re.compile(
    r"^\s*[$€£¥]?\s*([+-]?\d{1,3}(?:[,\s]\d{3})+(?:\.\d+)?|[+-]?\d*\.?\d+(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%°²³µ/]{0,12})\.?\s*$"
)
_ISO = re.compile(r"^\s*([+-]?\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ]\d.*)?Z?\s*$")
_COMPACT = re.compile(r"^\s*((?:1[5-9]|20)\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\s*$")
_EUROPEAN = re.compile(r"^\s*(\d{1,2})[./](\d{1,2})[./](\d{4})\s*$")
_CODE = re.compile(r"^\s*(?=[^\s]*\d)[A-Za-z0-9][A-Za-z0-9()+./:_-]{3,}\s*$")
_URL = re.compile(r"^\s*(https?://|www\.|mailto:)\S+\s*$|^\s*[^\s@]+@[^\s@]+\.[a-z]{2,}\s*$", re.IGNORECASE)
_COORDINATE = re.compile(
    r"^\s*(?:point\s*\()?\s*[+-]?\d{1,3}\.\d+\s*[,;\s]\s*[+-]?\d{1,3}\.\d+\s*\)?\s*$", re.IGNORECASE
)
_TRUTH = {"true", "false", "yes", "no", "0", "1"}
_LONGEST = 200


class Date(NamedTuple):
    """A date as precisely as it was given; month and day are 0 where they were not."""

    year: int
    month: int
    day: int


def parse_number(text: str) -> float | None:
    """A number, with or without a currency sign, separators of thousands or a unit."""
    match = _NUMBER.match(text[:_LONGEST])
    if not match:
        return None
    try:
        return float(re.sub(r"[,\s]", "", match.group(1)))
    except ValueError:
        return None


def parse_date(text: str) -> Date | None:
    """A date: ISO (a year, a month or a day), eight digits, or day, month and year with dots or slashes."""
    short = text[:_LONGEST]
    match = _ISO.match(short) or _COMPACT.match(short)
    if match:
        year, month, day = (int(part or 0) for part in match.groups())
    else:
        match = _EUROPEAN.match(short)
        if not match:
            return None
        day, month, year = (int(part) for part in match.groups())
        if month > 12 >= day:
            day, month = month, day
    if not 1 <= abs(year) <= 2999 or month > 12 or day > 31:
        return None
    return Date(year, month, day)


def is_code(text: str) -> bool:
    """Whether a text is one word with a digit in it, an address of a page or of a mailbox."""
    short = text[:_LONGEST]
    return bool(_CODE.match(short) or _URL.match(short))


def is_coordinate(text: str) -> bool:
    """Whether a text is a pair of decimal degrees."""
    return bool(_COORDINATE.match(text[:_LONGEST]))


def is_truth_value(text: str) -> bool:
    """Whether a text says yes or no."""
    return text.strip().lower() in _TRUTH
