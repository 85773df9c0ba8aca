"""Profile the predicates of a graph: names, texts, numbers, dates, codes, coordinates or truth values.

In: the literals of one side. Out: a profile of each predicate: its kind, the share of entities that have it, the share
of distinct values, and examples. Nothing is configured: well-known predicates of names are names, the kind of all
others follows from their values, read as people and programs write them; the functions that read them never fail.
Cost: a sample of the values of each predicate is parsed.
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
_SAMPLE = 2_000
_EXAMPLES = 3
_LONG_NAME, _MANY_WORDS = 100, 12
# The name of a thing in common vocabularies (RDFS, SKOS, schema.org, FOAF, Dublin Core, OBO, vCard).
_NAME_WORDS = re.compile(
    r"^(label|pref_?label|alt_?label|hidden_?label|name|title|full_?name|display_?name|alternate_?name|nick|fn|"
    r"has_?(exact|related|broad|narrow)?_?synonym|synonyms?|alias(es)?|official_?name|native_?name|given_?names?_file)$",
    re.IGNORECASE,
)
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


@dataclass(frozen=True)
class PredicateProfile:
    """One predicate of one side; shares are of all entities of the side and of all values of the predicate."""

    predicate: str
    kind: str
    num_values: int
    coverage: float
    distinct: float
    functional: float
    mean_length: float
    examples: tuple[str, ...]


def profile_predicates(
    literals: Literals, inside: slice, num_entities: int, seed: int = 0
) -> dict[int, PredicateProfile]:
    """A profile for each predicate that the literals of one side, the rows `inside`, use."""
    predicates, entities = literals.predicates[inside], literals.entities[inside]
    order = np.argsort(predicates, kind="stable")
    used, starts = np.unique(predicates[order], return_index=True)
    rng = np.random.default_rng(seed)
    found = {}
    for predicate, rows in zip(used.tolist(), np.split(order, starts)[1:], strict=True):
        chosen = rows if len(rows) <= _SAMPLE else np.sort(rng.choice(rows, _SAMPLE, replace=False))
        sample = literals.values.take(chosen + inside.start)
        name = literals.predicate_names[predicate]
        found[predicate] = _profile(name, sample, entities[rows], num_entities)
    return found


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
        mean_length=float(np.mean([len(text) for text in sample])) if sample else 0.0,
        examples=tuple(text[:60] for text in list(dict.fromkeys(sample))[:_EXAMPLES]),
    )


def _kind(name: str, sample: Sequence[str], distinct: float) -> str:
    """The kind that most values of a predicate are of."""
    filled = [text for text in sample if text.strip()]
    if not filled:
        return "text"

    def most(test: Callable[[str], object]) -> bool:
        return sum(bool(test(text)) for text in filled) >= 0.8 * len(filled)

    local = re.split(r"[/#:]", name.rstrip("/#"))[-1]
    if most(is_truth_value) and len(set(filled)) <= 4:
        return "truth_value"
    if most(is_coordinate):
        return "coordinate"
    if most(lambda text: parse_date(text) is not None) and not most(lambda text: len(text) <= 3):
        return "date"
    if most(lambda text: parse_number(text) is not None):
        # A number that no other entity has is a code: a telephone number, an identity number.
        lengths = [len(re.sub(r"\D", "", text)) for text in filled]
        return "code" if distinct > 0.8 and len(filled) > 20 and np.median(lengths) >= 6 else "number"
    if most(is_code):
        return "code"
    short = np.median([len(text) for text in filled]) <= _LONG_NAME
    few = np.median([len(text.split()) for text in filled]) <= _MANY_WORDS
    if short and few and (_NAME_WORDS.match(local) or distinct > 0.3):
        return "name"
    return "text"


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
    """Whether a text means yes or no."""
    return text.strip().lower() in _TRUTH
