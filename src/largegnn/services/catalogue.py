"""Look up the entities of a run for a service: names, types, properties and values, by id and by name.

In: the graphs and literals of a run. Out: plain values for answers. Properties are the predicates of literals and the
relations to other entities; types are the targets of a relation called `type` (or `instance of`).
Cost: one pass over triples and literals; then the triples and literals of one entity.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from largegnn.data.names import EntityNames
from largegnn.literals.normalise import normalise, split_identifier
from largegnn.review.labels import Labels, local_part
from largegnn.review.neighbors import NeighborIndex
from largegnn.review.values import values_of
from largegnn.services.name_index import NameIndex, TextRows

__all__ = ["ANY_TYPE", "Catalogue"]

ANY_TYPE = {"id": "entity", "name": "Entity"}
_TYPE = re.compile(r"^(type|instance_?of|p31|isa|is_?a|a)$", re.IGNORECASE)
_MOST_TYPES = 20


class Catalogue:
    """The entities of both sides; those of `side` (0 or 1) are the candidates of the service."""

    def __init__(self, labels: Labels, neighbors: NeighborIndex, side: int) -> None:
        task = labels.task
        self.labels, self.side = labels, side
        self._neighbors = neighbors
        self._names = EntityNames(labels.names.entities, task.num_source_entities)
        relations = labels.names.relations
        self._type_relations = frozenset(
            number for number in range(len(relations)) if _TYPE.match(local_part(relations[number]).split(":")[-1])
        )

    @property
    def _range(self) -> tuple[int, int]:
        split, total = self.labels.task.num_source_entities, self.labels.task.num_entities
        return ((0, split), (split, total))[self.side]

    def is_candidate(self, entity: int) -> bool:
        """Whether an entity is of the side of the candidates."""
        return self._range[0] <= entity < self._range[1]

    def find(self, name: str, side: int | None = None) -> list[int]:
        """The entities with exactly this identifier, of one side or of both."""
        sides = (0, 1) if side is None else (side,)
        found = [int(self._names.find_all([name], ("source", "target")[one])[0]) for one in sides]
        return [entity for entity in found if entity >= 0]

    def prepare(self) -> None:
        """Make all indexes now, and not with the first query."""
        self._names.prepare()
        _ = self.names, self.all_types, self.all_properties

    @cached_property
    def names(self) -> NameIndex:
        """All names of both sides."""
        task, literals = self.labels.task, self.labels.literals
        predicates = np.array(self.labels.name_predicates, dtype=np.int64)
        rows = np.flatnonzero(np.isin(literals.predicates, predicates))
        owners = literals.entities[rows].astype(np.int64)
        nameless = np.setdiff1d(np.arange(task.num_entities), owners)
        identifiers = [split_identifier(local_part(name)) for name in self.labels.names.entities.take(nameless)]
        texts = normalise([*literals.values.take(rows), *identifiers])
        return NameIndex(texts, np.concatenate([owners, nameless]))

    def types(self, entity: int) -> list[dict[str, str]]:
        """The types of an entity; the general type where it has none."""
        found = [
            {"id": self.labels.iri(near), "name": self.labels.label(near)}
            for near, hops in self._neighbors.of(entity).items()
            if any(hop.is_forward and hop.relation in self._type_relations for hop in hops)
        ]
        return found or [ANY_TYPE]

    @cached_property
    def all_types(self) -> list[dict[str, str]]:
        """The most frequent types of the candidates."""
        triples = self.labels.task.triples
        is_type = np.isin(triples[:, 1], np.array(sorted(self._type_relations), dtype=np.int64))
        inside = (triples[:, 0] >= self._range[0]) & (triples[:, 0] < self._range[1])
        types, counts = np.unique(triples[is_type & inside, 2], return_counts=True)
        ordered = types[np.argsort(-counts, kind="stable")][:_MOST_TYPES].tolist()
        return [{"id": self.labels.iri(one), "name": self.labels.label(one)} for one in ordered] or [ANY_TYPE]

    @cached_property
    def all_properties(self) -> list[dict[str, str]]:
        """The predicates and relations of the candidates, most frequent first."""
        task, literals = self.labels.task, self.labels.literals
        rows = self._literal_rows
        inside = (task.triples[:, 0] >= self._range[0]) & (task.triples[:, 0] < self._range[1])
        named = (
            (literals.predicates[rows], literals.predicate_names),
            (task.triples[inside, 1], self.labels.names.relations),
        )
        found: list[tuple[int, str]] = []
        for numbers, names in named:
            present, counts = np.unique(numbers, return_counts=True)
            found += zip(counts.tolist(), names.take(present), strict=True)
        ordered = dict.fromkeys(name for _, name in sorted(found, key=lambda one: (-one[0], one[1])))
        return [{"id": name, "name": local_part(name)} for name in ordered]

    def property_values(self, entity: int, pid: str) -> list[dict[str, str]]:
        """The values of a property as the protocol writes them: texts, or entities with id and name."""
        texts = values_of(self.labels.literals, entity)
        names = [name for name in texts if pid in (name, local_part(name))]
        found = [{"str": text} for name in names for text in texts[name]]
        for near, hops in self._neighbors.of(entity).items():
            relations = [self.labels.names.relations[hop.relation] for hop in hops if hop.is_forward]
            if any(pid in (name, local_part(name)) for name in relations):
                found.append({"id": self.labels.iri(near), "name": self.labels.label(near)})
        return found

    def agreement(self, entity: int, pid: str, wanted: Sequence[str]) -> float:
        """The similarity of a property's values to the wanted ones, from 0 to 1."""
        from rapidfuzz import fuzz

        known = [text for value in self.property_values(entity, pid) for text in value.values()]
        if set(known) & set(wanted):
            return 1.0
        pairs = itertools.product(normalise(known), normalise(wanted))
        return max((fuzz.token_sort_ratio(one, other) / 100 for one, other in pairs), default=0.0)

    def with_value(self, texts: Sequence[str], most: int) -> list[int]:
        """Candidates that have one of these values, equal but for case."""
        literals, begin = self.labels.literals, self._literal_rows.start
        found: dict[int, None] = {}
        for text in texts:
            rows = [begin + row for row in self._values.of(_folded(text))]
            equal = [row for row in rows if _folded(literals.values[row]) == _folded(text)]
            found.update(dict.fromkeys(literals.entities[equal].tolist()))
            for entity in self.find(text):
                found.update(dict.fromkeys(self._neighbors.of(entity)))
        return [entity for entity in found if self.is_candidate(entity)][:most]

    @property
    def _literal_rows(self) -> slice:
        return self.labels.literals.rows_of_sides(self.labels.task.num_source_entities)[self.side]

    @cached_property
    def _values(self) -> TextRows:
        rows = np.arange(self._literal_rows.start, self._literal_rows.stop)
        return TextRows(map(_folded, self.labels.literals.values.take(rows)))

    def described(self, entity: int) -> dict[str, Any]:
        """The id and name of an entity."""
        return {"id": self.labels.iri(entity), "name": self.labels.label(entity)}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
