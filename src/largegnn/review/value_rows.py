"""The values of two entities side by side: those of predicates that answer to each other in one row.

In: the literals, and which predicates answer to which. Out: rows for a table. Cost: the literals of the two entities.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from largegnn.artifacts.literals import Literals
from largegnn.review.labels import local_part, span

__all__ = ["ValueRow", "compare_values", "values_of"]

_MOST_ROWS, _MOST_VALUES, _LONGEST = 14, 4, 160


@dataclass(frozen=True)
class ValueRow:
    """Values of one predicate of either side; `state` is same, different, source only or target only."""

    source_predicate: str
    target_predicate: str
    source_values: tuple[str, ...]
    target_values: tuple[str, ...]
    state: str


def values_of(literals: Literals, entity: int, *, plain: bool = False) -> dict[str, list[str]]:
    """The values of an entity by predicate, cut short and with their language; `plain`: as they are."""
    found: dict[str, list[str]] = {}
    begin, end = span(literals.entities, entity)
    for row in range(begin, end):
        language = literals.language_names[int(literals.languages[row])]
        text = literals.values[row]
        if plain:
            found.setdefault(literals.predicate_names[int(literals.predicates[row])], []).append(text)
            continue
        shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
        predicate = literals.predicate_names[int(literals.predicates[row])]
        found.setdefault(predicate, []).append(f"{shown} @{language}" if language else shown)
    return found


def compare_values(
    literals: Literals, source: int, target: int, correspondences: Iterable[tuple[str, str]] = ()
) -> tuple[ValueRow, ...]:
    """The values of a pair: predicates that answer to each other first, then those of the same name, then the rest."""
    left, right = values_of(literals, source), values_of(literals, target)
    joined = [(one, other) for one, other in correspondences if one in left and other in right]
    by_local = {local_part(name).lower(): name for name in right}
    joined += [(name, by_local[key]) for name in left if (key := local_part(name).lower()) in by_local]
    rows: list[ValueRow] = []
    seen: tuple[set[str], set[str]] = (set(), set())
    for one, other in joined:
        if one not in seen[0] and other not in seen[1]:
            seen[0].add(one)
            seen[1].add(other)
            rows.append(_row(one, other, left[one], right[other]))
    rows += [_row(name, "", values, []) for name, values in left.items() if name not in seen[0]]
    rows += [_row("", name, [], values) for name, values in right.items() if name not in seen[1]]
    return tuple(rows[:_MOST_ROWS])


def _row(one: str, other: str, left: list[str], right: list[str]) -> ValueRow:
    if not right:
        state = "source only"
    elif not left:
        state = "target only"
    else:
        state = "same" if {_plain(text) for text in left} & {_plain(text) for text in right} else "different"
    return ValueRow(local_part(one), local_part(other), _few(left), _few(right), state)


def _plain(text: str) -> str:
    """A value as people compare it: without language, case, and underscores in place of spaces."""
    words = (text.rpartition(" @")[0] or text).casefold().replace("_", " ")
    return " ".join(words.split())


def _few(values: list[str]) -> tuple[str, ...]:
    more = len(values) - _MOST_VALUES
    return (*values[:_MOST_VALUES], *([f"and {more:,} more"] if more > 0 else []))
