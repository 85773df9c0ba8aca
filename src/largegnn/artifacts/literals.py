"""Names and values as they stand in the graphs: one row for each statement whose object is a literal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import IntArray, check_range, frozen
from largegnn.artifacts.task import StringTable
from largegnn.errors import ArtifactError

__all__ = ["Literals"]


@dataclass(frozen=True, eq=False)
class Literals:
    """The literals of both graphs, columns of one length, distinct and ascending by entity.

    `entities` (m,) entity ids; `predicates`, `datatypes`, `languages` (m,) numbers into the tables of their names,
    which are sorted and where "" stands for none; `values` the texts. Predicates are numbered for both sides together,
    and a predicate that both graphs use has one number. The literals of an entity are sorted by predicate, datatype,
    language and value.
    """

    entities: IntArray
    predicates: IntArray
    values: StringTable
    datatypes: IntArray
    languages: IntArray
    predicate_names: StringTable
    datatype_names: StringTable
    language_names: StringTable

    def __post_init__(self) -> None:
        object.__setattr__(self, "entities", frozen(self.entities, np.int32, (None,), "entities"))
        rows = (len(self.entities),)
        for name in ("predicates", "datatypes", "languages"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, rows, name))
        if len(self.values) != len(self.entities):
            raise ArtifactError(f"{len(self.values)} values for {len(self.entities)} literals")
        if bool(np.any(np.diff(self.entities) < 0)):
            raise ArtifactError("literals must be ascending by entity")
        check_range(self.predicates, 0, len(self.predicate_names), "predicates")
        check_range(self.datatypes, 0, len(self.datatype_names), "datatypes")
        check_range(self.languages, 0, len(self.language_names), "languages")

    def __len__(self) -> int:
        return len(self.entities)

    def rows_of_sides(self, num_source_entities: int) -> tuple[slice, slice]:
        """The rows of the source's literals and those of the target's."""
        split = int(np.searchsorted(self.entities, num_source_entities))
        return slice(0, split), slice(split, len(self))

    def num_of_sides(self, num_source_entities: int) -> tuple[int, int]:
        """How many literals the source has, and how many the target."""
        source, target = self.rows_of_sides(num_source_entities)
        return source.stop, target.stop - target.start

    def num_predicates_of_sides(self, num_source_entities: int) -> tuple[int, int]:
        """How many predicates the source uses, and how many the target."""
        source, target = self.rows_of_sides(num_source_entities)
        return len(np.unique(self.predicates[source])), len(np.unique(self.predicates[target]))

    def entity_ptr(self, num_entities: int) -> IntArray:
        """Where the rows of each entity start, (num_entities + 1,): those of entity e are ptr[e] to ptr[e + 1]."""
        return np.searchsorted(self.entities, np.arange(num_entities + 1))

    @classmethod
    def empty(cls) -> Literals:
        """No literals at all."""
        none, nothing = np.empty(0), StringTable.from_strings(())
        return cls(none, none, nothing, none, none, nothing, nothing, nothing)
