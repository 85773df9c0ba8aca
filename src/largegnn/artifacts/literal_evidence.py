"""What names and values say: candidate pairs with literal evidence, and the pairs to start from without seeds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, frozen
from largegnn.artifacts.candidates import CandidateGraph

__all__ = ["LiteralEvidence"]


@dataclass(frozen=True, eq=False)
class LiteralEvidence:
    """Candidate pairs (e, 2), ascending by source and target, with evidence (c, e) by the names in `columns`.

    `anchors` (a, 2) are pairs that are surely right by this evidence, surest first; without seeds training starts from
    them. They are empty where seeds are given. `duplicates` (d, 2) are entities of one side that are probably the same.
    """

    pairs: IntArray
    columns: tuple[str, ...]
    evidence: FloatArray
    anchors: IntArray
    duplicates: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", frozen(self.pairs, np.int32, (None, 2), "pairs"))
        object.__setattr__(self, "columns", tuple(self.columns))
        shape = (len(self.columns), len(self.pairs))
        object.__setattr__(self, "evidence", frozen(self.evidence, np.float32, shape, "evidence"))
        object.__setattr__(self, "anchors", frozen(self.anchors, np.int32, (None, 2), "anchors"))
        object.__setattr__(self, "duplicates", frozen(self.duplicates, np.int32, (None, 2), "duplicates"))

    @classmethod
    def of(cls, graph: CandidateGraph, anchors: IntArray, duplicates: IntArray) -> LiteralEvidence:
        """The candidates of a graph, its anchors, and the duplicates within either side."""
        columns = tuple(graph.evidence)
        matrix = np.zeros((len(columns), len(graph)), dtype=np.float32)
        for row, name in enumerate(columns):
            matrix[row] = graph.column(name)
        return cls(graph.pairs(), columns, matrix, anchors, duplicates)

    @classmethod
    def empty(cls) -> LiteralEvidence:
        """Nothing is known of names and values."""
        return cls(np.empty((0, 2)), (), np.zeros((0, 0), dtype=np.float32), np.empty((0, 2)))

    def among(self, entities: Mask) -> LiteralEvidence:
        """The candidates whose two ends are among these entities (n,)."""
        inside = entities[self.pairs].all(axis=1) if len(self.pairs) else np.zeros(0, dtype=bool)
        return dataclasses.replace(self, pairs=self.pairs[inside], evidence=self.evidence[:, inside])

    def graph(self) -> CandidateGraph:
        """The candidates with their evidence."""
        evidence = dict(zip(self.columns, self.evidence, strict=True))
        return CandidateGraph(self.pairs[:, 0], self.pairs[:, 1], evidence)
