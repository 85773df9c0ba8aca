"""What the search finds and what is decided about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import IntArray, frozen
from largegnn.errors import ArtifactError

__all__ = ["REASONS", "Alignment", "Neighbors"]

# Why an entity has no accepted pair; the place in this tuple is the code in `Alignment.reasons`.
REASONS = ("aligned", "seed", "isolated", "not covered", "not mutual", "below threshold")


@dataclass(frozen=True, eq=False)
class Neighbors:
    """For each query the nearest entities of the other side, best first.

    `queries` (q,) entity ids, ascending; `ids` (q, k) entity ids, -1 where there are fewer than k; `scores` (q, k)
    cosine, higher is closer, -inf where there is no neighbour.
    """

    queries: IntArray
    ids: IntArray
    scores: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", frozen(self.queries, np.int32, (None,), "queries"))
        object.__setattr__(self, "ids", frozen(self.ids, np.int32, (len(self.queries), None), "ids"))
        object.__setattr__(self, "scores", frozen(self.scores, np.float32, self.ids.shape, "scores"))
        if bool(np.any(np.diff(self.queries) <= 0)):
            raise ArtifactError("the queries of a search must be strictly ascending")

    @property
    def k(self) -> int:
        """How many neighbours a query may have."""
        return int(self.ids.shape[1])

    def row_of(self, entities: IntArray) -> IntArray:
        """Where these entities (m,) stand among the queries, (m,); -1 for those that are none."""
        if not len(self.queries):
            return np.full(len(entities), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.queries, entities), len(self.queries) - 1)
        return np.where(self.queries[place] == entities, place, -1)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Candidate pairs, the evidence for each, and which of them are put out.

    Row i is the pair `pairs[i]` (source, target): each is among the best few of the other by the decoding in use, or
    the selection chose the pair. Sorted by source and `source_ranks`, the place of the target among the source's
    candidates (1 = best; `target_ranks` the other way).
    `cosines` and `scores` (by the decoding in use) rate the pair, `margins` say how far its score lies above that of
    the best rival of either end, `confidence` is the calibrated probability that it is right, `accepted` the decision.
    `reasons` (num_entities,) says for each entity why it has no accepted pair, as a place in `REASONS`.
    """

    pairs: IntArray
    cosines: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    margins: npt.NDArray[np.float32]
    source_ranks: IntArray
    target_ranks: IntArray
    confidence: npt.NDArray[np.float32]
    accepted: npt.NDArray[np.bool_]
    reasons: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", frozen(self.pairs, np.int32, (None, 2), "pairs"))
        rows = (len(self.pairs),)
        for name in ("cosines", "scores", "margins", "confidence"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32, rows, name))
        for name in ("source_ranks", "target_ranks"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, rows, name))
        object.__setattr__(self, "accepted", frozen(self.accepted, np.bool_, rows, "accepted"))
        object.__setattr__(self, "reasons", frozen(self.reasons, np.uint8, (None,), "reasons"))
        if self.reasons.size and int(self.reasons.max()) >= len(REASONS):
            raise ArtifactError("an unknown reason")

    @property
    def mutual(self) -> npt.NDArray[np.bool_]:
        """Which pairs are each other's best candidate, (p,)."""
        best: npt.NDArray[np.bool_] = (self.source_ranks == 1) & (self.target_ranks == 1)
        return best
