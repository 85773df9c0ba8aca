"""A pair as people look at it: labels, evidence, both neighbourhoods as a picture, values side by side.

In: what a finished run is. Out: `PairView`s, for the report and for the review page. Cost: see the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, IntArray, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.review.labels import Labels, name_predicates
from largegnn.review.neighborhood import NeighborIndex, Picture, counterparts, draw_neighborhoods
from largegnn.review.value_rows import ValueRow, compare_values

if TYPE_CHECKING:
    from largegnn.stages.report import RunSummary

__all__ = ["PairView", "PairViewer", "audit_sample"]

AUDIT_SEED = 20_240_229


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
    """Makes views of the pairs of one run; of all pairs, or, sooner, of those at some rows only."""

    def __init__(
        self,
        task: AlignmentTask,
        names: TaskNames,
        literals: Literals,
        alignment: Alignment,
        summary: RunSummary,
        rows: IntArray | None = None,
    ) -> None:
        found = summary.literals
        profiles = () if found is None else (*found.source_profiles, *found.target_profiles)
        self.labels = Labels(task, names, literals, name_predicates(literals, profiles))
        self._alignment, self._literals = alignment, literals
        self.index = NeighborIndex(task, None if rows is None else np.unique(alignment.pairs[rows]))
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
            picture=self.picture(source, target),
            values=self.values(source, target),
        )

    def picture(self, source: int, target: int) -> Picture:
        """Both neighbourhoods."""
        return draw_neighborhoods(self.index, self.labels, self._partner, source, target)

    def values(self, source: int, target: int) -> tuple[ValueRow, ...]:
        """The values of both, side by side."""
        return compare_values(self._literals, source, target, self._predicates)


def audit_sample(alignment: Alignment, size: int) -> IntArray:
    """Rows of accepted pairs drawn at random, in random order; the same pairs every time, and a longer sample begins
    with a shorter one.
    """
    accepted = np.flatnonzero(alignment.accepted)
    return np.random.default_rng(AUDIT_SEED).permutation(accepted)[:size]
