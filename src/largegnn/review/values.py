"""Compare the values of two entities: names, values of corresponding predicates, and a table side by side.

In: the literals, the predicates that hold names, and the corresponding predicates of the two sides. Out: names of an
entity and comparisons for explanations (`PairValues`), rows for pages (`compare_values`).
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

_MAX_NAMES = 5
_MIN_AGREEMENT = 0.95  # similarity from which two values agree
_MAX_ROWS, _MAX_VALUES, _MAX_CHARS = 14, 4, 160  # of the table of a page


@dataclass(frozen=True)
class ComparedValues:
    """The values of two corresponding predicates; `odds` is the logarithm of the odds, negative where values differ."""

    source_predicate: str
    target_predicate: str
    kind: str
    source_value: str
    target_value: str
    similarity: float
    agrees: bool
    odds: float


class PairValues:
    """The names and values of the entities of a run."""

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
        """The names of an entity by its literals, at most five."""
        begin, end = span(self._literals.entities, entity)
        named = [row for row in range(begin, end) if int(self._literals.predicates[row]) in self._name_predicates]
        return tuple(dict.fromkeys(self._literals.values.take(named)))[:_MAX_NAMES]

    def compared(self, source: int, target: int) -> tuple[ComparedValues, ...]:
        """Compare the values of corresponding predicates that both entities have, strongest evidence first."""
        left, right = values_of(self._literals, source), values_of(self._literals, target)
        compared = [
            _compared(match, left[match.source_predicate][0], right[match.target_predicate][0])
            for match in self._correspondences
            if match.source_predicate in left and match.target_predicate in right
        ]
        return tuple(sorted(compared, key=lambda values: -abs(values.odds)))


def _compared(match: Correspondence, source_value: str, target_value: str) -> ComparedValues:
    similarity = float(COMPARATORS[match.kind]([source_value], [target_value])[0])
    agrees = similarity >= _MIN_AGREEMENT
    odds = match.odds_for if agrees else -match.odds_against
    return ComparedValues(
        match.source_predicate, match.target_predicate, match.kind, source_value, target_value, similarity, agrees, odds
    )


@dataclass(frozen=True)
class ValueRow:
    """The values of a predicate of either side; `state` is same, different, source only or target only."""

    source_predicate: str
    target_predicate: str
    source_values: tuple[str, ...]
    target_values: tuple[str, ...]
    state: str


def values_of(literals: Literals, entity: int, *, for_page: bool = False) -> dict[str, list[str]]:
    """The values of an entity by predicate; `for_page`: shortened where they are long, and with their languages."""
    rows = np.arange(*span(literals.entities, entity))
    predicates = literals.predicate_names.take(literals.predicates[rows])
    languages = literals.language_names.take(literals.languages[rows])
    values_by_predicate: dict[str, list[str]] = {}
    for predicate, language, value in zip(predicates, languages, literals.values.take(rows), strict=True):
        if for_page:
            value = value if len(value) <= _MAX_CHARS else value[: _MAX_CHARS - 1] + "…"
            value = f"{value} @{language}" if language else value
        values_by_predicate.setdefault(predicate, []).append(value)
    return values_by_predicate


def compare_values(
    literals: Literals, source: int, target: int, correspondences: Iterable[tuple[str, str]] = ()
) -> tuple[ValueRow, ...]:
    """Arrange the values of a pair: corresponding predicates, then predicates of equal names, then all others."""
    left, right = values_of(literals, source, for_page=True), values_of(literals, target, for_page=True)
    joined = [(key, other_key) for key, other_key in correspondences if key in left and other_key in right]
    right_by_local = {local_part(key).lower(): key for key in right}
    joined += [(key, right_by_local[local]) for key in left if (local := local_part(key).lower()) in right_by_local]
    rows: list[ValueRow] = []
    used_left: set[str] = set()
    used_right: set[str] = set()
    for left_key, right_key in joined:
        if left_key not in used_left and right_key not in used_right:
            used_left.add(left_key)
            used_right.add(right_key)
            rows.append(_row(left_key, right_key, left[left_key], right[right_key]))
    rows += [_row(key, "", values, []) for key, values in left.items() if key not in used_left]
    rows += [_row("", key, [], values) for key, values in right.items() if key not in used_right]
    return tuple(rows[:_MAX_ROWS])


def _row(source_predicate: str, target_predicate: str, source_values: list[str], target_values: list[str]) -> ValueRow:
    if not target_values:
        state = "source only"
    elif not source_values:
        state = "target only"
    else:
        state = "same" if set(map(_plain, source_values)) & set(map(_plain, target_values)) else "different"
    source_name, target_name = local_part(source_predicate), local_part(target_predicate)
    return ValueRow(source_name, target_name, _first_values(source_values), _first_values(target_values), state)


def _plain(text: str) -> str:
    """A value as people compare it: without its language, in lower case, with spaces in place of underscores."""
    words = (text.rpartition(" @")[0] or text).casefold().replace("_", " ")
    return " ".join(words.split())


def _first_values(values: list[str]) -> tuple[str, ...]:
    """The first values, and the number of the others in words."""
    num_others = len(values) - _MAX_VALUES
    return (*values[:_MAX_VALUES], *([f"and {num_others:,} more"] if num_others > 0 else []))
