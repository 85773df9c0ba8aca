"""Profile the predicates of a graph: find out whether their values are names, texts, numbers, dates, codes and so on.

In: the literals of one side. Out: a profile of each predicate: its kind, the share of entities that have it, the share
of distinct values, and examples. Nothing is configured: the kind follows from the values, and well-known predicates
such as rdfs:label hold names. The functions that parse a value never fail.
Cost: a sample of at most 2,000 values of each predicate is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from largegnn.artifacts import IntArray, Literals

__all__ = [
    "KINDS",
    "Date",
    "PredicateProfile",
    "is_code",
    "is_coordinate",
    "is_truth_value",
    "parse_date",
    "parse_number",
    "profile_predicates",
]

KINDS = ("name", "text", "number", "date", "code", "coordinate", "truth_value")
_SAMPLE_SIZE = 2_000
_NUM_EXAMPLES = 3
_MIN_KIND_SHARE = 0.8  # of the values of a predicate that must be of a kind
# Shares of distinct values from which numbers are codes and short texts are names; codes are long and many.
_MIN_DISTINCT_CODES, _MIN_DISTINCT_NAMES = 0.8, 0.3
_MIN_CODES, _MIN_CODE_DIGITS = 20, 6
_MAX_TRUTH_VALUES = 4
_MAX_NAME_CHARS, _MAX_NAME_WORDS = 100, 12  # medians over the values of a predicate
# Predicates for the name of a thing in common vocabularies (RDFS, SKOS, schema.org, FOAF, Dublin Core, OBO, vCard).
_NAME_PREDICATE = re.compile(
    r"^(label|pref_?label|alt_?label|hidden_?label|name|title|full_?name|display_?name|alternate_?name|nick|fn|"
    r"has_?(exact|related|broad|narrow)?_?synonym|synonyms?|alias(es)?|official_?name|native_?name)$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"^\s*[$€£¥]?\s*([+-]?\d{1,3}(?:[,\s]\d{3})+(?:\.\d+)?|[+-]?\d*\.?\d+(?:[eE][+-]?\d{1,3})?)\s*([A-Za-z%°²³µ/]{0,12})\.?\s*$"
)
_ISO_DATE = re.compile(r"^\s*([+-]?\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ]\d.*)?Z?\s*$")
_COMPACT_DATE = re.compile(r"^\s*((?:1[5-9]|20)\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])\s*$")
_EUROPEAN_DATE = re.compile(r"^\s*(\d{1,2})[./](\d{1,2})[./](\d{4})\s*$")
_CODE = re.compile(r"^\s*(?=[^\s]*\d)[A-Za-z0-9][A-Za-z0-9()+./:_-]{3,}\s*$")
_URL_OR_EMAIL = re.compile(r"^\s*(https?://|www\.|mailto:)\S+\s*$|^\s*[^\s@]+@[^\s@]+\.[a-z]{2,}\s*$", re.IGNORECASE)
_COORDINATE = re.compile(
    r"^\s*(?:point\s*\()?\s*[+-]?\d{1,3}\.\d+\s*[,;\s]\s*[+-]?\d{1,3}\.\d+\s*\)?\s*$", re.IGNORECASE
)
_TRUTH_VALUES = {"true", "false", "yes", "no", "0", "1"}
_MAX_CHARS = 200  # of a value that are parsed


@dataclass(frozen=True)
class PredicateProfile:
    """One predicate of one side.

    `coverage` is the share of the side's entities that have a value, `distinct` the share of distinct values in the
    sample, `functional` the number of entities with a value divided by the number of values.
    """

    predicate: str
    kind: str
    num_values: int
    coverage: float
    distinct: float
    functional: float
    examples: tuple[str, ...]


def profile_predicates(
    literals: Literals, rows: slice, num_entities: int, seed: int = 0
) -> dict[int, PredicateProfile]:
    """A profile for each predicate of one side, whose literals are in `rows`."""
    predicates, entities = literals.predicates[rows], literals.entities[rows]
    order = np.argsort(predicates, kind="stable")
    used, starts = np.unique(predicates[order], return_index=True)
    rng = np.random.default_rng(seed)
    profiles = {}
    for predicate, uses in zip(used.tolist(), np.split(order, starts)[1:], strict=True):
        sampled = uses if len(uses) <= _SAMPLE_SIZE else np.sort(rng.choice(uses, _SAMPLE_SIZE, replace=False))
        sample = literals.values.take(sampled + rows.start)
        name = literals.predicate_names[predicate]
        profiles[predicate] = _profile(name, sample, entities[uses], num_entities)
    return profiles


def _profile(name: str, sample: Sequence[str], owners: IntArray, num_entities: int) -> PredicateProfile:
    num_owners = len(np.unique(owners))
    distinct = len(set(sample)) / max(len(sample), 1)
    kind = _kind(name, sample, distinct)
    return PredicateProfile(
        predicate=name,
        kind=kind,
        num_values=len(owners),
        coverage=num_owners / max(num_entities, 1),
        distinct=distinct,
        functional=num_owners / max(len(owners), 1),
        examples=tuple(text[:60] for text in list(dict.fromkeys(sample))[:_NUM_EXAMPLES]),
    )


def _kind(name: str, sample: Sequence[str], distinct: float) -> str:
    """The kind of a predicate's values, judged by a sample of them."""
    filled = [text for text in sample if text.strip()]
    if not filled:
        return "text"

    def mostly(test: Callable[[str], object]) -> bool:
        return sum(bool(test(text)) for text in filled) >= _MIN_KIND_SHARE * len(filled)

    local_name = re.split(r"[/#:]", name.rstrip("/#"))[-1]
    if mostly(is_truth_value) and len(set(filled)) <= _MAX_TRUTH_VALUES:
        return "truth_value"
    if mostly(is_coordinate):
        return "coordinate"
    if mostly(lambda text: parse_date(text) is not None):
        return "date"
    if mostly(lambda text: parse_number(text) is not None):
        # Long numbers that are almost all distinct are codes, such as telephone numbers.
        lengths = [len(re.sub(r"\D", "", text)) for text in filled]
        is_code_like = distinct > _MIN_DISTINCT_CODES and len(filled) > _MIN_CODES
        return "code" if is_code_like and np.median(lengths) >= _MIN_CODE_DIGITS else "number"
    if mostly(is_code):
        return "code"
    is_short = np.median([len(text) for text in filled]) <= _MAX_NAME_CHARS
    has_few_words = np.median([len(text.split()) for text in filled]) <= _MAX_NAME_WORDS
    if is_short and has_few_words and (_NAME_PREDICATE.match(local_name) or distinct > _MIN_DISTINCT_NAMES):
        return "name"
    return "text"


