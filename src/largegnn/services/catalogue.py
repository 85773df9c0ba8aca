"""Look up entities of a run, and their names, types, properties and values, for the reconciliation service.

In: the graphs and literals of a run. Out: plain values for answers. Properties are the predicates of literals and the
relations to other entities; types are the targets of a relation called `type` (or `instance of`).
Cost: one pass over triples and literals for the indexes; then the triples and literals of the entity asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cached_property

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
_MAX_TYPES = 20


class Catalogue:
    """The entities of both sides; the entities of `side` (0 or 1) are the candidates of the service."""

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
    def _candidate_range(self) -> tuple[int, int]:
        split, total = self.labels.task.num_source_entities, self.labels.task.num_entities
        return ((0, split), (split, total))[self.side]

    def is_candidate(self, entity: int) -> bool:
        """Whether an entity is on the side of the candidates."""
        begin, end = self._candidate_range
        return begin <= entity < end

    def find(self, name: str, side: int | None = None) -> list[int]:
        """Find the entities with exactly this identifier, on a side or on both sides."""
        sides = ("source", "target") if side is None else (("source", "target")[side],)
        entities = [int(self._names.find_all([name], side_name)[0]) for side_name in sides]
        return [entity for entity in entities if entity >= 0]

    def prepare(self) -> None:
        """Make all indexes now, so that the first query does not wait."""
        self._names.prepare()
        _ = self.names, self.all_types, self.all_properties

    @cached_property
    def names(self) -> NameIndex:
        """An index of all names of both sides; an entity without a name has the last part of its identifier."""
        task, literals = self.labels.task, self.labels.literals
        predicates = np.array(self.labels.name_predicates, dtype=np.int64)
        rows = np.flatnonzero(np.isin(literals.predicates, predicates))
        owners = literals.entities[rows].astype(np.int64)
        nameless = np.setdiff1d(np.arange(task.num_entities), owners)
        identifiers = [split_identifier(local_part(name)) for name in self.labels.names.entities.take(nameless)]
        texts = normalise([*literals.values.take(rows), *identifiers])
        return NameIndex(texts, np.concatenate([owners, nameless]))

    def types(self, entity: int) -> list[dict[str, str]]:
        """The types of an entity; the general type where it has no other."""
        types = [
            self.described(neighbor)
            for neighbor, hops in self._neighbors.of(entity).items()
            if any(hop.is_forward and hop.relation in self._type_relations for hop in hops)
        ]
        return types or [ANY_TYPE]

    @cached_property
    def all_types(self) -> list[dict[str, str]]:
        """The most frequent types of the candidates."""
        triples = self.labels.task.triples
        is_type = np.isin(triples[:, 1], np.array(sorted(self._type_relations), dtype=np.int64))
        begin, end = self._candidate_range
        is_of_candidate = (triples[:, 0] >= begin) & (triples[:, 0] < end)
        types, counts = np.unique(triples[is_type & is_of_candidate, 2], return_counts=True)
        ordered = types[np.argsort(-counts, kind="stable")][:_MAX_TYPES].tolist()
        return [self.described(entity) for entity in ordered] or [ANY_TYPE]

    @cached_property
    def all_properties(self) -> list[dict[str, str]]:
        """The predicates and relations of the candidates, most frequent first."""
        task, literals = self.labels.task, self.labels.literals
        rows = self._literal_rows
        begin, end = self._candidate_range
        is_of_candidate = (task.triples[:, 0] >= begin) & (task.triples[:, 0] < end)
        numbers_and_names = (
            (literals.predicates[rows], literals.predicate_names),
            (task.triples[is_of_candidate, 1], self.labels.names.relations),
        )
        counted: list[tuple[int, str]] = []
        for numbers, names in numbers_and_names:
            present, counts = np.unique(numbers, return_counts=True)
            counted += zip(counts.tolist(), names.take(present), strict=True)
        ordered = dict.fromkeys(name for _, name in sorted(counted, key=lambda item: (-item[0], item[1])))
        return [{"id": name, "name": local_part(name)} for name in ordered]

    def property_values(self, entity: int, pid: str) -> list[dict[str, str]]:
        """The values of a property in the form of the protocol: texts, or entities with id and name."""
        texts = values_of(self.labels.literals, entity)
        names = [name for name in texts if pid in (name, local_part(name))]
        values = [{"str": text} for name in names for text in texts[name]]
        for neighbor, hops in self._neighbors.of(entity).items():
            relations = [self.labels.names.relations[hop.relation] for hop in hops if hop.is_forward]
            if any(pid in (name, local_part(name)) for name in relations):
                values.append(self.described(neighbor))
        return values

    def agreement(self, entity: int, pid: str, wanted: Sequence[str]) -> float:
        """Compare the values of a property with the wanted values: the best similarity, from 0 to 1."""
        from rapidfuzz import fuzz

        known = [text for value in self.property_values(entity, pid) for text in value.values()]
        if set(known) & set(wanted):
            return 1.0
        pairs = itertools.product(normalise(known), normalise(wanted))
        return max((fuzz.token_sort_ratio(text, wanted_text) / 100 for text, wanted_text in pairs), default=0.0)

    def with_value(self, texts: Sequence[str], maximum: int) -> list[int]:
        """Find candidates with one of these values (ignoring case and spaces), or a neighbour of this identifier."""
        literals, begin = self.labels.literals, self._literal_rows.start
        entities: dict[int, None] = {}  # ordered, without repetition
        for text in texts:
            rows = [begin + row for row in self._rows_by_value.of(_folded(text))]
            equal_rows = [row for row in rows if _folded(literals.values[row]) == _folded(text)]
            entities.update(dict.fromkeys(literals.entities[equal_rows].tolist()))
            for entity in self.find(text):
                entities.update(dict.fromkeys(self._neighbors.of(entity)))
        return [entity for entity in entities if self.is_candidate(entity)][:maximum]

    @property
    def _literal_rows(self) -> slice:
        return self.labels.literals.rows_of_sides(self.labels.task.num_source_entities)[self.side]

    @cached_property
    def _rows_by_value(self) -> TextRows:
        rows = np.arange(self._literal_rows.start, self._literal_rows.stop)
        return TextRows(map(_folded, self.labels.literals.values.take(rows)))

    def described(self, entity: int) -> dict[str, str]:
        """The id and name of an entity."""
        return {"id": self.labels.iri(entity), "name": self.labels.label(entity)}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
