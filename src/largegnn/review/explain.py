"""Why an entity is matched, or not: its candidates, what speaks for and against each, and who won.

In: a finished alignment. Out: an `Explanation` in names, for words, tables and JSON: evidence and what each kind of it
adds to the score, matched neighbours, values compared, the way to the nearest seed. Cost: a few passes over the triples
and pairs for each of the first questions; after some of them an index is made, and a question costs what concerns it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, IntArray, RelationAlignment, SeedsFrom, TaskNames
from largegnn.matching.evidence import Weighing, contributions
from largegnn.matching.explanation import Hop, TripleIndex, matched_neighbors
from largegnn.review.labels import span
from largegnn.review.values import ComparedValues, PairValues

__all__ = ["CandidateExplanation", "Explainer", "Explanation", "NeighborExplanation", "Step"]

_MOST_VISITED, _MOST_STEPS = 20_000, 10  # entities looked at on the way to a seed, and its length
_MANY = 8  # questions from which on an index is worth its seconds


@dataclass(frozen=True)
class Step:
    """One step along a relation, `^` before one that points the other way, to an entity."""

    relation: str
    entity: str


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

    `contributions` add up to the score, `values` are those of predicates that answer to each other. `taken_by` names
    whom the candidate is accepted with instead, where that is another one. A pair that was asked for and is no
    candidate has neither rank nor score.
    """

    source: str
    target: str
    rank: int | None
    score: float | None
    margin: float | None
    confidence: float | None
    evidence: Mapping[str, float]
    mutual: bool
    accepted: bool
    taken_by: str | None
    matched_neighbors: tuple[NeighborExplanation, ...]
    contributions: Mapping[str, float] = field(default_factory=dict)
    source_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    values: tuple[ComparedValues, ...] = ()


class _Said(TypedDict):
    """What both ends of a pair say of themselves."""

    source_names: tuple[str, ...]
    target_names: tuple[str, ...]
    values: tuple[ComparedValues, ...]


@dataclass(frozen=True)
class Explanation:
    """What is known of an entity: its state (one of the reasons), its seed partner if it is one, its candidates.

    `path_to_seed` leads to the nearest entity that is a seed or an anchor; None where none is near.
    """

    entity: str
    side: str
    state: str
    seed_partner: str | None
    candidates: tuple[CandidateExplanation, ...]
    path_to_seed: tuple[Step, ...] | None = None


