"""Support as slow loops over all triples, and small tasks to try it on."""

from __future__ import annotations

import math

import numpy as np

from largegnn.artifacts import AlignmentTask

Edge = tuple[int, int]


def weight_slowly(task: AlignmentTask, entity: int, neighbor: int) -> float:
    """How much a neighbour narrows things down: the relation by which it reaches fewest entities, to the -1/4."""
    triples = [tuple(triple) for triple in task.triples.tolist()]
    reaches = []
    for head, relation, tail in triples:
        if (head, tail) == (neighbor, entity):
            reaches.append(sum(h == neighbor and r == relation for h, r, _ in triples))
        if (tail, head) == (neighbor, entity):
            reaches.append(sum(t == neighbor and r == relation for _, r, t in triples))
    return min(reaches) ** -0.25 if reaches and entity != neighbor else 0.0


def support_slowly(task: AlignmentTask, edge: Edge, matched: dict[Edge, float]) -> float:
    """Every matched pair of neighbours speaks by its certainty and by how much it narrows things down; 2 at most."""
    total = sum(
        certainty * weight_slowly(task, edge[0], source) * weight_slowly(task, edge[1], target)
        for (source, target), certainty in matched.items()
    )
    return min(total, 2.0)


def preferred_slowly(scores: dict[Edge, float]) -> dict[Edge, float]:
    """Edges that are first at both ends, equal ones by order, with the certainty their margin gives them."""
    chosen = {}
    for edge, score in scores.items():
        rivals = [[other for other in scores if other != edge and other[side] == edge[side]] for side in (0, 1)]
        if all((scores[rival], edge) <= (score, rival) for side in rivals for rival in side):
            gaps = [score - max((scores[rival] for rival in side), default=score - 1.0) for side in rivals]
            chosen[edge] = 1 / (1 + math.exp(-(12 * min(gaps) - 1)))
    return chosen


def make_task(
    num_source: int, num_target: int, triples: list[tuple[int, int, int]], seeds: list[Edge]
) -> AlignmentTask:
    """Relations 0 and 1 are the source's, 2 and 3 the target's."""
    rows = np.array(sorted(set(triples)), dtype=np.int32).reshape(-1, 3)
    links = np.array(sorted(set(seeds)), dtype=np.int32).reshape(-1, 2)
    return AlignmentTask(num_source, num_target, 2, 2, rows, links, links[:0], links[:0])
