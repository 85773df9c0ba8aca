"""Explain a pair by its matched neighbours, with the relations that join them.

In: the triples, the aligned relations, pairs of entities. Out: neighbour pairs that are matched, strongest first, each
with the relations on both sides. The weight of one is how far its relations narrow the entity down (`neighbor_rows`),
times how likely they mean the same: their score in the run, or a tenth where it has none.
Cost: a pass over the triples for each call, and none after `prepare`, which sorts them all once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, RelationAlignment
from largegnn.matching.evidence import REACH_EXPONENT, UNKNOWN_LIKELIHOOD

__all__ = ["Hop", "MatchedNeighbors", "TripleIndex", "matched_neighbors"]


class Hop(NamedTuple):
    """A relation from the entity to the neighbour (`is_forward`), or the other way."""

    relation: int
    is_forward: bool


Hops = dict[int, list[Hop]]


@dataclass(frozen=True)
class MatchedNeighbors:
    """A matched pair next to the two entities, the relations that lead to it on either side, and its weight."""

    source: int
    target: int
    source_hops: tuple[Hop, ...]
    target_hops: tuple[Hop, ...]
    weight: float


class TripleIndex:
    """The triples of a task by the entities at their ends, and how likely relations mean the same."""

    def __init__(self, task: AlignmentTask, relations: RelationAlignment) -> None:
        self._triples, self._num_entities = task.triples, task.num_entities
        ends, inverse = relations.pairs.tolist(), relations.is_inverse.tolist()
        keys = [(source, target, other) for (source, target), other in zip(ends, inverse, strict=True)]
        self._scores: dict[tuple[int, int, bool], float] = dict(zip(keys, relations.scores.tolist(), strict=True))
        self._sorted: tuple[IntArray, IntArray] | None = None

    def prepare(self) -> None:
        """Sort the triples by their ends, for many calls."""
        ends = np.concatenate([self._triples[:, 0], self._triples[:, 2]])
        order = np.argsort(ends, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=self._num_entities))])
        self._sorted = order, ptr

    def hops(self, entities: Iterable[int]) -> dict[int, Hops]:
        """The neighbours of each entity, itself left out, each with the relations that lead there."""
        found: dict[int, Hops] = {}
        for entity, (triples, is_forward) in self._near(entities).items():
            near: Hops = {}
            for (head, relation, tail), forward in zip(triples.tolist(), is_forward.tolist(), strict=True):
                if head != tail:
                    hop, known = Hop(relation, forward), near.setdefault(tail if forward else head, [])
                    if hop not in known:
                        known.append(hop)
            found[entity] = near
        return found

    def weights(self, entities: Iterable[int]) -> dict[int, dict[Hop, float]]:
        """The weight of a hop that ends at each of these entities: the fewer other hops do, the higher."""
        found: dict[int, dict[Hop, float]] = {}
        for entity, (triples, is_forward) in self._near(entities).items():
            there = triples[:, 0] != triples[:, 2]
            # A triple that arrives at the entity is a hop forward from the other end.
            keys, counts = np.unique(2 * triples[there, 1] + ~is_forward[there], return_counts=True)
            weights = counts.astype(np.float64) ** REACH_EXPONENT
            named = zip(keys.tolist(), weights.tolist(), strict=True)
            found[entity] = {Hop(key >> 1, bool(key & 1)): weight for key, weight in named}
        return found

    def likelihood(self, source: Hop, target: Hop) -> float:
        """How likely two relations mean the same."""
        is_inverse = source.is_forward != target.is_forward
        return self._scores.get((source.relation, target.relation, is_inverse), UNKNOWN_LIKELIHOOD)

    def _near(self, entities: Iterable[int]) -> dict[int, tuple[IntArray, IntArray]]:
        """The triples (k, 3) at each entity, those that leave it first, and which do, (k,)."""
        wanted = list(dict.fromkeys(entities))
        if self._sorted is not None:
            order, ptr = self._sorted
            rows = [order[ptr[entity] : ptr[entity + 1]] for entity in wanted]
        else:
            rows = self._pass_over(wanted)
        size = len(self._triples)
        return {entity: (self._triples[at % size], at < size) for entity, at in zip(wanted, rows, strict=True) if size}

    def _pass_over(self, wanted: list[int]) -> list[IntArray]:
        """The rows at each of these entities; those of triples that arrive come after all others, as in `prepare`."""
        is_wanted = np.zeros(self._num_entities, dtype=bool)
        is_wanted[wanted] = True
        sides = [np.flatnonzero(is_wanted[self._triples[:, column]]) for column in (0, 2)]
        ends = np.concatenate([self._triples[at, column] for at, column in zip(sides, (0, 2), strict=True)])
        rows = np.concatenate([sides[0], sides[1] + len(self._triples)])
        order = np.argsort(ends, kind="stable")
        begin, end = (np.searchsorted(ends[order], wanted, side=side) for side in ("left", "right"))
        return [rows[order[one:other]] for one, other in zip(begin.tolist(), end.tolist(), strict=True)]


def matched_neighbors(
    index: TripleIndex, counterparts: Callable[[int], Iterable[int]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[MatchedNeighbors, ...]]:
    """The matched pairs among the neighbours of both ends of each pair, strongest first.

    `counterparts` gives the targets that a source is matched with.
    """
    hops = index.hops(entity for pair in pairs for entity in pair)
    matched = [
        [
            (neighbor, int(other))
            for neighbor in hops.get(source, {})
            for other in counterparts(neighbor)
            if int(other) in hops.get(target, {})
        ]
        for source, target in pairs
    ]
    weights = index.weights(entity for near in matched for pair in near for entity in pair)
    found = []
    for (source, target), near in zip(pairs, matched, strict=True):
        rows = [
            MatchedNeighbors(
                neighbor,
                other,
                tuple(hops[source][neighbor]),
                tuple(hops[target][other]),
                max(
                    weights[neighbor][one] * weights[other][two] * index.likelihood(one, two)
                    for one in hops[source][neighbor]
                    for two in hops[target][other]
                ),
            )
            for neighbor, other in near
        ]
        found.append(tuple(sorted(rows, key=lambda pair: (-pair.weight, pair.source, pair.target))))
    return found
