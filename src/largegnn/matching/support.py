"""Neighbourhood support: how many neighbours of the two ends of a candidate pair are themselves counterparts.

In: the triples, the seeds, candidate edges with scores. Out: a support for each edge, and scores that count it in.
The idea: if s and t are the same, their neighbours are too. A neighbour pair (a, b) that is a seed, or a pair both
sides prefer, speaks for (s, t) by its own certainty times how much a narrows s down and b narrows t down (see
`weighted_rows`). The embeddings know this only in sum; the single facts tell near-equal candidates apart, and they are
what a person can check. The pairs preferred after counting support are better than before, so it is done a few times.
How it is counted: the counterparts of a source's neighbours are marked once, and each of its candidates t looks up its
own neighbours among them; or they are looked up among those of t where that is less work, as with a hub.
Cost: the smaller of the two neighbourhoods for each edge, and its logarithm; memory linear in edges and triples.

# Departs: not in the paper, which decides by the embeddings alone. Akin to PARIS (Suchanek et al., 2011), without its
#     fixpoint over relations.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray
from largegnn.machine.compiled import compiled
from largegnn.machine.progress import progress
from largegnn.matching.candidates import preferred
from largegnn.matching.weighted_rows import WeightedRows, weigh_neighbors

__all__ = ["SupportFinder"]

_MOST = 2.0  # support beyond this adds nothing: a hub's many neighbours prove no more than a few good ones
_CERTAINTY = (12.0, -1.0)  # slope and offset from a pair's margin to the certainty it lends its neighbours
_LONG = 32  # a row that may be worth halving
# Most neighbours of a candidate are not marked. A table this small stays in the nearest cache and says so at once.
_SIEVE = 1 << 12


class SupportFinder:
    """Knows the two graphs and the seeds; says how well candidate edges are supported."""

    def __init__(self, task: AlignmentTask, seeds: IntArray, weight: float = 0.3, passes: int = 3) -> None:
        """`weight` is what one unit of support adds to a score; `passes` how often pairs and support are redone."""
        self._weight, self._passes, self._seeds = weight, passes, seeds
        self._shape = (task.num_source_entities, task.num_target_entities)
        split = task.num_source_triples
        self._source = weigh_neighbors(task.triples[:split], task.num_source_entities, 0)
        self._target = weigh_neighbors(task.triples[split:], task.num_target_entities, task.num_source_entities)

    def add_to(self, graph: CandidateGraph, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores (e,) with support counted in, and the support itself (e,)."""
        support = np.zeros(len(graph), dtype=np.float32)
        supported = scores
        with progress("matched neighbours", self._passes, "passes") as work:
            for _ in range(self._passes if len(graph) else 0):
                support = self._support(graph, self._matched(graph, supported))
                supported = scores + np.float32(self._weight) * support
                work.advance()
        return supported, support

    def _matched(self, graph: CandidateGraph, scores: FloatArray) -> WeightedRows:
        """The counterparts of each source, by the seeds and by the edges both ends prefer, each as certain as it is."""
        edges, gap = preferred(graph, scores, alone=1.0)
        slope, offset = _CERTAINTY
        certainty = (1 / (1 + np.exp(-(slope * gap + offset)))).astype(np.float32)
        rows = np.concatenate([self._seeds[:, 0], graph.sources[edges]])
        columns = np.concatenate([self._seeds[:, 1], graph.targets[edges]]) - self._shape[0]
        weights = np.concatenate([np.ones(len(self._seeds), dtype=np.float32), certainty])
        matrix = sparse.csr_array((weights, (rows, columns)), shape=self._shape)
        return WeightedRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)

    def _support(self, graph: CandidateGraph, matched: WeightedRows) -> FloatArray:
        """The support of every edge (e,) by the matched pairs."""
        support = np.empty(len(graph), dtype=np.float32)
        marks, marked = np.zeros(self._shape[1], dtype=np.float32), np.empty(self._shape[1], dtype=np.int32)
        scratch = marks, marked, np.zeros(_SIEVE, dtype=np.bool_)
        near = self._source, matched, self._target
        _count_support(graph.sources, graph.targets, self._shape[0], *near, *scratch, _MOST, support)
        return support


@compiled
def _count_support(
    sources: IntArray,
    targets: IntArray,
    offset: int,
    near_source: WeightedRows,
    matched: WeightedRows,
    near_target: WeightedRows,
    marks: FloatArray,
    marked: IntArray,
    sieve: IntArray,
    most: float,
    support: FloatArray,
) -> None:
    """Fill in the support of edges (e,), those of one source standing together; ids of targets begin at `offset`.

    `marks` (num_targets,) says how strongly the neighbours of the source at hand speak for each target, `marked` for
    which they do, `sieve` which remainders these have.
    """
    # Single arrays: one taken out of a tuple is counted as in use each time, which costs more than the look at it.
    ptr, ids, weights = near_target.ptr, near_target.ids, near_target.weights
    edge = 0
    while edge < len(sources):
        source = sources[edge]
        num_marked = _mark(source, near_source, matched, marks, marked, sieve)
        while edge < len(sources) and sources[edge] == source:
            target = targets[edge] - offset
            begin, end = ptr[target], ptr[target + 1]
            if end - begin > _LONG and num_marked * _halvings(end - begin) < end - begin:
                support[edge] = _look_up_marks(marks, marked, num_marked, ids, weights, begin, end, most)
            else:
                support[edge] = _walk_row(marks, sieve, ids, weights, begin, end, most)
            edge += 1
        for index in range(num_marked):
            marks[marked[index]] = 0
            sieve[marked[index] & _SIEVE - 1] = False


@compiled
def _mark(
    source: int, near: WeightedRows, matched: WeightedRows, marks: FloatArray, marked: IntArray, sieve: IntArray
) -> int:
    """Mark the counterparts of a source's neighbours and list them; how many they are."""
    count = 0
    for index in range(near.ptr[source], near.ptr[source + 1]):
        neighbor = near.ids[index]
        for link in range(matched.ptr[neighbor], matched.ptr[neighbor + 1]):
            counterpart = matched.ids[link]
            if marks[counterpart] == 0:
                marked[count] = counterpart
                sieve[counterpart & _SIEVE - 1] = True
                count += 1
            marks[counterpart] += near.weights[index] * matched.weights[link]
    return count


@compiled
def _walk_row(
    marks: FloatArray, sieve: IntArray, ids: IntArray, weights: FloatArray, begin: int, end: int, most: float
) -> float:
    """The weights of a row times the marks of its ids, in sum, which ends at `most`."""
    total = 0.0
    for index in range(begin, end):
        if sieve[ids[index] & _SIEVE - 1]:
            total += marks[ids[index]] * weights[index]
            if total >= most:
                return most
    return total


@compiled
def _look_up_marks(
    marks: FloatArray,
    marked: IntArray,
    num_marked: int,
    ids: IntArray,
    weights: FloatArray,
    begin: int,
    end: int,
    most: float,
) -> float:
    """The same sum over the few marked, each looked up in the long row by halving it."""
    total = 0.0
    for number in range(num_marked):
        low, high = begin, end
        while low < high:
            middle = (low + high) >> 1
            if ids[middle] < marked[number]:
                low = middle + 1
            else:
                high = middle
        if low < end and ids[low] == marked[number]:
            total += marks[marked[number]] * weights[low]
            if total >= most:
                return most
    return total


@compiled
def _halvings(length: int) -> int:
    count = 0
    while length >> count > 0:
        count += 1
    return count