class Date(NamedTuple):
    """A date; month and day are 0 if they are unknown."""

    year: int
    month: int
    day: int


def parse_number(text: str) -> float | None:
    """Parse a number, with or without a currency sign, thousands separators or a unit; None if it is not a number."""
    match = _NUMBER.match(text[:_MAX_CHARS])
    if not match:
        return None
    try:
        return float(re.sub(r"[,\s]", "", match.group(1)))
    except ValueError:
        return None


def parse_date(text: str) -> Date | None:
    """Parse a date: ISO (year, month or day), eight digits, or day, month, year with dots or slashes; else None."""
    short = text[:_MAX_CHARS]
    match = _ISO_DATE.match(short) or _COMPACT_DATE.match(short)
    if match:
        year, month, day = (int(part or 0) for part in match.groups())
    else:
        match = _EUROPEAN_DATE.match(short)
        if not match:
            return None
        day, month, year = (int(part) for part in match.groups())
        if month > 12 >= day:
            day, month = month, day
    if not 1 <= abs(year) <= 2999 or month > 12 or day > 31:
        return None
    return Date(year, month, day)


def is_code(text: str) -> bool:
    """Whether a text is one word with a digit in it, a URL or an email address."""
    short = text[:_MAX_CHARS]
    return bool(_CODE.match(short) or _URL_OR_EMAIL.match(short))


def is_coordinate(text: str) -> bool:
    """Whether a text is a pair of decimal degrees."""
    return bool(_COORDINATE.match(text[:_MAX_CHARS]))


def is_truth_value(text: str) -> bool:
    """Whether a text means yes or no."""
    return text.strip().lower() in _TRUTH_VALUES
