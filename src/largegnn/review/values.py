"""What two entities say of themselves, side by side: names, and the values of predicates that answer to each other.

In: the literals, which predicates hold names, and which answers to which. Out: names of an entity, values of a pair.
Cost: one pass over the literals to index them, then what concerns one pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.artifacts.literals import Literals
from largegnn.literals.comparators import comparator
from largegnn.literals.values_evidence import Correspondence
from largegnn.review.labels import span

__all__ = ["ComparedValues", "PairValues"]

_MOST_NAMES = 5
_AGREES = 0.95


@dataclass(frozen=True)
class ComparedValues:
    """The values of two predicates that answer to each other; `odds` is a logarithm, below zero where they differ."""

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
        comparators: Mapping[str, str],
    ) -> None:
        """`name_predicates` are the numbers of the predicates that hold names."""
        self._literals, self._name_predicates = literals, frozenset(name_predicates)
        self._correspondences, self._comparators = correspondences, comparators

    def names(self, entity: int) -> tuple[str, ...]:
        """What an entity is called, by its literals; nothing where it has no name of its own."""
        rows = self._rows(entity)
        named = [row for row in rows if self._literals.predicates[row] in self._name_predicates]
        return tuple(dict.fromkeys(self._literals.values.take(named)))[:_MOST_NAMES]

    def said(self, entity: int) -> list[tuple[str, str]]:
        """All that an entity says of itself: predicates and values."""
        rows = self._rows(entity)
        predicates = self._literals.predicate_names.take(self._literals.predicates[rows])
        return list(zip(predicates, self._literals.values.take(rows), strict=True))

    def compared(self, source: int, target: int) -> tuple[ComparedValues, ...]:
        """The values both have of predicates that answer to each other, what speaks loudest first."""
        first_of = [self._first_values(entity) for entity in (source, target)]
        found = [
            self._compare(one, first_of[0][one.source_predicate], first_of[1][one.target_predicate])
            for one in self._correspondences
            if one.source_predicate in first_of[0] and one.target_predicate in first_of[1]
        ]
        return tuple(sorted(found, key=lambda one: -abs(one.odds)))

    def _compare(self, one: Correspondence, left: str, right: str) -> ComparedValues:
        similarity = float(comparator(self._comparators[one.kind])([left], [right])[0])
        agrees = similarity >= _AGREES
        odds = one.odds_for if agrees else -one.odds_against
        return ComparedValues(
            one.source_predicate, one.target_predicate, one.kind, left, right, similarity, agrees, odds
        )

    def _first_values(self, entity: int) -> dict[str, str]:
        values: dict[str, str] = {}
        for predicate, value in self.said(entity):
            values.setdefault(predicate, value)
        return values

    def _rows(self, entity: int) -> IntArray:
        return np.arange(*span(self._literals.entities, entity))
