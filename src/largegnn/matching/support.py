"""Count neighbourhood support: how many neighbours of the two ends of a candidate pair are counterparts themselves.

In: the triples, the seeds, candidate edges with scores. Out: a support for each edge, and scores that count it in.
The idea: if s and t are the same, their neighbours are too. A neighbour pair (a, b) that is a seed, or likely by a
transport over all candidates (`partial_plan`), supports (s, t) by its own certainty, by how likely the relation from s
to a means the same as the one from t to b (`relations`), and by how much these narrow s and t down (`neighbor_rows`).
The embeddings contain this only in sum; the single facts separate near-equal candidates, and a person can check them.
With support the pairs found likely improve, and so do the relations learnt from them, so it is repeated a few times.
The counterparts of a source's neighbours are marked once, and each of its candidates t finds its own neighbours among
them; or they are searched for among those of t where that is less work, as with a hub.
Cost: the smaller of the two neighbourhoods for each edge, and its logarithm; memory linear in edges and triples.

# Departs: not in the paper, which decides by the embeddings alone. Akin to PARIS (Suchanek et al., 2011), with local
#     functionality and a likelihood of relations in place of its subsumption.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, map_pieces, piece_size, pieces
from largegnn.machine.progress import progress
from largegnn.matching.edge_transport import partial_plan
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, lower_bound, worth_sending
from largegnn.matching.relations import Counterparts, RelationCounts, count_relations, counterparts, likelihood
from largegnn.matching.rule_candidates import propose_pairs

__all__ = ["SupportFinder"]

_MOST = 2.0  # support beyond this adds nothing: a hub's many neighbours prove no more than a few good ones
_LEAST = 0.2  # certainty of a pair that supports its neighbours
_TEMPERATURE, _STEPS = 0.02, 10  # of the transport that gives the certainty of pairs
_LONG = 32  # a row that may be worth halving
# Most neighbours of a candidate are not marked. A table this small stays in the nearest cache.
_SIEVE = 1 << 12


class _Marks(NamedTuple):
    """The targets that the neighbours of the current source support.

    `head` (num_targets,) is 1 + the first entry of each target, `following` that of the next one, 0 for none. An entry
    has a way from the source and a strength. `marked` lists the targets that have any; `sieve` has their remainders.
    """

    head: IntArray
    following: IntArray
    ways: IntArray
    strengths: npt.NDArray[np.float32]
    marked: IntArray
    sieve: npt.NDArray[np.bool_]


class SupportFinder:
    """Counts the support of candidate edges, given the two graphs and the seeds."""

    def __init__(self, task: AlignmentTask, seeds: IntArray, weight: float = 0.6) -> None:
        """`weight` is what one unit of support adds to a score."""
        self._task, self._weight, self._seeds = task, weight, seeds
        self._near = both_neighbor_rows(task)
        self._counted: tuple[Counterparts, RelationCounts] | None = None

    def add_to(
        self, graph: CandidateGraph, scores: FloatArray, passes: int = 3, matched: Counterparts | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Scores (e,) with support counted in, and the support itself (e,).

        Pairs and support are computed `passes` times, the first time by `matched` if given.
        """
        support: FloatArray | None = None
        supported = scores
        with progress("matched neighbours", passes, "passes") as work:
            for _ in range(passes if len(graph) else 0):
                support = None  # that of the last pass is in `supported`: not held during a transport
                matched = self.matched(graph, supported) if matched is None else matched
                support = self._support(graph, matched)
                supported = np.float32(self._weight) * support
                supported += scores
                matched = None
                work.advance()
        return supported, np.zeros(len(graph), dtype=np.float32) if support is None else support

    def matched(self, graph: CandidateGraph, scores: FloatArray) -> Counterparts:
        """The counterparts of each source, by the seeds and by a transport over the edges, with certainty."""
        plan = partial_plan(graph, scores, 2 * _TEMPERATURE, _STEPS)  # twice: a CSLS counts a cosine twice
        by_all_processors(lambda a, b: np.exp(plan[a:b], out=plan[a:b]), len(plan), piece_size(len(plan)))
        edges = np.flatnonzero(plan >= _LEAST)
        pairs = np.concatenate([self._seeds, graph.pairs(edges)])
        return counterparts(self._task, pairs, np.concatenate([np.ones(len(self._seeds), np.float32), plan[edges]]))

    def propose(self, matched: Counterparts, allowed: Mask, number: int) -> IntArray:
        """Pairs (p, 2) next to matched pairs, the `number` best supported of each source among the `allowed` (n,)."""
        counts = self._relations(matched)
        return propose_pairs(self._task, self._near[0], matched, counts, allowed, number)

    def _support(self, graph: CandidateGraph, matched: Counterparts) -> FloatArray:
        """The support of every edge (e,) by the matched pairs."""
        counts = self._relations(matched)
        most = _most_marks(self._near[0].ptr, self._near[0].ids, matched.ptr)
        send, num_source = worth_sending(self._task), self._task.num_source_entities
        # The edges of one source stay together: a piece begins and ends where a source does.
        cuts = list(pieces(num_source, piece_size(num_source, send)))
        parts = [slice(*np.searchsorted(graph.sources, sources).tolist()) for sources in cuts]
        ends = ((graph.sources[part], graph.targets[part]) for part in parts)
        found = map_pieces(support_piece, ends, *self._near, matched, counts, most, send=send)
        support = np.empty(len(graph), dtype=np.float32)
        for part, values in zip(parts, found, strict=True):
            support[part] = values
        return support

    def _relations(self, matched: Counterparts) -> RelationCounts:
        """How often relations join the matched pairs; counted once for the same pairs."""
        if self._counted is None or self._counted[0] is not matched:
            self._counted = (matched, count_relations(self._task, *self._near, matched))
        return self._counted[1]


