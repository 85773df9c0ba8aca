"""Collect what a page shows about a pair: labels, evidence, a picture of both neighbourhoods, values side by side.

In: a finished run. Out: `PairView`s for the report and the review page. The picture has neighbours in rows, with
matched neighbours in the same row: source --relation-- neighbour ===== neighbour --relation-- target.
Cost: the triples are sorted once; a view then reads the triples and literals of its two entities only.
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

__all__ = ["PairView", "PairViewer", "Picture", "audit_sample", "draw_neighborhoods", "targets_of_sources"]

AUDIT_SEED = 20_240_229
_MAX_MATCHED, _MAX_UNMATCHED = 7, 4  # rows of the picture


@dataclass(frozen=True)
class PairView:
    """A candidate pair as pages show it; `row` is its row in the alignment."""

    row: int
    source: str
    target: str
    source_label: str
    target_label: str
    confidence: float
    """A probability if the run is calibrated, else the rank of the score from 0 to 1."""
    score: float
    margin: float
    evidence: Mapping[str, float]
    accepted: bool
    mutual: bool
    picture: Picture
    values: tuple[ValueRow, ...]


class PairViewer:
    """A maker of views of the pairs of a run."""

    def __init__(
        self, task: AlignmentTask, names: TaskNames, literals: Literals, alignment: Alignment, summary: RunSummary
    ) -> None:
        outcome = summary.literals
        profiles = () if outcome is None else (*outcome.source_profiles, *outcome.target_profiles)
        self.labels = Labels(task, names, literals, name_predicates(literals, profiles))
        self._alignment, self._literals = alignment, literals
        self._index = NeighborIndex(task)
        self._target_of_source = targets_of_sources(task, alignment, summary.settings.protocol.seeds_from)
        correspondences = () if outcome is None else outcome.correspondences
        self._predicates = [(match.source_predicate, match.target_predicate) for match in correspondences]

    def view(self, row: int) -> PairView:
        """Collect what a page shows about the pair at a row of the alignment."""
        alignment = self._alignment
        source, target = alignment.pairs[row].tolist()
        return PairView(
            row=row,
            source=self.labels.iri(source),
            target=self.labels.iri(target),
            source_label=self.labels.label(source),
            target_label=self.labels.label(target),
            confidence=float(alignment.confidence[row]),
            score=float(alignment.scores[row]),
            margin=float(alignment.margins[row]),
            evidence={name: float(alignment.column(name)[row]) for name in alignment.columns},
            accepted=bool(alignment.accepted[row]),
            mutual=bool(alignment.mutual[row]),
            picture=draw_neighborhoods(self._index, self.labels, self._target_of_source, source, target),
            values=compare_values(self._literals, source, target, self._predicates),
        )


def audit_sample(alignment: Alignment, size: int) -> IntArray:
    """Sample accepted pairs at random; returns their rows.

    The order is fixed, so a larger sample starts with a smaller one.
    """
    accepted = np.flatnonzero(alignment.accepted)
    return np.random.default_rng(AUDIT_SEED).permutation(accepted)[:size]


@dataclass(frozen=True)
class Neighbor:
    """A neighbour with the relations that lead to it; a `^` marks a relation that points from it to the entity."""

    label: str
    iri: str
    relations: str


class PictureRow(NamedTuple):
    """A row of the picture: a neighbour of each entity, or of one; `is_matched` neighbours are joined by a line."""

    source: Neighbor | None
    target: Neighbor | None
    is_matched: bool


@dataclass(frozen=True)
class Picture:
    """Two entities with their neighbours; `num_not_drawn` counts the other neighbours of either side."""

    source: str
    target: str
    rows: tuple[PictureRow, ...]
    num_matched: int
    num_not_drawn: tuple[int, int]


def targets_of_sources(task: AlignmentTask, alignment: Alignment, seeds_from: SeedsFrom) -> dict[int, int]:
    """Map source entities to the targets they are matched with, by seeds or else by accepted pairs."""
    accepted = dict(alignment.pairs[alignment.accepted].tolist())
    return {**accepted, **dict(task.seeds(seeds_from).tolist())}


def draw_neighborhoods(
    index: NeighborIndex, labels: Labels, target_of_source: dict[int, int], source: int, target: int
) -> Picture:
    """Arrange the neighbours of a pair; `target_of_source` is made by `targets_of_sources`."""
    source_hops, target_hops = index.of(source), index.of(target)
    matched = {
        entity: target_of_source[entity] for entity in source_hops if target_of_source.get(entity) in target_hops
    }
    drawn = list(matched.items())[:_MAX_MATCHED]
    matched_targets = set(matched.values())
    unmatched_sources = [entity for entity in source_hops if entity not in matched][:_MAX_UNMATCHED]
    unmatched_targets = [entity for entity in target_hops if entity not in matched_targets][:_MAX_UNMATCHED]
    rows = [(left, right, True) for left, right in drawn]
    rows += [(left, right, False) for left, right in itertools.zip_longest(unmatched_sources, unmatched_targets)]
    return Picture(
        source=labels.label(source),
        target=labels.label(target),
        rows=tuple(
            PictureRow(_neighbor(labels, left, source_hops), _neighbor(labels, right, target_hops), is_matched)
            for left, right, is_matched in rows
        ),
        num_matched=len(matched),
        num_not_drawn=(
            len(source_hops) - len(drawn) - len(unmatched_sources),
            len(target_hops) - len(drawn) - len(unmatched_targets),
        ),
    )


def _neighbor(labels: Labels, entity: int | None, hops_of: Mapping[int, list[Hop]]) -> Neighbor | None:
    if entity is None:
        return None
    names = [("" if hop.is_forward else "^") + labels.relation(hop.relation) for hop in hops_of[entity]]
    more = f" +{len(names) - 1}" if len(names) > 1 else ""
    return Neighbor(labels.label(entity), labels.iri(entity), names[0] + more)
