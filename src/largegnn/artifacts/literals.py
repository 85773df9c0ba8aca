"""Define the literals of both graphs (names and values), and the evidence that comparing them gives."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, check_range, freeze_fields
from largegnn.artifacts.candidates import CandidateGraph
from largegnn.artifacts.task import StringTable
from largegnn.errors import ArtifactError

__all__ = ["LiteralEvidence", "Literals"]


@dataclass(frozen=True, eq=False)
class Literals:
    """The literals of both graphs: one row for each distinct statement whose object is a literal, ascending by entity.

    `entities` (m,) are entity ids, `values` the texts. `predicates`, `datatypes` and `languages` (m,) are indices in
    the tables of names, which are sorted; "" is the name of no datatype and no language. A predicate that both graphs
    use has one number. The literals of an entity are sorted by predicate, datatype, language and value.
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
        freeze_fields(self, ["entities"], np.int32)
        freeze_fields(self, ["predicates", "datatypes", "languages"], np.int32, self.entities.shape)
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
        """The rows of the source's literals, and the rows of the target's literals."""
        split = int(np.searchsorted(self.entities, num_source_entities))
        return slice(0, split), slice(split, len(self))

    def num_of_sides(self, num_source_entities: int) -> tuple[int, int]:
        """The number of literals of the source, and of the target."""
        source, target = self.rows_of_sides(num_source_entities)
        return source.stop, target.stop - target.start

    def num_predicates_of_sides(self, num_source_entities: int) -> tuple[int, int]:
        """The number of predicates that the source uses, and that the target uses."""
        source, target = self.rows_of_sides(num_source_entities)
        return len(np.unique(self.predicates[source])), len(np.unique(self.predicates[target]))

    def entity_ptr(self, num_entities: int) -> IntArray:
        """CSR offsets (num_entities + 1,): the literals of entity e are the rows ptr[e] to ptr[e + 1]."""
        return np.searchsorted(self.entities, np.arange(num_entities + 1))

    @classmethod
    def empty(cls) -> Literals:
        """Literals without any row."""
        numbers, strings = np.empty(0), StringTable.from_strings(())
        return cls(numbers, numbers, strings, numbers, numbers, strings, strings, strings)


@dataclass(frozen=True, eq=False)
class LiteralEvidence:
    """Candidate pairs (e, 2), ascending by source and target, with one row of evidence (c, e) for each of `columns`.

    `anchors` (a, 2) are pairs that are very probably right by this evidence, most confident first; if seeds are few,
    training starts from them, too. There are none if enough seeds are given. `duplicates` (d, 2) are pairs of entities
    of one side that are probably the same.
    """

    pairs: IntArray
    columns: tuple[str, ...]
    evidence: FloatArray
    anchors: IntArray
    duplicates: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        freeze_fields(self, ["pairs", "anchors", "duplicates"], np.int32, (None, 2))
        freeze_fields(self, ["evidence"], np.float32, (len(self.columns), len(self.pairs)))

    @classmethod
    def of(cls, graph: CandidateGraph, anchors: IntArray, duplicates: IntArray) -> LiteralEvidence:
        """Make the artifact of a graph of candidates, anchors, and the duplicates within either side."""
        columns = tuple(graph.evidence)
        matrix = np.array([graph.column(name) for name in columns], dtype=np.float32).reshape(len(columns), len(graph))
        return cls(graph.pairs(), columns, matrix, anchors, duplicates)

    @classmethod
    def empty(cls) -> LiteralEvidence:
        """Evidence without candidates, anchors or duplicates."""
        return cls(np.empty((0, 2)), (), np.zeros((0, 0), dtype=np.float32), np.empty((0, 2)))

    def among(self, entities: Mask) -> LiteralEvidence:
        """Keep the candidates whose two entities are both marked in the mask `entities` (n,)."""
        inside = entities[self.pairs].all(axis=1) if len(self.pairs) else np.zeros(0, dtype=bool)
        return dataclasses.replace(self, pairs=self.pairs[inside], evidence=self.evidence[:, inside])

    def graph(self) -> CandidateGraph:
        """The candidates with their evidence as a graph."""
        evidence = dict(zip(self.columns, self.evidence, strict=True))
        return CandidateGraph(self.pairs[:, 0], self.pairs[:, 1], evidence)
