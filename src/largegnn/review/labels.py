"""Choose the label of an entity: its name where it has one, else the last part of its identifier.

In: names and literals. Out: a label for any entity. Cost: a search by halving for each entity.
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
_LONGEST = 200


def local_part(name: str) -> str:
    """The last part of an IRI with its percent-escapes decoded; any other name as it is."""
    return unquote(shown.local_part(name))


def name_predicates(literals: Literals, profiles: Iterable[PredicateProfile] = ()) -> list[int]:
    """The predicates that hold names, best first: by the words of vocabularies, then by the profile of their values."""
    wanted = {one.predicate for one in profiles if one.kind == "name"}
    rated = []
    for number, predicate in enumerate(literals.predicate_names):
        word = _NAME.match(local_part(predicate).split(":")[-1])
        if word or predicate in wanted:
            rated.append((word is None, number))
    return [number for _, number in sorted(rated)]


class Labels:
    """The labels of the entities of one run."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, name_predicates: Iterable[int] = ()
    ) -> None:
        self.task, self.names, self.literals = task, names, literals
        self.name_predicates = tuple(name_predicates)
        self._order = {number: place for place, number in enumerate(self.name_predicates)}

    def iri(self, entity: int) -> str:
        """The identifier of an entity, as in its file."""
        return self.names.entities[entity]

    def label(self, entity: int) -> str:
        """The name of an entity, in English where it has several."""
        best: tuple[int, int] | None = None
        label = ""
        begin, end = span(self.literals.entities, entity)
        for row in range(begin, end) if self._order else ():
            place = self._order.get(int(self.literals.predicates[row]))
            if place is None:
                continue
            language = self.literals.language_names[int(self.literals.languages[row])]
            rank = (place, int(language not in ("", "en") and not language.startswith("en-")))
            text = self.literals.values[row].strip() if best is None or rank < best else ""
            if text:
                best, label = rank, text
        return " ".join((label or local_part(self.iri(entity))).split())[:_LONGEST] or self.iri(entity)[:_LONGEST]

    def of_many(self, entities: IntArray) -> list[str]:
        """A name for each of many entities (n,), by one pass over the literals; "" for those without one."""
        found: dict[int, int] = {}
        for number in reversed(self._order):
            rows = np.flatnonzero(self.literals.predicates == number)[::-1]
            found.update(zip(self.literals.entities[rows].tolist(), rows.tolist(), strict=True))
        rows = np.array([found.get(entity, -1) for entity in entities.tolist()], dtype=np.int64)
        texts = iter(self.literals.values.take(rows[rows >= 0]))
        return [next(texts) if row >= 0 else "" for row in rows.tolist()]

    def relation(self, relation: int) -> str:
        """The name of a relation."""
        return local_part(self.names.relations[relation])
