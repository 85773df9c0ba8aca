"""Choose the label of an entity: its name where it has one, else the last part of its identifier.

In: names and literals. Out: a label for any entity. Cost: a binary search for each entity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data import shown
from largegnn.literals.profiles import PredicateProfile
from largegnn.review.lookup import span

__all__ = ["Labels", "local_part", "name_predicates"]

_NAME = re.compile(r"^(pref_?label|label|name|title|full_?name|display_?name|official_?name|fn)$", re.IGNORECASE)
_MAX_CHARS = 200


def local_part(name: str) -> str:
    """The last part of an IRI with its percent-escapes decoded; any other name as it is."""
    return unquote(shown.local_part(name))


def name_predicates(literals: Literals, profiles: Iterable[PredicateProfile] = ()) -> list[int]:
    """Find the predicates that hold names: first by their own names, then by the profiles of their values."""
    profiled = {profile.predicate for profile in profiles if profile.kind == "name"}
    ranked = []
    for number, predicate in enumerate(literals.predicate_names):
        by_word = _NAME.match(local_part(predicate).split(":")[-1])
        if by_word or predicate in profiled:
            ranked.append((by_word is None, number))
    return [number for _, number in sorted(ranked)]


class Labels:
    """The labels of the entities and relations of a run."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, name_predicates: Iterable[int] = ()
    ) -> None:
        self.task, self.names, self.literals = task, names, literals
        self.name_predicates = tuple(name_predicates)
        self._predicate_ranks = {number: rank for rank, number in enumerate(self.name_predicates)}

    def iri(self, entity: int) -> str:
        """The identifier of an entity, as in the input files."""
        return self.names.entities[entity]

    def label(self, entity: int) -> str:
        """The name of an entity, preferably English, or else the last part of its identifier."""
        best: tuple[int, int] | None = None
        label = ""
        begin, end = span(self.literals.entities, entity)
        for row in range(begin, end) if self._predicate_ranks else ():
            predicate_rank = self._predicate_ranks.get(int(self.literals.predicates[row]))
            if predicate_rank is None:
                continue
            language = self.literals.language_names[int(self.literals.languages[row])]
            is_foreign = language not in ("", "en") and not language.startswith("en-")
            rank = (predicate_rank, int(is_foreign))
            text = self.literals.values[row].strip() if best is None or rank < best else ""
            if text:
                best, label = rank, text
        return " ".join((label or local_part(self.iri(entity))).split())[:_MAX_CHARS] or self.iri(entity)[:_MAX_CHARS]

    def of_many(self, entities: IntArray) -> list[str]:
        """The names of many entities (n,), by one pass over the literals per predicate; "" for nameless entities.

        Unlike `label`, it ignores languages.
        """
        row_of_entity: dict[int, int] = {}
        # A later assignment overwrites an earlier one, so the best predicate and its first value win.
        for number in reversed(self._predicate_ranks):
            rows = np.flatnonzero(self.literals.predicates == number)[::-1]
            row_of_entity.update(zip(self.literals.entities[rows].tolist(), rows.tolist(), strict=True))
        rows = np.array([row_of_entity.get(entity, -1) for entity in entities.tolist()], dtype=np.int64)
        texts = iter(self.literals.values.take(rows[rows >= 0]))
        return [next(texts) if row >= 0 else "" for row in rows.tolist()]

    def relation(self, relation: int) -> str:
        """The name of a relation."""
        return local_part(self.names.relations[relation])
