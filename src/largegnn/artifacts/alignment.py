"""The result of a run: pairs of entities with evidence, confidence and decision, and pairs of relations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, freeze_fields
from largegnn.errors import ArtifactError

__all__ = ["EXAMPLES", "MAPPINGS", "REASONS", "Alignment", "RelationAlignment"]

# Why an entity has no accepted pair; the index in this tuple is the code in `Alignment.reasons`.
REASONS = ("aligned", "seed", "isolated", "not covered", "not mutual", "below threshold")
EXAMPLES = 3  # of each pair of relations
# What the source relation is to the target relation; the index in this tuple is the code of `mappings`.
MAPPINGS = ("exact", "narrower", "broader", "related")
_LEAST_SCORE = 0.3  # of a mapping; two that always occur together reach it the second time
_MOSTLY = 0.5


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
        freeze_fields(self, ["pairs"], np.int32, (None, 2))
        rows = (len(self.pairs),)
        object.__setattr__(self, "columns", tuple(self.columns))
        freeze_fields(self, ["evidence"], np.float32, (len(self.columns), *rows))
        freeze_fields(self, ["scores", "margins", "confidence"], np.float32, rows)
        freeze_fields(self, ["source_ranks", "target_ranks"], np.int32, rows)
        freeze_fields(self, ["accepted"], np.bool_, rows)
        freeze_fields(self, ["reasons"], np.uint8)
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


@dataclass(frozen=True, eq=False)
class RelationAlignment:
    """Pairs (source relation, target relation) that join the same matched entities, sorted by source and score.

    `scores` (k,) are the probability that the two mean the same. `source_shares` is how often the target relation
    holds where the source relation and any target relation do, `target_shares` the same for the target; both near 1:
    the same; the first alone: the source relation is the narrower one. `counts` are matched triples, `is_inverse` marks
    pairs whose ends are exchanged. `examples` (k, 3, 4): head and tail of a source triple, and their counterparts; -1
    for none.
    """

    pairs: IntArray
    is_inverse: Mask
    scores: FloatArray
    source_shares: FloatArray
    target_shares: FloatArray
    counts: IntArray
    examples: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["pairs"], np.int32, (None, 2))
        rows = (len(self.pairs),)
        freeze_fields(self, ["is_inverse"], np.bool_, rows)
        freeze_fields(self, ["scores", "source_shares", "target_shares"], np.float32, rows)
        freeze_fields(self, ["counts"], np.int64, rows)
        freeze_fields(self, ["examples"], np.int32, (*rows, EXAMPLES, 4))

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def empty(cls) -> RelationAlignment:
        """No relations."""
        none = np.empty(0, dtype=np.float32)
        return cls(np.empty((0, 2)), np.empty(0, dtype=bool), none, none, none, none, np.empty((0, EXAMPLES, 4)))

    def mappings(self) -> IntArray:
        """The mapping of each source relation to its target relation (k,), as an index in `MAPPINGS`.

        exact: each mostly holds where the other does. narrower: the target relation mostly holds where the source
        relation does, and elsewhere too. broader: the other way round. related: neither, or too few examples.
        """
        within, without = self.source_shares >= _MOSTLY, self.target_shares >= _MOSTLY
        found = np.select([within & without, within, without], [0, 1, 2], 3)
        return np.where(self.scores >= _LEAST_SCORE, found, 3)

    def num_by_mapping(self) -> dict[str, int]:
        """The number of pairs of each mapping."""
        counts = np.bincount(self.mappings(), minlength=len(MAPPINGS))
        return dict(zip(MAPPINGS, counts.tolist(), strict=True))
