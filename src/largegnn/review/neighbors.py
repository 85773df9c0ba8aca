"""Find the neighbours of entities, and the matched neighbours that support a pair.

In: the triples, the aligned relations, pairs of entities. Out: neighbours with the relations that lead to them, and
neighbour pairs that are matched, strongest first. The weight of a matched pair is how far its relations narrow the
entity down (see `neighbor_rows`), times how likely the two relations mean the same: their score in the run, or a tenth
where they have none.
Cost: one sort of the triples by counting, then the triples of the entities.
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
    """A relation from the entity to the neighbour (`is_forward`), or the other way."""

    relation: int
    is_forward: bool


@dataclass(frozen=True)
class MatchedNeighbors:
    """A matched pair next to the two entities, the relations that lead to it on either side, and its weight."""

    source: int
    target: int
    source_hops: tuple[Hop, ...]
    target_hops: tuple[Hop, ...]
    weight: float


class NeighborIndex:
    """The triples of a task by the entities at their ends."""

    def __init__(self, task: AlignmentTask) -> None:
        self._triples = task.triples
        self._rows = Rows(np.concatenate([task.triples[:, 0], task.triples[:, 2]]), task.num_entities)
        # The candidates of an entity share it and many neighbours; hubs take some 10 MB each.
        self.of = lru_cache(maxsize=32)(self._of)
        self.weights = lru_cache(maxsize=4096)(self._weights)

    def _of(self, entity: int) -> dict[int, list[Hop]]:
        """The neighbours of an entity, itself excluded, each with the relations that lead to it."""
        triples, is_forward = self._near(entity)
        found: dict[int, list[Hop]] = {}
        for (head, relation, tail), forward in zip(triples.tolist(), is_forward.tolist(), strict=True):
            if head != tail:
                hop, known = Hop(relation, forward), found.setdefault(tail if forward else head, [])
                if hop not in known:
                    known.append(hop)
        return found

    def _weights(self, entity: int) -> dict[Hop, float]:
        """The weight of each hop that ends at an entity: the fewer triples share the hop, the larger."""
        triples, is_forward = self._near(entity)
        between = triples[:, 0] != triples[:, 2]
        # A triple that arrives at the entity is a hop forward from the other end.
        keys, counts = np.unique(2 * triples[between, 1] + ~is_forward[between], return_counts=True)
        weights = counts.astype(np.float64) ** REACH_EXPONENT
        named = zip(keys.tolist(), weights.tolist(), strict=True)
        return {Hop(key >> 1, bool(key & 1)): weight for key, weight in named}

    def _near(self, entity: int) -> tuple[IntArray, IntArray]:
        """The triples (k, 3) at an entity, outgoing ones first, and which ones are outgoing, (k,)."""
        rows, size = self._rows.of(entity), len(self._triples)
        return self._triples[rows % max(1, size)], rows < size


def relation_likelihoods(relations: RelationAlignment) -> dict[tuple[int, int, bool], float]:
    """The scores of aligned relations by source relation, target relation and whether one is the inverse."""
    ends, inverse = relations.pairs.tolist(), relations.is_inverse.tolist()
    keys = [(source, target, other) for (source, target), other in zip(ends, inverse, strict=True)]
    return dict(zip(keys, relations.scores.tolist(), strict=True))


def matched_neighbors(
    index: NeighborIndex,
    likelihoods: Mapping[tuple[int, int, bool], float],
    counterparts: Callable[[int], Iterable[int]],
    source: int,
    target: int,
) -> tuple[MatchedNeighbors, ...]:
    """The matched pairs among the neighbours of the two ends of a pair, strongest first.

    `likelihoods` are those of `relation_likelihoods`; `counterparts` gives the targets that a source is matched with.
    """
    near, far = index.of(source), index.of(target)
    found = []
    for neighbor, hops in near.items():
        for other in sorted(far.keys() & set(counterparts(neighbor))):
            weights, other_weights = index.weights(neighbor), index.weights(other)
            weight = max(
                weights[one] * other_weights[two] * likelihoods.get(_relation_pair(one, two), UNKNOWN_LIKELIHOOD)
                for one in hops
                for two in far[other]
            )
            found.append(MatchedNeighbors(neighbor, other, tuple(hops), tuple(far[other]), weight))
    return tuple(sorted(found, key=lambda pair: (-pair.weight, pair.source, pair.target)))


def _relation_pair(source: Hop, target: Hop) -> tuple[int, int, bool]:
    return source.relation, target.relation, source.is_forward != target.is_forward
