"""The neighbourhoods of two entities as a picture: neighbours in rows, those that are matched face each other.

In: the triples, and which entities are counterparts. Out: a `Picture`: boxes and lines with places, for a template.
    source --relation-- neighbour ===== neighbour --relation-- target
Cost: one pass over the triples (`NeighborIndex`), then the triples of the two entities.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, IntArray, SeedsFrom
from largegnn.review.labels import Labels, span

__all__ = ["Neighbor", "NeighborIndex", "Picture", "PictureRow", "counterparts", "draw_neighborhoods"]

_MOST_MATCHED, _MOST_OTHERS = 7, 4
_ROW, _TOP = 34, 14


@dataclass(frozen=True)
class Neighbor:
    """A neighbour with the relations that lead to it, `^` before one that points to the entity."""

    entity: int
    label: str
    iri: str
    relations: str


@dataclass(frozen=True)
class PictureRow:
    """Neighbours at one height; both are there, and joined, where they are counterparts."""

    y: int
    source: Neighbor | None
    target: Neighbor | None
    is_matched: bool


@dataclass(frozen=True)
class Picture:
    """Two entities with their neighbours; `more` counts those that are not drawn, by side."""

    source: str
    target: str
    rows: tuple[PictureRow, ...]
    num_matched: int
    more: tuple[int, int]
    height: int

    @property
    def middle(self) -> int:
        """The height of the two entities."""
        return self.height // 2


class NeighborIndex:
    """The triples by the entities at their ends; of all entities, or of a few only."""

    def __init__(self, task: AlignmentTask, only: IntArray | None = None) -> None:
        triples = task.triples
        self._triples = triples
        if only is None:
            rows = np.tile(np.arange(len(triples)), 2)
            ends = np.concatenate([triples[:, 0], triples[:, 2]])
        else:
            wanted = np.zeros(task.num_entities, dtype=bool)
            wanted[only] = True
            sides = [np.flatnonzero(wanted[triples[:, column]]) for column in (0, 2)]
            rows = np.concatenate(sides)
            ends = np.concatenate([triples[at, column] for at, column in zip(sides, (0, 2), strict=True)])
        order = np.argsort(ends, kind="stable")
        self._rows, self._ends = rows[order], ends[order]

    def degree(self, entity: int) -> int:
        """How many triples an entity is in."""
        begin, end = span(self._ends, entity)
        return end - begin

    def of(self, entity: int) -> dict[int, list[tuple[int, bool]]]:
        """The neighbours of an entity, each with the relations that lead there and whether they point to it."""
        found: dict[int, list[tuple[int, bool]]] = {}
        begin, end = span(self._ends, entity)
        for row in self._rows[begin:end].tolist():
            head, relation, tail = self._triples[row].tolist()
            if head == tail:
                continue
            hops = found.setdefault(tail if head == entity else head, [])
            if (relation, head == entity) not in hops:
                hops.append((relation, head == entity))
        return found


def counterparts(task: AlignmentTask, alignment: Alignment, seeds_from: SeedsFrom) -> dict[int, int]:
    """The counterpart of each source entity that has one: a seed's, or that of an accepted pair."""
    found = dict(alignment.pairs[alignment.accepted].tolist())
    return {**found, **dict(task.seeds(seeds_from).tolist())}


def draw_neighborhoods(
    index: NeighborIndex, labels: Labels, partner: dict[int, int], source: int, target: int
) -> Picture:
    """The picture of a pair; `partner` maps source entities to their counterparts."""
    near = index.of(source), index.of(target)
    matched = [one for one in near[0] if partner.get(one, -1) in near[1]]
    shown = matched[:_MOST_MATCHED]
    taken = {partner[one] for one in matched}
    others = [
        [one for one in near[0] if one not in set(matched)][:_MOST_OTHERS],
        [one for one in near[1] if one not in taken][:_MOST_OTHERS],
    ]
    pairs: list[tuple[int | None, int | None]] = [(one, partner[one]) for one in shown]
    pairs += itertools.zip_longest(others[0], others[1])
    rows = tuple(
        PictureRow(
            _TOP + _ROW * place + _ROW // 2,
            None if one is None else _neighbor(labels, one, near[0][one]),
            None if other is None else _neighbor(labels, other, near[1][other]),
            place < len(shown),
        )
        for place, (one, other) in enumerate(pairs)
    )
    drawn = (sum(row.source is not None for row in rows), sum(row.target is not None for row in rows))
    return Picture(
        labels.label(source),
        labels.label(target),
        rows,
        len(matched),
        (len(near[0]) - drawn[0], len(near[1]) - drawn[1]),
        2 * _TOP + _ROW * max(len(rows), 2),
    )


def _neighbor(labels: Labels, entity: int, hops: list[tuple[int, bool]]) -> Neighbor:
    names = [("" if forward else "^") + labels.relation(relation) for relation, forward in hops]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return Neighbor(entity, labels.label(entity), labels.iri(entity), names[0] + more)
