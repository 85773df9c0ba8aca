"""Compare the values of two entities: names, values of corresponding predicates, and a table side by side.

In: the literals, the predicates that hold names, and the corresponding predicates of the two sides. Out: names of an
entity, comparisons for explanations (`PairValues`), rows for pages (`compare_values`).
Cost: the literals of the two entities.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.literals import Literals
from largegnn.literals.comparators import COMPARATORS
from largegnn.literals.values_evidence import Correspondence
from largegnn.review.labels import local_part
from largegnn.review.lookup import span

__all__ = ["ComparedValues", "PairValues", "ValueRow", "compare_values", "values_of"]

_MOST_NAMES = 5
_AGREES = 0.95  # similarity from which two values agree
_MOST_ROWS, _MOST_VALUES, _LONGEST = 14, 4, 160


@dataclass(frozen=True)
class ComparedValues:
    """The values of two corresponding predicates; `odds` is a logarithm, below zero where they differ."""

    source_predicate: str
    target_predicate: str
    kind: str
    source_value: str
    target_value: str
    similarity: float
    agrees: bool
    odds: float


class PairValues:
    """Names and values of the entities of one run."""

    def __init__(
        self,
        literals: Literals,
        name_predicates: Iterable[int],
        correspondences: Sequence[Correspondence],
    ) -> None:
        """`name_predicates` are the numbers of the predicates that hold names."""
        self._literals, self._name_predicates = literals, frozenset(name_predicates)
        self._correspondences = correspondences

    def names(self, entity: int) -> tuple[str, ...]:
        """The names of an entity by its literals; nothing where it has none."""
        begin, end = span(self._literals.entities, entity)
        named = [row for row in range(begin, end) if int(self._literals.predicates[row]) in self._name_predicates]
        return tuple(dict.fromkeys(self._literals.values.take(named)))[:_MOST_NAMES]

    def compared(self, source: int, target: int) -> tuple[ComparedValues, ...]:
        """The values of corresponding predicates that both entities have, strongest evidence first."""
        left, right = values_of(self._literals, source), values_of(self._literals, target)
        found = [
            self._compare(one, left[one.source_predicate][0], right[one.target_predicate][0])
            for one in self._correspondences
            if one.source_predicate in left and one.target_predicate in right
        ]
        return tuple(sorted(found, key=lambda one: -abs(one.odds)))

    def _compare(self, one: Correspondence, left: str, right: str) -> ComparedValues:
        similarity = float(COMPARATORS[one.kind]([left], [right])[0])
        agrees = similarity >= _AGREES
        odds = one.odds_for if agrees else -one.odds_against
        return ComparedValues(
            one.source_predicate, one.target_predicate, one.kind, left, right, similarity, agrees, odds
        )


@dataclass(frozen=True)
class ValueRow:
    """Values of one predicate of either side; `state` is same, different, source only or target only."""

    source_predicate: str
    target_predicate: str
    source_values: tuple[str, ...]
    target_values: tuple[str, ...]
    state: str


def values_of(literals: Literals, entity: int, *, for_page: bool = False) -> dict[str, list[str]]:
    """The values of an entity by predicate; `for_page`: cut where they are long, each with its language."""
    rows = np.arange(*span(literals.entities, entity))
    predicates = literals.predicate_names.take(literals.predicates[rows])
    languages = literals.language_names.take(literals.languages[rows])
    found: dict[str, list[str]] = {}
    for predicate, language, value in zip(predicates, languages, literals.values.take(rows), strict=True):
        if for_page:
            value = value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…"
            value = f"{value} @{language}" if language else value
        found.setdefault(predicate, []).append(value)
    return found


def compare_values(
    literals: Literals, source: int, target: int, correspondences: Iterable[tuple[str, str]] = ()
) -> tuple[ValueRow, ...]:
    """The values of a pair: corresponding predicates first, then those of the same name, then the rest."""
    left, right = values_of(literals, source, for_page=True), values_of(literals, target, for_page=True)
    joined = [(one, other) for one, other in correspondences if one in left and other in right]
    by_local = {local_part(name).lower(): name for name in right}
    joined += [(name, by_local[key]) for name in left if (key := local_part(name).lower()) in by_local]
    rows: list[ValueRow] = []
    done: tuple[set[str], set[str]] = (set(), set())
    for one, other in joined:
        if one not in done[0] and other not in done[1]:
            done[0].add(one)
            done[1].add(other)
            rows.append(_row(one, other, left[one], right[other]))
    rows += [_row(name, "", values, []) for name, values in left.items() if name not in done[0]]
    rows += [_row("", name, [], values) for name, values in right.items() if name not in done[1]]
    return tuple(rows[:_MOST_ROWS])


def _row(one: str, other: str, left: list[str], right: list[str]) -> ValueRow:
    if not right:
        state = "source only"
    elif not left:
        state = "target only"
    else:
        state = "same" if set(map(_plain, left)) & set(map(_plain, right)) else "different"
    return ValueRow(local_part(one), local_part(other), _few(left), _few(right), state)


def _plain(text: str) -> str:
    """A value as people compare it: without language, case, and underscores in place of spaces."""
    words = (text.rpartition(" @")[0] or text).casefold().replace("_", " ")
    return " ".join(words.split())


def _few(values: list[str]) -> tuple[str, ...]:
    more = len(values) - _MOST_VALUES
    return (*values[:_MOST_VALUES], *([f"and {more:,} more"] if more > 0 else []))
