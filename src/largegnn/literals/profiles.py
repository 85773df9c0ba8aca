"""What the predicates of a graph hold: names, texts, numbers, dates, codes, coordinates, truth values.

In: the literals of one side. Out: a profile of each predicate: its kind, how many entities have it, how distinct its
values are, and a few of them. Nothing is configured: well-known predicates of names are names, all others are told by
looking at their values.
Cost: a sample of the values of each predicate is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import IntArray, Literals
from largegnn.literals.values import is_code, is_coordinate, is_truth_value, parse_date, parse_number

__all__ = ["KINDS", "PredicateProfile", "profile_predicates"]

KINDS = ("name", "text", "number", "date", "code", "coordinate", "truth_value")
_SAMPLE = 2_000
_EXAMPLES = 3
_LONG_NAME, _MANY_WORDS = 100, 12
# What vocabularies call the name of a thing (RDFS, SKOS, schema.org, FOAF, Dublin Core, OBO, vCard).
_NAME_WORDS = re.compile(
    r"^(label|pref_?label|alt_?label|hidden_?label|name|title|full_?name|display_?name|alternate_?name|nick|fn|"
    r"has_?(exact|related|broad|narrow)?_?synonym|synonyms?|alias(es)?|official_?name|native_?name|given_?names?_file)$",
    re.IGNORECASE,
)


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

    def most(test: object) -> bool:
        return sum(bool(test(text)) for text in filled) >= 0.8 * len(filled)  # type: ignore[operator]

    local = re.split(r"[/#:]", name.rstrip("/#"))[-1]
    if most(is_truth_value) and len(set(filled)) <= 4:
        return "truth_value"
    if most(is_coordinate):
        return "coordinate"
    if most(lambda text: parse_date(text) is not None) and not most(lambda text: len(text) <= 3):
        return "date"
    if most(lambda text: parse_number(text) is not None):
        # A number that nobody else has is a code: a telephone number, an identity number.
        lengths = [len(re.sub(r"\D", "", text)) for text in filled]
        return "code" if distinct > 0.8 and len(filled) > 20 and np.median(lengths) >= 6 else "number"
    if most(is_code):
        return "code"
    short = np.median([len(text) for text in filled]) <= _LONG_NAME
    few = np.median([len(text.split()) for text in filled]) <= _MANY_WORDS
    if short and few and (_NAME_WORDS.match(local) or distinct > 0.3):
        return "name"
    return "text"
