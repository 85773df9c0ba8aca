"""Find the neighbours of entities, and the matched neighbours that support a pair.

In: the triples, the aligned relations, pairs of entities. Out: neighbours with the relations that lead to them, and
pairs of neighbours that are matched with each other, heaviest first. The weight of a matched pair is the product of the
weights of its two relations (the fewer entities a relation reaches from the neighbour, the larger; as in
`matching.neighbor_rows`) and of the likelihood that the relations mean the same: their score in the run, or a tenth
where they have no score.
Cost: one counting sort of the triples, then the triples of the entities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, RelationAlignment
from largegnn.matching.evidence import REACH_EXPONENT, UNKNOWN_LIKELIHOOD
from largegnn.review.lookup import Rows

__all__ = ["Hop", "MatchedNeighbors", "NeighborIndex", "matched_neighbors", "relation_likelihoods"]


class Hop(NamedTuple):
    """A relation between an entity and a neighbour; `is_forward` if it points to the neighbour."""

    relation: int
    is_forward: bool


@dataclass(frozen=True)
class MatchedNeighbors:
    """A matched pair of neighbours of two entities, the relations that lead to them on either side, and its weight."""

    source: int
    target: int
    source_hops: tuple[Hop, ...]
    target_hops: tuple[Hop, ...]
    weight: float


class NeighborIndex:
    """An index of the triples of a task by the entities at their ends."""

    def __init__(self, task: AlignmentTask) -> None:
        self._triples = task.triples
        self._rows = Rows(np.concatenate([task.triples[:, 0], task.triples[:, 2]]), task.num_entities)
        # The candidates of an entity share it and many neighbours. The neighbours of a hub take some 10 MB.
        self.of = lru_cache(maxsize=32)(self._of)
        self.weights = lru_cache(maxsize=4096)(self._weights)

    def _of(self, entity: int) -> dict[int, list[Hop]]:
        """The neighbours of an entity, itself excluded, with the relations that lead to them."""
        triples, is_forward = self._triples_at(entity)
        hops_of: dict[int, list[Hop]] = {}
        for (head, relation, tail), forward in zip(triples.tolist(), is_forward.tolist(), strict=True):
            if head != tail:
                hop = Hop(relation, forward)
                hops = hops_of.setdefault(tail if forward else head, [])
                if hop not in hops:
                    hops.append(hop)
        return hops_of

    def _weights(self, entity: int) -> dict[Hop, float]:
        """The weight of each hop that ends at an entity: the fewer triples share the hop, the larger."""
        triples, is_forward = self._triples_at(entity)
        is_no_loop = triples[:, 0] != triples[:, 2]
        # A key is 2 * relation + is_forward. A triple that arrives at the entity is a forward hop from its other end.
        keys, counts = np.unique(2 * triples[is_no_loop, 1] + ~is_forward[is_no_loop], return_counts=True)
        weights = counts.astype(np.float64) ** REACH_EXPONENT
        keyed_weights = zip(keys.tolist(), weights.tolist(), strict=True)
        return {Hop(relation=key >> 1, is_forward=bool(key & 1)): weight for key, weight in keyed_weights}

    def _triples_at(self, entity: int) -> tuple[IntArray, IntArray]:
        """The triples (k, 3) at an entity, outgoing triples first, and a mask of the outgoing triples (k,)."""
        rows = self._rows.of(entity)
        size = len(self._triples)
        return self._triples[rows % max(1, size)], rows < size


def relation_likelihoods(relations: RelationAlignment) -> dict[tuple[int, int, bool], float]:
    """Map source relation, target relation and whether one is the inverse of the other to the score of the pair."""
    ends, inverse = relations.pairs.tolist(), relations.is_inverse.tolist()
    keys = [(source, target, is_inverse) for (source, target), is_inverse in zip(ends, inverse, strict=True)]
    return dict(zip(keys, relations.scores.tolist(), strict=True))


def matched_neighbors(
    index: NeighborIndex,
    likelihoods: Mapping[tuple[int, int, bool], float],
    targets_of: Callable[[int], Iterable[int]],
    source: int,
    target: int,
) -> tuple[MatchedNeighbors, ...]:
    """Find the matched pairs among the neighbours of the two ends of a pair, heaviest first.

    `likelihoods` are made by `relation_likelihoods`; `targets_of` gives the targets that a source is matched with.
    """
    all_target_hops = index.of(target)
    matched = []
    for left, source_hops in index.of(source).items():
        for right in sorted(all_target_hops.keys() & set(targets_of(left))):
            target_hops = all_target_hops[right]
            source_weights, target_weights = index.weights(left), index.weights(right)
            weight = max(
                source_weights[source_hop]
                * target_weights[target_hop]
                * likelihoods.get(_relation_pair(source_hop, target_hop), UNKNOWN_LIKELIHOOD)
                for source_hop in source_hops
                for target_hop in target_hops
            )
            matched.append(MatchedNeighbors(left, right, tuple(source_hops), tuple(target_hops), weight))
    return tuple(sorted(matched, key=lambda pair: (-pair.weight, pair.source, pair.target)))


def _relation_pair(source: Hop, target: Hop) -> tuple[int, int, bool]:
    return source.relation, target.relation, source.is_forward != target.is_forward
