"""Define the result of a run: pairs of entities with evidence, confidence and decision, and pairs of relations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, freeze_fields
from largegnn.errors import ArtifactError

__all__ = ["EXAMPLES", "MAPPINGS", "REASONS", "Alignment", "RelationAlignment"]

# Why an entity has no accepted pair; the code in `Alignment.reasons` is an index in this tuple.
REASONS = ("aligned", "seed", "isolated", "not covered", "not mutual", "below threshold")
EXAMPLES = 3  # of each pair of relations
# What the source relation is to the target relation; the code in `RelationAlignment.mappings` is an index in it.
MAPPINGS = ("exact", "narrower", "broader", "related")
_MIN_SCORE = 0.3  # of a mapping; relations that always occur together reach it with two matched triples
_MIN_SHARE = 0.5  # from which one relation "mostly" holds where another does


@dataclass(frozen=True, eq=False)
class Alignment:
    """Candidate pairs, the evidence for each, and which of them are accepted.

    `pairs` (p, 2) are (source, target): the best few candidates of each entity by the scoring in use, and all pairs
    that the selection chose, sorted by source and source rank. `source_ranks` (p,) is the rank of the target among
    the source's candidates (1 = best), `target_ranks` (p,) the rank of the source among the target's candidates.
    `evidence` (c, p) has one row for each name in `columns`. `scores` rate the pairs by the scoring in use, `margins`
    are the differences to the score of the best rival at either end, `confidence` is the calibrated probability that
    a pair is right (a score from 0 to 1 if the run is not calibrated), `accepted` is the decision.
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
            raise ArtifactError("reasons holds an unknown reason")

    @property
    def mutual(self) -> Mask:
        """Which pairs are best for both of their entities, (p,)."""
        best: Mask = (self.source_ranks == 1) & (self.target_ranks == 1)
        return best

    def column(self, name: str) -> FloatArray:
        """The evidence of this name for each pair, (p,)."""
        if name not in self.columns:
            raise ArtifactError(f"the alignment has no evidence {name!r}, only {', '.join(self.columns)}")
        values: FloatArray = self.evidence[self.columns.index(name)]
        return values


@dataclass(frozen=True, eq=False)
class RelationAlignment:
    """Pairs (k, 2) of a source and a target relation that join the same matched entities, sorted by source and score.

    `scores` (k,) are the probabilities that both relations mean the same. `source_shares` (k,) says how often the
    target relation holds where the source relation and any target relation hold; `target_shares` exchanges the sides.
    If both are near 1 the relations are equivalent; if only the first is, the source relation is the narrower one.
    `counts` (k,) are the matched triples, `is_inverse` (k,) marks pairs whose head and tail are exchanged. `examples`
    (k, 3, 4): head and tail of a source triple, and the entities matched with them; -1 for none.
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
        """An alignment without relations."""
        none = np.empty(0, dtype=np.float32)
        return cls(np.empty((0, 2)), np.empty(0, dtype=bool), none, none, none, none, np.empty((0, EXAMPLES, 4)))

    def mappings(self) -> IntArray:
        """The mapping of each source relation to its target relation (k,), as an index in `MAPPINGS`.

        exact: each relation mostly holds where the other does. narrower: the target relation mostly holds where the
        source relation does, and elsewhere too. broader: the same with source and target exchanged. related: neither
        relation mostly holds where the other does, or the score is low because there are few examples.
        """
        is_narrower, is_broader = self.source_shares >= _MIN_SHARE, self.target_shares >= _MIN_SHARE
        mappings = np.select([is_narrower & is_broader, is_narrower, is_broader], [0, 1, 2], 3)
        return np.where(self.scores >= _MIN_SCORE, mappings, 3)

    def num_by_mapping(self) -> dict[str, int]:
        """The number of pairs of each mapping."""
        counts = np.bincount(self.mappings(), minlength=len(MAPPINGS))
        return dict(zip(MAPPINGS, counts.tolist(), strict=True))
