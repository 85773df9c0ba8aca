"""Why a pair: the matched neighbours that speak for it, with the relations that join them.

In: the triples, the matched pairs, one pair of entities. Out: neighbour pairs that are matched, strongest first, each
with the relations on both sides. Cost: the triples of the two entities, after one pass that indexes all triples by end
(`TripleIndex`), which serves any number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.matching.weighted_rows import weigh_neighbors

__all__ = ["Hop", "MatchedNeighbors", "TripleIndex", "matched_neighbors"]


class Hop(NamedTuple):
    """A relation from the entity to the neighbour (`is_forward`), or the other way."""

    relation: int
    is_forward: bool


@dataclass(frozen=True)
class MatchedNeighbors:
    """A matched pair next to the two entities, the relations that lead to it on either side, and how much it says."""

    source: int
    target: int
    source_hops: tuple[Hop, ...]
    target_hops: tuple[Hop, ...]
    weight: float


class TripleIndex:
    """The triples of a task by the entities at their ends, and how much each neighbour narrows an entity down."""

    def __init__(self, task: AlignmentTask) -> None:
        triples, split = task.triples, task.num_source_entities
        self._triples, self._split = triples, split
        ends = np.concatenate([triples[:, 0], triples[:, 2]])
        self._order = np.argsort(ends, kind="stable")
        self._ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=task.num_entities))])
        at = task.num_source_triples
        self._weights = (
            weigh_neighbors(triples[:at], split, 0),
            weigh_neighbors(triples[at:], task.num_target_entities, split),
        )

    def hops(self, entity: int) -> dict[int, list[Hop]]:
        """The neighbours of an entity, itself left out, each with the relations that lead there."""
        found: dict[int, list[Hop]] = {}
        for row in self._order[self._ptr[entity] : self._ptr[entity + 1]].tolist():
            is_forward = row < len(self._triples)
            head, relation, tail = self._triples[row % len(self._triples)].tolist()
            if head == tail:
                continue
            hop = Hop(relation, is_forward)
            known = found.setdefault(tail if is_forward else head, [])
            if hop not in known:
                known.append(hop)
        return found

    def weight(self, entity: int, neighbor: int) -> float:
        """How much a neighbour narrows an entity down; 0 where it is none."""
        side = int(entity >= self._split)
        rows, offset = self._weights[side], self._split * side
        begin, end = rows.ptr[entity - offset], rows.ptr[entity - offset + 1]
        index = begin + int(np.searchsorted(rows.ids[begin:end], neighbor - offset))
        return float(rows.weights[index]) if index < end and rows.ids[index] == neighbor - offset else 0.0


def matched_neighbors(
    index: TripleIndex, counterparts: dict[int, IntArray], source: int, target: int
) -> tuple[MatchedNeighbors, ...]:
    """The matched pairs among the neighbours of both ends, strongest first; `counterparts` maps sources to targets."""
    near_source, near_target = index.hops(source), index.hops(target)
    found = [
        MatchedNeighbors(
            neighbor,
            int(counterpart),
            tuple(hops),
            tuple(near_target[int(counterpart)]),
            index.weight(source, neighbor) * index.weight(target, int(counterpart)),
        )
        for neighbor, hops in near_source.items()
        for counterpart in counterparts.get(neighbor, ())
        if int(counterpart) in near_target
    ]
    return tuple(sorted(found, key=lambda pair: (-pair.weight, pair.source, pair.target)))
