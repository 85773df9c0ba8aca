"""Which relations of the two graphs answer to each other, as the matched entities show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, frozen

__all__ = ["EXAMPLES", "MAPPINGS", "RelationAlignment"]

EXAMPLES = 3  # of each pair of relations
# What the source relation is to the target relation; the index in this tuple is the code of `mappings`.
MAPPINGS = ("exact", "narrower", "broader", "related")
_SURE = 0.3  # least score of a mapping; two that were always seen together reach it the second time
_MOSTLY = 0.5


@dataclass(frozen=True, eq=False)
class RelationAlignment:
    """Pairs (source relation, target relation) that join the same matched entities, sorted by source and score.

    `scores` (k,) say how likely the two say the same. `source_shares` is how often the target relation was there where
    the source relation was and any was there, `target_shares` the same seen from the target; both near 1: the same;
    the first alone: the source relation is the narrower one. `counts` are matched triples, `is_inverse` says that
    the ends are exchanged. `examples` (k, 3, 4): head and tail of a source triple, and their counterparts; -1 for none.
    """

    pairs: IntArray
    is_inverse: Mask
    scores: FloatArray
    source_shares: FloatArray
    target_shares: FloatArray
    counts: IntArray
    examples: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", frozen(self.pairs, np.int32, (None, 2), "pairs"))
        rows = (len(self.pairs),)
        object.__setattr__(self, "is_inverse", frozen(self.is_inverse, np.bool_, rows, "is_inverse"))
        for name in ("scores", "source_shares", "target_shares"):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32, rows, name))
        object.__setattr__(self, "counts", frozen(self.counts, np.int64, rows, "counts"))
        object.__setattr__(self, "examples", frozen(self.examples, np.int32, (*rows, EXAMPLES, 4), "examples"))

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def empty(cls) -> RelationAlignment:
        """No relations."""
        none = np.empty(0, dtype=np.float32)
        return cls(np.empty((0, 2)), np.empty(0, dtype=bool), none, none, none, none, np.empty((0, EXAMPLES, 4)))

    def mappings(self) -> IntArray:
        """What each source relation is to its target relation (k,), as an index in `MAPPINGS`.

        exact: each is mostly there where the other is. narrower: the target relation is mostly there where the source
        relation is, and elsewhere too. broader: the other way round. related: neither, or seen too seldom to say.
        """
        within, without = self.source_shares >= _MOSTLY, self.target_shares >= _MOSTLY
        found = np.select([within & without, within, without], [0, 1, 2], 3)
        return np.where(self.scores >= _SURE, found, 3)

    def num_by_mapping(self) -> dict[str, int]:
        """How many pairs there are of each mapping."""
        counts = np.bincount(self.mappings(), minlength=len(MAPPINGS))
        return dict(zip(MAPPINGS, counts.tolist(), strict=True))
