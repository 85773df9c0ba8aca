"""What a search finds: for each query the nearest entities of the other side, and how they were found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, frozen
from largegnn.errors import ArtifactError

__all__ = ["Neighbors", "SearchRecord"]


@dataclass(frozen=True)
class SearchRecord:
    """How a search was done.

    `method` is the searcher that did the work, `recall` what it reached on a sample of `recall_sample` queries (None:
    the search was exact); `num_float32` and `num_float64` count the queries for which a faster pass proved nothing, so
    that one of that precision followed.
    """

    method: str
    recall: float | None = None
    recall_sample: int = 0
    num_float32: int = 0
    num_float64: int = 0


@dataclass(frozen=True, eq=False)
class Neighbors:
    """For each query the nearest entities of the other side, best first.

    `queries` (q,) ids, ascending; `ids` (q, k), -1 where there are fewer than k; `scores` (q, k) cosine, higher is
    closer, -inf where there is no neighbour. Inside a searcher, ids are row numbers.
    """

    queries: IntArray
    ids: IntArray
    scores: FloatArray
    record: SearchRecord = SearchRecord("given")

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", frozen(self.queries, np.int32, (None,), "queries"))
        object.__setattr__(self, "ids", frozen(self.ids, np.int32, (len(self.queries), None), "ids"))
        object.__setattr__(self, "scores", frozen(self.scores, np.float32, self.ids.shape, "scores"))
        if bool(np.any(np.diff(self.queries) <= 0)):
            raise ArtifactError("the queries of a search must be strictly ascending")

    @classmethod
    def none(cls, k: int) -> Neighbors:
        """No query: the result of a search that was not made."""
        return cls(np.empty(0), np.empty((0, k)), np.empty((0, k), dtype=np.float32))

    @property
    def k(self) -> int:
        """How many neighbours a query may have."""
        return int(self.ids.shape[1])

    def answered(self) -> Neighbors:
        """The queries that have a neighbour."""
        rows = np.flatnonzero((self.ids >= 0).any(axis=1))
        if len(rows) == len(self.queries):
            return self
        return Neighbors(self.queries[rows], self.ids[rows], self.scores[rows], self.record)

    def of(self, entities: IntArray) -> Neighbors:
        """What was found for these entities (m,), ascending, all of them queries."""
        rows = self.row_of(entities)
        return Neighbors(self.queries[rows], self.ids[rows], self.scores[rows], self.record)

    def row_of(self, entities: IntArray) -> IntArray:
        """The row of each of these entities (m,) among the queries, (m,); -1 for those that are none."""
        if not len(self.queries):
            return np.full(len(entities), -1, dtype=np.int64)
        row = np.minimum(np.searchsorted(self.queries, entities), len(self.queries) - 1)
        return np.where(self.queries[row] == entities, row, -1)
