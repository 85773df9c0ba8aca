"""Explain why an entity is matched or unmatched: its candidates, with the evidence for and against each candidate.

In: a finished alignment. Out: an `Explanation` with names in place of ids, for text, tables and JSON: the evidence,
how much each kind of evidence adds to the score, matched neighbours, compared values, the path to the nearest seed.
Cost: the triples and pairs are sorted once; an explanation then reads the triples and pairs of its entity only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, IntArray, RelationAlignment, SeedsFrom, TaskNames
from largegnn.matching.evidence import Weighing, contributions
from largegnn.review.lookup import Rows
from largegnn.review.neighbors import Hop, NeighborIndex, matched_neighbors, relation_likelihoods
from largegnn.review.tables import partners
from largegnn.review.values import ComparedValues, PairValues

__all__ = ["CandidateExplanation", "Explainer", "Explanation", "NeighborExplanation", "Step"]

_MAX_VISITED, _MAX_STEPS = 20_000, 10  # limits of the search for a path to a seed


@dataclass(frozen=True)
class Step:
    """A step of a path along a relation to an entity; a `^` marks a relation that points against the step."""

    relation: str
    entity: str


@dataclass(frozen=True)
class NeighborExplanation:
    """A matched pair of neighbours and the relations to them; a `^` marks a relation that points to the entity."""

    source: str
    target: str
    source_relations: tuple[str, ...]
    target_relations: tuple[str, ...]
    weight: float


@dataclass(frozen=True)
class CandidateExplanation:
    """A candidate pair with its evidence; `rank` is the rank of the candidate for the explained entity.

    `contributions` add up to the score, `values` compares corresponding predicates. `matched_elsewhere` is the entity
    that the candidate is accepted with instead, if any. A pair that is no candidate has neither rank nor score.
    """

    source: str
    target: str
    rank: int | None = None
    score: float | None = None
    margin: float | None = None
    confidence: float | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    mutual: bool = False
    accepted: bool = False
    matched_elsewhere: str | None = None
    matched_neighbors: tuple[NeighborExplanation, ...] = ()
    contributions: Mapping[str, float] = field(default_factory=dict)
    source_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    values: tuple[ComparedValues, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The state of an entity (a reason of `REASONS`), its partner if it is a seed, and its candidates.

    `path_to_seed` leads to the nearest entity that is a seed or an anchor; None where no seed is near.
    """

    entity: str
    side: str
    state: str
    seed_partner: str | None
    candidates: tuple[CandidateExplanation, ...]
    path_to_seed: tuple[Step, ...] | None = None


