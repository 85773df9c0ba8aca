"""Support and the likelihood of relations as slow loops over all triples, and small tasks to try them on."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

from largegnn.artifacts import AlignmentTask

Edge = tuple[int, int]
Way = tuple[int, bool]  # a relation, and whether it leaves the entity


def ways_slowly(task: AlignmentTask, entity: int, neighbor: int) -> set[Way]:
    """By which relations a neighbour is reached, and which way round."""
    triples = task.triples.tolist() if entity != neighbor else []
    leaving = {(r, True) for h, r, t in triples if (h, t) == (entity, neighbor)}
    return leaving | {(r, False) for h, r, t in triples if (t, h) == (entity, neighbor)}


def weight_slowly(task: AlignmentTask, neighbor: int, way: Way) -> float:
    """How much a neighbour narrows down who reaches it a certain way: how many do, to the -1/4."""
    relation, is_leaving = way
    end = 2 if is_leaving else 0
    reach = sum(row[end] == neighbor and row[1] == relation and row[0] != row[2] for row in task.triples.tolist())
    return float(reach**-0.25)


class SlowRelations:
    """How often relations join the same matched pairs, from their definition."""

    def __init__(self, task: AlignmentTask, matched: dict[Edge, float]) -> None:
        self.seen: defaultdict[tuple[int, int, bool], float] = defaultdict(float)
        self.totals: defaultdict[int, float] = defaultdict(float)
        for (source, target), sure in matched.items():
            for (neighbor, counterpart), other in matched.items():
                near, far = ways_slowly(task, source, neighbor), ways_slowly(task, target, counterpart)
                if near and far:
                    for relation, _ in [*near, *far]:
                        self.totals[relation] += sure * other / 2
                    for one, is_leaving in near:
                        for two, leaves in far:
                            self.seen[one, two, is_leaving != leaves] += sure * other / 2

    def likelihood(self, near: Way, far: Way) -> float:
        """The mean of how often either relation was seen with the other, five unseen times counting a tenth each."""
        seen = self.seen[near[0], far[0], near[1] != far[1]] + 0.5
        return (seen / (self.totals[near[0]] + 5) + seen / (self.totals[far[0]] + 5)) / 2


def speaks_slowly(task: AlignmentTask, relations: SlowRelations, edge: Edge, neighbors: Edge) -> float:
    """What a matched pair of neighbours says for a pair by the two relations that say most."""
    return max(
        (
            relations.likelihood(near, far)
            * weight_slowly(task, neighbors[0], near)
            * weight_slowly(task, neighbors[1], far)
            for near in ways_slowly(task, edge[0], neighbors[0])
            for far in ways_slowly(task, edge[1], neighbors[1])
        ),
        default=0.0,
    )


def support_slowly(task: AlignmentTask, edge: Edge, matched: dict[Edge, float]) -> float:
    """Each counterpart next to the target speaks once, by the neighbour that says most through it; 2 at most."""
    relations = SlowRelations(task, matched)
    strongest: dict[int, float] = {}
    for (source, target), sure in matched.items():
        said = sure * speaks_slowly(task, relations, edge, (source, target))
        strongest[target] = max(said, strongest.get(target, 0.0))
    return min(sum(strongest.values()), 2.0)


def certain_slowly(scores: dict[Edge, float], temperature: float = 0.02, steps: int = 10) -> dict[Edge, float]:
    """The plan of a transport over half the scores, in which every entity may also have no counterpart at score 0."""
    weights = {edge: math.exp(score / 2 / temperature) for edge, score in scores.items()}
    rows, columns = dict.fromkeys((s for s, _ in scores), 1.0), dict.fromkeys((t for _, t in scores), 1.0)
    for _ in range(steps):
        for row in rows:
            rows[row] = 1 / (1 + sum(w * columns[t] for (s, t), w in weights.items() if s == row))
        for column in columns:
            columns[column] = 1 / (1 + sum(w * rows[s] for (s, t), w in weights.items() if t == column))
    return {(s, t): weight * rows[s] * columns[t] for (s, t), weight in weights.items()}


def likely_slowly(scores: dict[Edge, float]) -> dict[Edge, float]:
    """The edges whose certainty is at least a fifth, with it."""
    return {edge: sure for edge, sure in certain_slowly(scores).items() if sure >= 0.2}


def make_task(
    num_source: int, num_target: int, triples: list[tuple[int, int, int]], seeds: list[Edge]
) -> AlignmentTask:
    """Relations 0 and 1 are the source's, 2 and 3 the target's."""
    rows = np.array(sorted(set(triples)), dtype=np.int32).reshape(-1, 3)
    links = np.array(sorted(set(seeds)), dtype=np.int32).reshape(-1, 2)
    return AlignmentTask(num_source, num_target, 2, 2, rows, links, links[:0], links[:0])
