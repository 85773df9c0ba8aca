"""What is decided: candidate pairs with evidence, confidence and decision, and why other entities have no pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, frozen
from largegnn.errors import ArtifactError

__all__ = ["REASONS", "Alignment"]

# Why an entity has no accepted pair; the index in this tuple is the code in `Alignment.reasons`.
REASONS = ("aligned", "seed", "isolated", "not covered", "not mutual", "below threshold")


@dataclass(frozen=True, eq=False)
class Alignment:
    """Candidate pairs, the evidence for each, and which of them are accepted.

    Row i is the pair `pairs[i]` (source, target): each is among the best few of the other by the scoring in use, or the
    selection chose the pair. Sorted by source and `source_ranks`, the rank of the target among the source's candidates
    (1 = best; `target_ranks` the other way).
    `evidence` (c, p) has one row for each name in `columns`; `scores` rate the pair by the scoring in use, `margins`
    say how far its score lies above that of the best rival of either end, `confidence` is the calibrated probability
    that it is right (a score from 0 to 1 where the run is not calibrated), `accepted` the decision.
    `reasons` (num_entities,) says for each entity why it has no accepted pair, as an index in `REASONS`.
    """

    pairs: IntArray
    columns: tuple[str, ...]
    evidence: FloatArray
    scores: FloatArray
    margins: FloatArray
    source_ranks: IntArray
    target_ranks: IntArray
    confidence: FloatArray
    accepted: Mask
    reasons: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", frozen(self.pairs, np.int32, (None, 2), "pairs"))
        rows = (len(self.pairs),)
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "evidence", frozen(self.evidence, np.float32, (len(self.columns), *rows), "evidence"))
        for name in ("scores", "margins", "confidence"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32, rows, name))
        for name in ("source_ranks", "target_ranks"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.int32, rows, name))
        object.__setattr__(self, "accepted", frozen(self.accepted, np.bool_, rows, "accepted"))
        object.__setattr__(self, "reasons", frozen(self.reasons, np.uint8, (None,), "reasons"))
        if self.reasons.size and int(self.reasons.max()) >= len(REASONS):
            raise ArtifactError("an unknown reason")

    @property
    def mutual(self) -> Mask:
        """Which pairs are each other's best candidate, (p,)."""
        best: Mask = (self.source_ranks == 1) & (self.target_ranks == 1)
        return best

    def column(self, name: str) -> FloatArray:
        """One column of evidence (p,)."""
        if name not in self.columns:
            raise ArtifactError(f"the alignment has no evidence {name!r}, only {', '.join(self.columns)}")
        found: FloatArray = self.evidence[self.columns.index(name)]
        return found
