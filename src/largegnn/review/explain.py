"""Why an entity is matched, or not: its candidates with evidence, the matched neighbours behind them, and who won.

In: a finished alignment. Out: an `Explanation` in names, for words, tables and JSON. Cost: one pass over the triples
and pairs when the explainer is made; then what concerns one entity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, IntArray, SeedsFrom, TaskNames
from largegnn.matching.explanation import Hop, TripleIndex, matched_neighbors

__all__ = ["CandidateExplanation", "Explainer", "Explanation", "NeighborExplanation"]


@dataclass(frozen=True)
class NeighborExplanation:
    """A matched pair of neighbours and the relations that lead to them, `^` before one that points the other way."""

    source: str
    target: str
    source_relations: tuple[str, ...]
    target_relations: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class CandidateExplanation:
    """One candidate pair with the evidence for it; `rank` is that of the candidate for the entity that was asked about.

    `taken_by` names whom the candidate is accepted with instead, where that is another one.
    """

    source: str
    target: str
    rank: int
    score: float
    margin: float
    confidence: float
    evidence: Mapping[str, float]
    mutual: bool
    accepted: bool
    taken_by: str | None
    matched_neighbors: tuple[NeighborExplanation, ...]


@dataclass(frozen=True)
class Explanation:
    """What is known of an entity: its state (one of the reasons), its seed partner if it is one, its candidates."""

    entity: str
    side: str
    state: str
    seed_partner: str | None
    candidates: tuple[CandidateExplanation, ...]


class Explainer:
    """Explains the entities of one alignment."""

    def __init__(self, task: AlignmentTask, names: TaskNames, alignment: Alignment, seeds_from: SeedsFrom) -> None:
        self._task, self._names, self._alignment = task, names, alignment
        self._seeds = task.seeds(seeds_from)
        matched = np.concatenate([self._seeds, alignment.pairs[alignment.mutual]])
        self._index, self._counterparts = TripleIndex(task, matched), _by_source(matched)
        self._partner = np.full(task.num_entities, -1, dtype=np.int64)
        accepted = alignment.pairs[alignment.accepted]
        self._partner[accepted[:, 0]], self._partner[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]
        self._rows = [_rows_of(alignment.pairs[:, side]) for side in (0, 1)]

    def explain(self, entity: int) -> Explanation:
        """The candidates of an entity, best first."""
        side = int(entity >= self._task.num_source_entities)
        order, keys = self._rows[side]
        begin, end = np.searchsorted(keys, [entity, entity + 1])
        rows = order[begin:end]
        ranks = (self._alignment.source_ranks, self._alignment.target_ranks)[side]
        rows = rows[np.argsort(ranks[rows], kind="stable")]
        partner = self._seeds[self._seeds[:, side] == entity, 1 - side]
        return Explanation(
            entity=self._name(entity),
            side=("source", "target")[side],
            state=REASONS[int(self._alignment.reasons[entity])],
            seed_partner=self._name(int(partner[0])) if len(partner) else None,
            candidates=tuple(self._candidate(int(row), int(ranks[row]), entity) for row in rows),
        )

    def _candidate(self, row: int, rank: int, entity: int) -> CandidateExplanation:
        found = self._alignment
        source, target = found.pairs[row].tolist()
        other = target if entity == source else source
        taken = int(self._partner[other])
        near = matched_neighbors(self._index, self._counterparts, source, target)
        return CandidateExplanation(
            source=self._name(source),
            target=self._name(target),
            rank=rank,
            score=float(found.scores[row]),
            margin=float(found.margins[row]),
            confidence=float(found.confidence[row]),
            evidence={name: float(found.column(name)[row]) for name in found.columns},
            mutual=bool(found.mutual[row]),
            accepted=bool(found.accepted[row]),
            taken_by=self._name(taken) if taken not in (-1, entity) else None,
            matched_neighbors=tuple(
                NeighborExplanation(
                    self._name(pair.source),
                    self._name(pair.target),
                    tuple(map(self._relation, pair.source_hops)),
                    tuple(map(self._relation, pair.target_hops)),
                    pair.weight,
                )
                for pair in near
            ),
        )

    def _name(self, entity: int) -> str:
        return self._names.entities[entity]

    def _relation(self, hop: Hop) -> str:
        return ("" if hop.is_forward else "^") + self._names.relations[hop.relation]


def _rows_of(ends: IntArray) -> tuple[IntArray, IntArray]:
    """The rows by their end, ascending, and the ends in that order."""
    order = np.argsort(ends, kind="stable")
    return order, ends[order]


def _by_source(pairs: IntArray) -> dict[int, IntArray]:
    """The targets of each source."""
    ordered = pairs[np.argsort(pairs[:, 0], kind="stable")]
    sources, starts = np.unique(ordered[:, 0], return_index=True)
    return dict(zip(sources.tolist(), np.split(ordered[:, 1], starts[1:]), strict=True)) if len(pairs) else {}
