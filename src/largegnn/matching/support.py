"""Count neighbourhood support: how many neighbours of the two ends of a candidate pair are counterparts themselves.

In: the triples, the seeds, candidate edges with scores. Out: a support for each edge, and scores that count it in.
The idea: if s and t are the same, their neighbours are too. A neighbour pair (a, b) that is a seed, or likely by a
transport over all candidates (`partial_plan`), supports (s, t) by its own certainty, by how likely the relation from s
to a means the same as the one from t to b (`relations`), and by how much these narrow s and t down (`neighbor_rows`).
The embeddings contain this only in sum; the single facts separate near-equal candidates, and a person can check them.
With support the pairs found likely improve, and so do the relations learnt from them, so it is repeated a few times.
The neighbours of each source are translated into their counterparts once; those of each of its candidates are compared
with them, both in ascending order.
Cost: the smaller of the two neighbourhoods for each edge, and its logarithm; memory linear in edges and triples.

# Departs: not in the paper, which decides by the embeddings alone. Akin to PARIS (Suchanek et al., 2011), with local
#     functionality and a likelihood of relations in place of its subsumption.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, map_pieces, piece_size, pieces
from largegnn.machine.progress import progress
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, worth_sending
from largegnn.matching.relations import (
    Counterparts,
    RelationCounts,
    count_relations,
    counterparts,
    likelihood,
)
from largegnn.matching.rows import entries_of, lower_bound, offsets
from largegnn.matching.rule_candidates import propose_pairs
from largegnn.matching.transport import partial_plan

__all__ = ["SupportFinder"]

_MOST = 2.0  # support beyond this adds nothing: a hub's many neighbours prove no more than a few good ones
_LEAST = 0.2  # certainty of a pair that supports its neighbours
_TEMPERATURE, _STEPS = 0.02, 10  # of the transport that gives the certainty of pairs


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
        send, num_source = worth_sending(self._task), self._task.num_source_entities
        # The edges of one source stay together: a piece begins and ends where a source does.
        cuts = list(pieces(num_source, piece_size(num_source, send)))
        parts = [slice(*np.searchsorted(graph.sources, sources).tolist()) for sources in cuts]
        ends = ((*cut, graph.sources[part], graph.targets[part]) for cut, part in zip(cuts, parts, strict=True))
        found = map_pieces(support_piece, ends, *self._near, matched, counts, send=send)
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
    first: int,
    last: int,
    sources: IntArray,
    targets: IntArray,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
) -> FloatArray:
    """The support of the edges (e,) of the sources from `first` to `last`."""
    support = np.empty(len(sources), dtype=np.float32)
    if len(support):
        translated = _translated(near_source, matched, first, last)
        targets = targets - np.int32(len(near_source.ptr) - 1)
        _count_support(sources - np.int32(first), targets, translated, near_target, counts, _MOST, support)
    return support


def _translated(near: NeighborRows, matched: Counterparts, first: int, last: int) -> NeighborRows:
    """For the sources from `first` to `last` the counterparts of their neighbours, weighted by their certainty too."""
    begin = near.ptr[first]
    here = slice(begin, near.ptr[last])
    ids = near.ids[here]
    steps, links = entries_of(matched.ptr[ids], matched.ptr[ids + 1])
    sources = np.repeat(np.arange(last - first), np.diff(near.ptr[first : last + 1]))[steps]
    order = np.lexsort((matched.ids[links], sources))
    steps, links = steps[order], links[order]
    weights = near.weights[here][steps] * matched.certainties[links]
    return NeighborRows(offsets(sources, last - first), matched.ids[links], near.ways[here][steps], weights)


@compiled
def _count_support(
    sources: IntArray,
    targets: IntArray,
    near_source: NeighborRows,
    near_target: NeighborRows,
    counts: RelationCounts,
    most: float,
    support: FloatArray,
) -> None:
    """Fill in the support of edges (e,): both rows are ascending, and each catches up with the other in turn."""
    # Single arrays: one taken out of a tuple is counted as in use each time, which costs more than to read it.
    source_ids, target_ids = near_source.ids, near_target.ids
    source_ptr, target_ptr = near_source.ptr, near_target.ptr
    for edge in range(len(sources)):
        one, one_end = source_ptr[sources[edge]], source_ptr[sources[edge] + 1]
        other, other_end = target_ptr[targets[edge]], target_ptr[targets[edge] + 1]
        total = 0.0
        while one < one_end and other < other_end and total < most:
            wanted = source_ids[one]
            if target_ids[other] < wanted:
                other = lower_bound(target_ids, other + 1, other_end, wanted)
            elif target_ids[other] > wanted:
                one = lower_bound(source_ids, one + 1, one_end, target_ids[other])
            else:
                next_one, next_other = one + 1, other + 1
                while next_one < one_end and source_ids[next_one] == wanted:
                    next_one += 1
                while next_other < other_end and target_ids[next_other] == wanted:
                    next_other += 1
                total += _strongest(near_source, one, next_one, near_target, other, next_other, counts)
                one, other = next_one, next_other
        support[edge] = min(total, most)


@compiled
def _strongest(
    near_source: NeighborRows,
    one: int,
    one_end: int,
    near_target: NeighborRows,
    other: int,
    other_end: int,
    counts: RelationCounts,
) -> float:
    """The support by the strongest two ways that meet: entries from `one` and from `other` on."""
    strongest = 0.0
    for index in range(one, one_end):
        for place in range(other, other_end):
            product = float(near_source.weights[index]) * float(near_target.weights[place])
            if product > strongest:
                likely = likelihood(counts, near_source.ways[index], near_target.ways[place])
                strongest = max(strongest, product * likely)
    return strongest