class Explainer:
    """A maker of explanations for the entities of an alignment."""

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
        self._seeds = task.seeds(seeds_from)
        self._given_seeds = task.given_seeds(seeds_from)
        self._is_seed = np.zeros(task.num_entities, dtype=bool)
        self._is_seed[self._seeds.ravel()] = True
        self._likelihoods = relation_likelihoods(relations)
        self._partner = partners(alignment, task.num_entities)

    def prepare(self) -> None:
        """Sort triples and pairs now, so that the first explanation is not slower than the others."""
        _ = self._neighbors, self._rows, self._matched

    @cached_property
    def _neighbors(self) -> NeighborIndex:
        return NeighborIndex(self._task)

    @cached_property
    def _rows(self) -> tuple[Rows, Rows]:
        """The rows of the pairs by their source, and by their target."""
        pairs, size = self._alignment.pairs, self._task.num_entities
        return Rows(pairs[:, 0], size), Rows(pairs[:, 1], size)

    @cached_property
    def _matched(self) -> tuple[Rows, IntArray]:
        """An index of seeds and mutual pairs by their source, and the targets of these pairs."""
        matched = np.concatenate([self._seeds, self._alignment.pairs[self._alignment.mutual]])
        return Rows(matched[:, 0], self._task.num_entities), matched[:, 1]

    def explain(self, entity: int) -> Explanation:
        """Explain an entity by its candidates, best first."""
        side = int(entity >= self._task.num_source_entities)
        rows = self._rows[side].of(entity)
        ranks = (self._alignment.source_ranks, self._alignment.target_ranks)[side]
        rows = rows[np.argsort(ranks[rows], kind="stable")]
        return self._explanation(entity, [self._candidate(row, int(ranks[row]), entity) for row in rows.tolist()])

    def explain_pair(self, source: int, target: int) -> Explanation:
        """Explain a single pair, even if it is no candidate."""
        rows = self._rows[0].of(source)
        rows = rows[self._alignment.pairs[rows, 1] == target]
        if not len(rows):
            return self._explanation(source, [self._pair(source, target, source)])
        rank = int(self._alignment.source_ranks[rows[0]])
        return self._explanation(source, [self._candidate(int(rows[0]), rank, source)])

    def _explanation(self, entity: int, candidates: list[CandidateExplanation]) -> Explanation:
        side = int(entity >= self._task.num_source_entities)
        partner = self._given_seeds[self._given_seeds[:, side] == entity, 1 - side]
        return Explanation(
            entity=self._name(entity),
            side=("source", "target")[side],
            state=REASONS[int(self._alignment.reasons[entity])],
            seed_partner=self._name(int(partner[0])) if len(partner) else None,
            candidates=tuple(candidates),
            path_to_seed=self._path_to_seed(entity),
        )

    def _path_to_seed(self, entity: int) -> tuple[Step, ...] | None:
        """Find the shortest path along triples to a seed or an anchor, breadth-first; None where no seed is near."""
        reached: dict[int, tuple[int, Hop] | None] = {entity: None}
        level = [entity]
        for _ in range(_MAX_STEPS + 1):
            end = next((seed for seed in level if self._is_seed[seed]), None)
            if end is not None:
                return self._steps(end, reached)
            if not level or len(reached) > _MAX_VISITED:
                return None
            next_level = []
            for visited in level[:_MAX_VISITED]:
                for neighbor, hops in self._neighbors.of(visited).items():
                    if neighbor not in reached:
                        reached[neighbor] = (visited, hops[0])
                        next_level.append(neighbor)
            level = next_level
        return None

    def _steps(self, end: int, reached: Mapping[int, tuple[int, Hop] | None]) -> tuple[Step, ...]:
        steps: list[Step] = []
        while (arrival := reached[end]) is not None:
            before, hop = arrival
            steps.append(Step(self._relation(hop), self._name(end)))
            end = before
        return tuple(reversed(steps))

    def _candidate(self, row: int, rank: int, entity: int) -> CandidateExplanation:
        """Explain the candidate pair at a row of the alignment."""
        alignment = self._alignment
        source, target = alignment.pairs[row].tolist()
        evidence = {name: float(alignment.column(name)[row]) for name in alignment.columns}
        score = float(alignment.scores[row])
        return dataclasses.replace(
            self._pair(source, target, entity),
            rank=rank,
            score=score,
            margin=float(alignment.margins[row]),
            confidence=float(alignment.confidence[row]),
            evidence=evidence,
            mutual=bool(alignment.mutual[row]),
            accepted=bool(alignment.accepted[row]),
            contributions={} if self._weighing is None else contributions(evidence, score, self._weighing),
        )

    def _pair(self, source: int, target: int, entity: int) -> CandidateExplanation:
        """Explain any pair by its names, values and matched neighbours, and by other matches of the candidate.

        `entity` is the explained end of the pair; the candidate is the other end.
        """
        partner = int(self._partner[target if entity == source else source])
        values = self._values
        return CandidateExplanation(
            source=self._name(source),
            target=self._name(target),
            matched_elsewhere=self._name(partner) if partner not in (-1, entity) else None,
            matched_neighbors=self._matched_neighbors(source, target),
            source_names=() if values is None else values.names(source),
            target_names=() if values is None else values.names(target),
            values=() if values is None else values.compared(source, target),
        )

    def _matched_neighbors(self, source: int, target: int) -> tuple[NeighborExplanation, ...]:
        return tuple(
            NeighborExplanation(
                self._name(pair.source),
                self._name(pair.target),
                tuple(map(self._relation, pair.source_hops)),
                tuple(map(self._relation, pair.target_hops)),
                pair.weight,
            )
            for pair in matched_neighbors(self._neighbors, self._likelihoods, self._targets_of, source, target)
        )

    def _targets_of(self, source: int) -> list[int]:
        """The targets that a source is matched with."""
        rows, targets = self._matched
        matched: list[int] = targets[rows.of(source)].tolist()
        return matched

    def _name(self, entity: int) -> str:
        return self._names.entities[entity]

    def _relation(self, hop: Hop) -> str:
        return ("" if hop.is_forward else "^") + self._names.relations[hop.relation]
