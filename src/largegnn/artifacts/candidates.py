"""Define the neighbours that a search finds, and the candidate pairs of an alignment with the evidence for each pair.

A `CandidateGraph` is bipartite: one edge for each pair (source, target) that any channel proposed, with named columns
of evidence. The structure of the graphs gives `cosine` and `csls`, rules give `support`. Scoring, selection and
confidence use only this graph, and explanations show its columns.
Memory: for each edge 8 bytes, and 4 bytes for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, are_among, freeze_fields, frozen, pair_keys
from largegnn.errors import ArtifactError

__all__ = ["CandidateGraph", "EdgeRanks", "Neighbors", "SearchRecord"]


@dataclass(frozen=True)
class SearchRecord:
    """How a search was done.

    `method` is the name of the searcher, `recall` its recall on a sample of `recall_sample` queries (None: the search
    was exact). `num_float32` and `num_float64` count the queries that were searched again in that precision, because
    the search in a lower precision was not conclusive.
    """

    method: str
    recall: float | None = None
    recall_sample: int = 0
    num_float32: int = 0
    num_float64: int = 0


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest entities of the other side for each query, best first.

    `queries` (q,) are entity ids, ascending. `ids` (q, k) are the neighbours, -1 if there are fewer than k; `scores`
    (q, k) are cosines, higher is closer, -inf if there is no neighbour. Inside a searcher, ids are row numbers.
    """

    queries: IntArray
    ids: IntArray
    scores: FloatArray
    record: SearchRecord = SearchRecord("given")

    def __post_init__(self) -> None:
        freeze_fields(self, ["queries"], np.int32)
        freeze_fields(self, ["ids"], np.int32, (len(self.queries), None))
        freeze_fields(self, ["scores"], np.float32, self.ids.shape)
        if bool(np.any(np.diff(self.queries) <= 0)):
            raise ArtifactError("the queries of a search must be strictly ascending")

    @classmethod
    def none(cls, k: int) -> Neighbors:
        """The result of a search without queries."""
        return cls(np.empty(0), np.empty((0, k)), np.empty((0, k), dtype=np.float32))

    @property
    def k(self) -> int:
        """The maximum number of neighbours of a query."""
        return int(self.ids.shape[1])

    def answered(self) -> Neighbors:
        """The queries that have a neighbour, with their neighbours."""
        rows = np.flatnonzero((self.ids >= 0).any(axis=1))
        if len(rows) == len(self.queries):
            return self
        return Neighbors(self.queries[rows], self.ids[rows], self.scores[rows], self.record)

    def of(self, entities: IntArray) -> Neighbors:
        """The neighbours of some `entities` (m,), ascending; each of them must be a query."""
        rows = self.row_of(entities)
        return Neighbors(self.queries[rows], self.ids[rows], self.scores[rows], self.record)

    def row_of(self, entities: IntArray) -> IntArray:
        """The row of each entity (m,) among the queries, (m,); -1 for an entity that is not a query."""
        if not len(self.queries):
            return np.full(len(entities), -1, dtype=np.int64)
        row = np.minimum(np.searchsorted(self.queries, entities), len(self.queries) - 1)
        return np.where(self.queries[row] == entities, row, -1)


class EdgeRanks(NamedTuple):
    """The rank of each edge (e,) among the edges of its source, and among the edges of its target; 1 = best."""

    source: IntArray
    target: IntArray


@dataclass(frozen=True, eq=False)
class CandidateGraph:
    """Candidate pairs as edges: `sources` and `targets` (e,), sorted by source, then target; evidence (e,) by name."""

    sources: IntArray
    targets: IntArray
    evidence: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_fields(self, ["sources"], np.int32)
        freeze_fields(self, ["targets"], np.int32, self.sources.shape)
        columns = {
            name: frozen(values, np.float32, self.sources.shape, f"the evidence {name}")
            for name, values in self.evidence.items()
        }
        object.__setattr__(self, "evidence", MappingProxyType(columns))

    def __len__(self) -> int:
        return len(self.sources)

    def column(self, name: str) -> FloatArray:
        """The evidence of this name for each edge, (e,)."""
        if name not in self.evidence:
            raise ArtifactError(
                f"no channel gave the evidence {name!r}; available: {', '.join(self.evidence) or 'none'}"
            )
        return self.evidence[name]

    def with_evidence(self, **columns: npt.NDArray[np.floating[Any]]) -> CandidateGraph:
        """Add columns of evidence to the edges; a column of the same name is replaced."""
        evidence: dict[str, Any] = {**self.evidence, **columns}
        return CandidateGraph(self.sources, self.targets, evidence)

    def without(self, pairs: IntArray) -> CandidateGraph:
        """Remove the edges of some `pairs` (p, 2)."""
        if not len(pairs):
            return self
        removed = are_among(self.pairs(), pairs)
        if not removed.any():
            return self
        evidence = {name: values[~removed] for name, values in self.evidence.items()}
        return CandidateGraph(self.sources[~removed], self.targets[~removed], evidence)

    def pairs(self, edges: IntArray | slice = slice(None)) -> IntArray:
        """The pairs (m, 2) of some `edges`, by default of all edges."""
        return np.stack([self.sources[edges], self.targets[edges]], axis=1)

    def find(self, pairs: IntArray) -> IntArray:
        """The edge of each pair (p, 2), (p,); -1 for a pair that is not an edge."""
        position, is_present = self.places(pair_keys(pairs))
        return np.where(is_present, position, -1)

    def places(self, wanted: IntArray, edges: slice = slice(None)) -> tuple[IntArray, Mask]:
        """The position of each pair key (p,) among the sorted keys of `edges`, and whether an edge has this key."""
        keys = self.sources[edges].astype(np.int64)
        keys <<= 32
        keys |= self.targets[edges]
        position = np.searchsorted(keys, wanted)
        is_present: Mask = position < len(keys)
        is_present[is_present] = keys[position[is_present]] == wanted[is_present]
        return position, is_present

    def columns_but(self, excluded: Iterable[str]) -> tuple[str, ...]:
        """The names of the evidence in its order, without the `excluded` names."""
        return tuple(name for name in self.evidence if name not in set(excluded))