def support_piece(
    sources: IntArray,
    targets: IntArray,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    most_marks: int,
) -> FloatArray:
    """The support of some edges (e,), all those of their sources; the neighbours of no source make more marks."""
    support = np.empty(len(sources), dtype=np.float32)
    if not len(support):
        return support
    num_targets = len(near_target.ptr) - 1
    marks = _Marks(
        np.zeros(num_targets, dtype=np.int32),
        np.empty(most_marks, dtype=np.int32),
        np.empty(most_marks, dtype=np.int32),
        np.empty(most_marks, dtype=np.float32),
        np.empty(min(most_marks, num_targets), dtype=np.int32),
        np.zeros(_SIEVE, dtype=np.bool_),
    )
    offset = len(near_source.ptr) - 1
    _count_support(sources, targets, offset, near_source, near_target, matched, counts, marks, _MOST, support)
    return support


@compiled
def _most_marks(ptr: IntArray, ids: IntArray, matched_ptr: IntArray) -> int:
    """The most entries that the neighbours of one source make."""
    most = 0
    for source in range(len(ptr) - 1):
        number = 0
        for index in range(ptr[source], ptr[source + 1]):
            number += matched_ptr[ids[index] + 1] - matched_ptr[ids[index]]
        most = max(most, number)
    return most


@compiled
def _count_support(
    sources: IntArray,
    targets: IntArray,
    offset: int,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    marks: _Marks,
    most: float,
    support: FloatArray,
) -> None:
    """Fill in the support of edges (e,), those of one source standing together; ids of targets begin at `offset`."""
    # Single arrays: one taken out of a tuple is counted as in use each time, which costs more than to read it.
    ptr, ids, head, sieve, marked = near_target.ptr, near_target.ids, marks.head, marks.sieve, marks.marked
    edge = 0
    while edge < len(sources):
        source = sources[edge]
        num_marked = _mark(source, near_source, matched, marks)
        while edge < len(sources) and sources[edge] == source:
            target = targets[edge] - offset
            index, end = ptr[target], ptr[target + 1]
            total = 0.0
            if not num_marked:
                pass
            elif end - index > _LONG and num_marked * _halvings(end - index) < end - index:
                # Few are marked and the row is long: each is searched for in it.
                for number in range(num_marked):
                    at = lower_bound(ids, index, end, marked[number])
                    if at < end and ids[at] == marked[number] and total < most:
                        total += _strongest(marks, near_target, at, end, counts)
            else:
                while index < end and total < most:
                    neighbor = ids[index]
                    if sieve[neighbor & _SIEVE - 1] and head[neighbor] > 0:
                        total += _strongest(marks, near_target, index, end, counts)
                        while index + 1 < end and ids[index + 1] == neighbor:
                            index += 1
                    index += 1
            support[edge] = min(total, most)
            edge += 1
        for number in range(num_marked):
            head[marked[number]] = 0
            sieve[marked[number] & _SIEVE - 1] = False


@compiled
def _mark(source: int, near: NeighborRows, matched: Counterparts, marks: _Marks) -> int:
    """Mark the counterparts of a source's neighbours and list them; how many they are."""
    num_marked, num_entries = 0, 0
    for index in range(near.ptr[source], near.ptr[source + 1]):
        neighbor = near.ids[index]
        for link in range(matched.ptr[neighbor], matched.ptr[neighbor + 1]):
            counterpart = matched.ids[link]
            if marks.head[counterpart] == 0:
                marks.marked[num_marked] = counterpart
                marks.sieve[counterpart & _SIEVE - 1] = True
                num_marked += 1
            marks.ways[num_entries] = near.ways[index]
            marks.strengths[num_entries] = near.weights[index] * matched.certainties[link]
            marks.following[num_entries] = marks.head[counterpart]
            num_entries += 1
            marks.head[counterpart] = num_entries
    return num_marked


@compiled
def _strongest(marks: _Marks, near: NeighborRows, index: int, end: int, counts: RelationCounts) -> float:
    """The support by the strongest two ways to the neighbour at `index` of a row, and to its counterpart."""
    ids, ways, weights, following = near.ids, near.ways, near.weights, marks.following
    mark_ways, strengths = marks.ways, marks.strengths
    neighbor, strongest = ids[index], 0.0
    head = marks.head[neighbor]
    while index < end and ids[index] == neighbor:
        entry = head
        while entry > 0:
            entry -= 1
            product = float(strengths[entry]) * float(weights[index])
            if product > strongest:
                strongest = max(strongest, product * likelihood(counts, mark_ways[entry], ways[index]))
            entry = following[entry]
        index += 1
    return strongest


@compiled
def _halvings(length: int) -> int:
    count = 0
    while length >> count > 0:
        count += 1
    return count
