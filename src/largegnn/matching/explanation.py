"""Why a pair: the matched neighbours that speak for it, with the relations that join them.

In: the triples, the matched pairs, one pair of entities. Out: neighbour pairs that are matched, strongest first, each
with the relations on both sides. Cost: the triples of the two entities, after one pass that indexes all triples by end
and learns which relations answer to each other (`TripleIndex`), which serves any number of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.matching.neighbor_rows import NeighborRows, neighbor_rows
from largegnn.matching.relations import count_relations, counterparts, likelihood

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
    """The triples of a task by the entities at their ends, and how much two neighbours say by the `matched` (k, 2)."""

    def __init__(self, task: AlignmentTask, matched: IntArray) -> None:
        triples, split = task.triples, task.num_source_entities
        self._triples, self._split = triples, split
        ends = np.concatenate([triples[:, 0], triples[:, 2]])
        self._order = np.argsort(ends, kind="stable")
        self._ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=task.num_entities))])
        self._rows = neighbor_rows(task, 0), neighbor_rows(task, 1)
        sure = np.ones(len(matched), dtype=np.float32)
        self._counts = count_relations(task, *self._rows, counterparts(task, matched, sure))

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

    def weight(self, source: int, neighbor: int, target: int, counterpart: int) -> float:
        """How much a matched pair of neighbours says for a pair: by the two relations that say most; 0 for none."""
        split, (near_source, near_target) = self._split, self._rows
        ways = _entries(near_source, source, neighbor), _entries(near_target, target - split, counterpart - split)
        return max(
            (
                float(near_source.weights[one]) * float(near_target.weights[other])
                * likelihood(self._counts, near_source.ways[one], near_target.ways[other])
                for one in ways[0]
                for other in ways[1]
            ),
            default=0.0,
        )  # fmt: skip


def _entries(rows: NeighborRows, entity: int, neighbor: int) -> range:
    """The entries of a neighbour in an entity's row."""
    begin, end = rows.ptr[entity], rows.ptr[entity + 1]
    low, high = np.searchsorted(rows.ids[begin:end], [neighbor, neighbor + 1])
    return range(int(begin + low), int(begin + high))


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
            index.weight(source, neighbor, target, int(counterpart)),
        )
        for neighbor, hops in near_source.items()
        for counterpart in counterparts.get(neighbor, ())
        if int(counterpart) in near_target
    ]
    return tuple(sorted(found, key=lambda pair: (-pair.weight, pair.source, pair.target)))