class Explainer:
    """Explains the entities of one alignment."""

    def __init__(
        self,
        task: AlignmentTask,
        names: TaskNames,
        alignment: Alignment,
        relations: RelationAlignment,
        seeds_from: SeedsFrom,
        weighing: Weighing | None = None,
        values: PairValues | None = None,
    ) -> None:
        self._task, self._names, self._alignment = task, names, alignment
        self._weighing, self._values = weighing, values
        self._seeds, self._given = task.seeds(seeds_from), task.given_seeds(seeds_from)
        self._is_seed = np.zeros(task.num_entities, dtype=bool)
        self._is_seed[self._seeds.ravel()] = True
        matched = np.concatenate([self._seeds, alignment.pairs[alignment.mutual]])
        self._matched = tuple(np.ascontiguousarray(matched[np.argsort(matched[:, 0], kind="stable")].T))
        self._is_matched = np.zeros(task.num_entities, dtype=bool)
        self._is_matched[self._matched[0]] = True
        self._index = TripleIndex(task, relations)
        self._partner = np.full(task.num_entities, -1, dtype=np.int64)
        accepted = alignment.pairs[alignment.accepted]
        self._partner[accepted[:, 0]], self._partner[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]
        self._rows: list[tuple[IntArray, IntArray]] = []
        self._num_asked = 0

    def prepare(self) -> None:
        """Index triples and pairs by their ends, for those who have many questions; some seconds at a million."""
        self._index.prepare()
        self._rows = [_rows_by_end(self._alignment.pairs[:, side]) for side in (0, 1)]

    def explain(self, entity: int) -> Explanation:
        """The candidates of an entity, best first."""
        self._num_asked += 1
        if self._num_asked == _MANY:
            self.prepare()
        side = int(entity >= self._task.num_source_entities)
        rows = self._rows_of(entity, side)
        ranks = (self._alignment.source_ranks, self._alignment.target_ranks)[side]
        rows = rows[np.argsort(ranks[rows], kind="stable")]
        near = self._near(self._alignment.pairs[rows])
        found = [
            self._candidate(row, int(ranks[row]), entity, one) for row, one in zip(rows.tolist(), near, strict=True)
        ]
        return self._explanation(entity, found)

    def _rows_of(self, entity: int, side: int) -> IntArray:
        """The rows of an entity's pairs."""
        if not self._rows:
            return np.flatnonzero(self._alignment.pairs[:, side] == entity)
        order, ends = self._rows[side]
        begin, end = span(ends, entity)
        return order[begin:end]

    def explain_pair(self, source: int, target: int) -> Explanation:
        """One pair alone, also where it is no candidate."""
        rows = self._rows_of(source, 0)
        rows = rows[self._alignment.pairs[rows, 1] == target].tolist()
        near = self._near(np.array([(source, target)]))[0]
        if rows:
            rank = int(self._alignment.source_ranks[rows[0]])
            return self._explanation(source, [self._candidate(rows[0], rank, source, near)])
        return self._explanation(source, [self._no_candidate(source, target, near)])

    def _explanation(self, entity: int, candidates: list[CandidateExplanation]) -> Explanation:
        side = int(entity >= self._task.num_source_entities)
        partner = self._given[self._given[:, side] == entity, 1 - side]
        return Explanation(
            entity=self._name(entity),
            side=("source", "target")[side],
            state=REASONS[int(self._alignment.reasons[entity])],
            seed_partner=self._name(int(partner[0])) if len(partner) else None,
            candidates=tuple(candidates),
            path_to_seed=self._path_to_seed(entity),
        )

    def _path_to_seed(self, entity: int) -> tuple[Step, ...] | None:
        """The shortest way along triples to an entity that is a seed or an anchor; None where none is near."""
        reached: dict[int, tuple[int, Hop] | None] = {entity: None}
        level = [entity]
        for _ in range(_MOST_STEPS + 1):
            end = next((one for one in level if self._is_seed[one]), None)
            if end is not None:
                return self._steps(end, reached)
            hops = self._index.hops(level[:_MOST_VISITED])
            level = []
            for here, near in hops.items():
                for neighbor, ways in near.items():
                    if neighbor not in reached:
                        reached[neighbor] = (here, ways[0])
                        level.append(neighbor)
            if not level or len(reached) > _MOST_VISITED:
                break
        end = next((one for one in level if self._is_seed[one]), None)
        return None if end is None else self._steps(end, reached)

    def _steps(self, end: int, reached: dict[int, tuple[int, Hop] | None]) -> tuple[Step, ...]:
        steps: list[Step] = []
        while (come := reached[end]) is not None:
            before, hop = come
            steps.append(Step(self._relation(hop), self._name(end)))
            end = before
        return tuple(reversed(steps))

    def _no_candidate(self, source: int, target: int, near: tuple[NeighborExplanation, ...]) -> CandidateExplanation:
        taken = int(self._partner[target])
        return CandidateExplanation(
            source=self._name(source),
            target=self._name(target),
            rank=None,
            score=None,
            margin=None,
            confidence=None,
            evidence={},
            mutual=False,
            accepted=False,
            taken_by=self._name(taken) if taken not in (-1, source) else None,
            matched_neighbors=near,
            **self._said(source, target),
        )

    def _candidate(
        self, row: int, rank: int, entity: int, near: tuple[NeighborExplanation, ...]
    ) -> CandidateExplanation:
        found = self._alignment
        source, target = found.pairs[row].tolist()
        other = target if entity == source else source
        taken = int(self._partner[other])
        evidence = {name: float(found.column(name)[row]) for name in found.columns}
        score = float(found.scores[row])
        return CandidateExplanation(
            source=self._name(source),
            target=self._name(target),
            rank=rank,
            score=score,
            margin=float(found.margins[row]),
            confidence=float(found.confidence[row]),
            evidence=evidence,
            mutual=bool(found.mutual[row]),
            accepted=bool(found.accepted[row]),
            taken_by=self._name(taken) if taken not in (-1, entity) else None,
            matched_neighbors=near,
            contributions={} if self._weighing is None else contributions(evidence, score, self._weighing),
            **self._said(source, target),
        )

    def _near(self, pairs: IntArray) -> list[tuple[NeighborExplanation, ...]]:
        """The matched neighbours of each of some pairs (k, 2), by one pass for all."""
        named = [(source, target) for source, target in pairs.tolist()]
        return [
            tuple(
                NeighborExplanation(
                    self._name(pair.source),
                    self._name(pair.target),
                    tuple(map(self._relation, pair.source_hops)),
                    tuple(map(self._relation, pair.target_hops)),
                    pair.weight,
                )
                for pair in found
            )
            for found in matched_neighbors(self._index, self._counterparts, named)
        ]

    def _counterparts(self, source: int) -> list[int]:
        """The targets that a source is matched with."""
        if not self._is_matched[source]:
            return []
        begin, end = span(self._matched[0], source)
        found: list[int] = self._matched[1][begin:end].tolist()
        return found

    def _said(self, source: int, target: int) -> _Said:
        if self._values is None:
            return {"source_names": (), "target_names": (), "values": ()}
        return {
            "source_names": self._values.names(source),
            "target_names": self._values.names(target),
            "values": self._values.compared(source, target),
        }

    def _name(self, entity: int) -> str:
        return self._names.entities[entity]

    def _relation(self, hop: Hop) -> str:
        return ("" if hop.is_forward else "^") + self._names.relations[hop.relation]


def _rows_by_end(ends: IntArray) -> tuple[IntArray, IntArray]:
    """The rows by their end, ascending, and the ends in that order."""
    order = np.argsort(ends, kind="stable")
    return order, ends[order]
