"""Collect what a page shows of a pair: labels, evidence, both neighbourhoods as a picture, values side by side.

In: a finished run. Out: `PairView`s for the report and the review page. The picture has neighbours in rows, matched
ones face each other: source --relation-- neighbour ===== neighbour --relation-- target.
Cost: the triples and literals of the two entities, once the triples are sorted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, IntArray, SeedsFrom, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.review.labels import Labels, name_predicates
from largegnn.review.neighbors import Hop, NeighborIndex
from largegnn.review.values import ValueRow, compare_values

if TYPE_CHECKING:
    from largegnn.run import RunSummary

__all__ = ["PairView", "PairViewer", "Picture", "audit_sample", "counterparts", "draw_neighborhoods"]

AUDIT_SEED = 20_240_229
_MOST_MATCHED, _MOST_OTHERS = 7, 4  # rows of the picture


@dataclass(frozen=True)
class PairView:
    """One candidate pair; `row` is its row in the alignment."""

    row: int
    source: str
    target: str
    source_label: str
    target_label: str
    rating: float
    score: float
    margin: float
    evidence: Mapping[str, float]
    accepted: bool
    mutual: bool
    picture: Picture
    values: tuple[ValueRow, ...]


class PairViewer:
    """Makes views of the pairs of one run."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, alignment: Alignment, summary: RunSummary
    ) -> None:
        found = summary.literals
        profiles = () if found is None else (*found.source_profiles, *found.target_profiles)
        self.labels = Labels(task, names, literals, name_predicates(literals, profiles))
        self._alignment, self._literals = alignment, literals
        self._index = NeighborIndex(task)
        self._partner = counterparts(task, alignment, summary.settings.protocol.seeds_from)
        correspondences = () if found is None else found.correspondences
        self._predicates = [(each.source_predicate, each.target_predicate) for each in correspondences]

    def view(self, row: int) -> PairView:
        """The pair at a row of the alignment."""
        found = self._alignment
        source, target = found.pairs[row].tolist()
        return PairView(
            row=row,
            source=self.labels.iri(source),
            target=self.labels.iri(target),
            source_label=self.labels.label(source),
            target_label=self.labels.label(target),
            rating=float(found.confidence[row]),
            score=float(found.scores[row]),
            margin=float(found.margins[row]),
            evidence={name: float(found.column(name)[row]) for name in found.columns},
            accepted=bool(found.accepted[row]),
            mutual=bool(found.mutual[row]),
            picture=draw_neighborhoods(self._index, self.labels, self._partner, source, target),
            values=compare_values(self._literals, source, target, self._predicates),
        )


def audit_sample(alignment: Alignment, size: int) -> IntArray:
    """Rows of accepted pairs drawn at random, in random order; the same pairs every time, and a longer sample begins
    with a shorter one.
    """
    accepted = np.flatnonzero(alignment.accepted)
    return np.random.default_rng(AUDIT_SEED).permutation(accepted)[:size]


@dataclass(frozen=True)
class Neighbor:
    """A neighbour with the relations that lead to it, `^` before one that points to the entity."""

    label: str
    iri: str
    relations: str


class PictureRow(NamedTuple):
    """Neighbours at one height; both are given, and joined, where they are counterparts."""

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


def counterparts(task: AlignmentTask, alignment: Alignment, seeds_from: SeedsFrom) -> dict[int, int]:
    """The counterpart of each source entity that has one: a seed's, or that of an accepted pair."""
    found = dict(alignment.pairs[alignment.accepted].tolist())
    return {**found, **dict(task.seeds(seeds_from).tolist())}


def draw_neighborhoods(
    index: NeighborIndex, labels: Labels, partner: dict[int, int], source: int, target: int
) -> Picture:
    """The picture of a pair; `partner` maps source entities to their counterparts."""
    near, far = index.of(source), index.of(target)
    matched = {one: partner[one] for one in near if partner.get(one, -1) in far}
    shown = list(matched.items())[:_MOST_MATCHED]
    matched_targets = set(matched.values())
    others = [one for one in near if one not in matched][:_MOST_OTHERS]
    far_others = [one for one in far if one not in matched_targets][:_MOST_OTHERS]
    rows = [(_neighbor(labels, one, near), _neighbor(labels, other, far), True) for one, other in shown]
    rows += [
        (_neighbor(labels, one, near), _neighbor(labels, other, far), False)
        for one, other in itertools.zip_longest(others, far_others)
    ]
    return Picture(
        labels.label(source),
        labels.label(target),
        tuple(PictureRow(*row) for row in rows),
        len(matched),
        (len(near) - len(shown) - len(others), len(far) - len(shown) - len(far_others)),
    )


def _neighbor(labels: Labels, entity: int | None, near: Mapping[int, list[Hop]]) -> Neighbor | None:
    if entity is None:
        return None
    names = [("" if hop.is_forward else "^") + labels.relation(hop.relation) for hop in near[entity]]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return Neighbor(labels.label(entity), labels.iri(entity), names[0] + more)
