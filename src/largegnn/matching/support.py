"""Count neighbourhood support: how many neighbours of the two ends of a candidate pair are counterparts of each other.

In: the triples, the seeds, candidate edges with scores. Out: the support of each edge, and scores that include it.
The idea: if s and t are the same, their neighbours are too. A neighbour pair (a, b) that is a seed, or likely by a
transport over all candidates (`partial_plan`), supports (s, t) by its certainty, by the likelihood that the relation
from s to a is aligned with that from t to b (`relations`), and by how specific both are (`neighbor_rows`). Embeddings
only hold the sum of this; single facts separate similar candidates, and a person can check them. Better pairs give
better aligned relations, so the count is repeated. Cost: per edge the smaller neighbourhood, and its logarithm.

# Departs: not in the paper, which decides by the embeddings alone. Akin to PARIS (Suchanek et al., 2011), with local
#     functionality and a likelihood of relations in place of its subsumption.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, map_pieces, piece_size, pieces
from largegnn.machine.progress import progress
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, should_distribute
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

_MAX_SUPPORT = 2.0  # more support adds nothing: the many neighbours of a hub prove no more than a few good ones
_MIN_CERTAINTY = 0.2  # minimum certainty of a pair that supports its neighbours
_TEMPERATURE, _ITERATIONS = 0.02, 10  # of the transport that gives the certainty of pairs


class SupportFinder:
    """Counts the support of candidate edges, given the two graphs and the seeds."""

    def __init__(self, task: AlignmentTask, seeds: IntArray, weight: float = 0.6) -> None:
        """`weight` is what one unit of support adds to a score."""
        self._task, self._weight, self._seeds = task, weight, seeds
        self._near = both_neighbor_rows(task)
        self._last_counts: tuple[Counterparts, RelationCounts] | None = None

    def add_to(
        self, graph: CandidateGraph, scores: FloatArray, passes: int = 3, matched: Counterparts | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute scores (e,) that include the support, and the support (e,).

        Matched pairs and support are computed `passes` times; in the first pass `matched` is used if given.
        """
        support: FloatArray | None = None
        supported = scores
        with progress("matched neighbours", passes, "passes") as work:
            for _ in range(passes if len(graph) else 0):
                support = None  # released before the transport: the support of the last pass is in `supported`
                matched = self.matched(graph, supported) if matched is None else matched
                support = self._support(graph, matched)
                supported = np.float32(self._weight) * support
                supported += scores
                matched = None
                work.advance()
        return supported, np.zeros(len(graph), dtype=np.float32) if support is None else support

    def matched(self, graph: CandidateGraph, scores: FloatArray) -> Counterparts:
        """Find the counterparts of each source, by the seeds and a transport over the edges, with their certainty."""
        plan = partial_plan(graph, scores, 2 * _TEMPERATURE, _ITERATIONS)  # doubled, since a CSLS counts a cosine twice
        size = piece_size(len(plan))
        by_all_processors(lambda first, last: np.exp(plan[first:last], out=plan[first:last]), len(plan), size)
        edges = np.flatnonzero(plan >= _MIN_CERTAINTY)
        pairs = np.concatenate([self._seeds, graph.pairs(edges)])
        return counterparts(self._task, pairs, np.concatenate([np.ones(len(self._seeds), np.float32), plan[edges]]))

    def propose(self, matched: Counterparts, allowed: Mask, number: int) -> IntArray:
        """Propose pairs (p, 2) next to matched pairs: for each source, the `number` targets with the most support.

        Both ends are `allowed` (n,) entities.
        """
        counts = self._relations(matched)
        return propose_pairs(self._task, self._near[0], matched, counts, allowed, number)

    def _support(self, graph: CandidateGraph, matched: Counterparts) -> FloatArray:
        """Compute the support of every edge (e,) by the matched pairs."""
        counts = self._relations(matched)
        send, num_source = should_distribute(self._task), self._task.num_source_entities
        # The edges of a source are in one piece.
        ranges = list(pieces(num_source, piece_size(num_source, send)))
        parts = [slice(*np.searchsorted(graph.sources, sources).tolist()) for sources in ranges]
        edge_pieces = (
            (first, last, graph.sources[part], graph.targets[part])
            for (first, last), part in zip(ranges, parts, strict=True)
        )
        computed = map_pieces(support_piece, edge_pieces, *self._near, matched, counts, send=send)
        support = np.empty(len(graph), dtype=np.float32)
        for part, values in zip(parts, computed, strict=True):
            support[part] = values
        return support

    def _relations(self, matched: Counterparts) -> RelationCounts:
        """Count how often relations join the matched pairs; the counts of the last pairs are kept."""
        if self._last_counts is None or self._last_counts[0] is not matched:
            self._last_counts = (matched, count_relations(self._task, *self._near, matched))
        return self._last_counts[1]


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
    """Compute the support of the edges (e,) of the sources from `first` to `last`."""
    support = np.empty(len(sources), dtype=np.float32)
    if len(support):
        translated = _translated(near_source, matched, first, last)
        targets = targets - np.int32(len(near_source.ptr) - 1)
        _count_support(sources - np.int32(first), targets, translated, near_target, counts, _MAX_SUPPORT, support)
    return support


def _translated(near: NeighborRows, matched: Counterparts, first: int, last: int) -> NeighborRows:
    """List the counterparts of the neighbours of the sources from `first` to `last`, weighted by certainty, too."""
    begin = near.ptr[first]
    inside = slice(begin, near.ptr[last])
    ids = near.ids[inside]
    steps, links = entries_of(matched.ptr[ids], matched.ptr[ids + 1])
    sources = np.repeat(np.arange(last - first), np.diff(near.ptr[first : last + 1]))[steps]
    order = np.lexsort((matched.ids[links], sources))
    steps, links = steps[order], links[order]
    weights = near.weights[inside][steps] * matched.certainties[links]
    relations = near.directed_relations[inside][steps]
    return NeighborRows(offsets(sources, last - first), matched.ids[links], relations, weights)


@compiled
def _count_support(
    sources: IntArray,
    targets: IntArray,
    near_source: NeighborRows,
    near_target: NeighborRows,
    counts: RelationCounts,
    max_support: float,
    support: FloatArray,
) -> None:
    """Fill in the support of edges (e,) by merging the two ascending rows of each edge."""
    # Local arrays: numba counts a reference whenever an array is taken out of a tuple, which costs more than the read.
    source_ids, target_ids = near_source.ids, near_target.ids
    source_ptr, target_ptr = near_source.ptr, near_target.ptr
    for edge in range(len(sources)):
        source_entry, source_end = source_ptr[sources[edge]], source_ptr[sources[edge] + 1]
        target_entry, target_end = target_ptr[targets[edge]], target_ptr[targets[edge] + 1]
        total = 0.0
        while source_entry < source_end and target_entry < target_end and total < max_support:
            wanted = source_ids[source_entry]
            if target_ids[target_entry] < wanted:
                target_entry = lower_bound(target_ids, target_entry + 1, target_end, wanted)
            elif target_ids[target_entry] > wanted:
                source_entry = lower_bound(source_ids, source_entry + 1, source_end, target_ids[target_entry])
            else:
                source_next, target_next = source_entry + 1, target_entry + 1
                while source_next < source_end and source_ids[source_next] == wanted:
                    source_next += 1
                while target_next < target_end and target_ids[target_next] == wanted:
                    target_next += 1
                total += _strongest(
                    near_source, source_entry, source_next, near_target, target_entry, target_next, counts
                )
                source_entry, target_entry = source_next, target_next
        support[edge] = min(total, max_support)


@compiled
def _strongest(
    near_source: NeighborRows,
    source_entry: int,
    source_end: int,
    near_target: NeighborRows,
    target_entry: int,
    target_end: int,
    counts: RelationCounts,
) -> float:
    """Compute the largest support by two entries with the same neighbour, in the given ranges of both rows."""
    strongest = 0.0
    for i in range(source_entry, source_end):
        for j in range(target_entry, target_end):
            product = float(near_source.weights[i]) * float(near_target.weights[j])
            if product > strongest:
                likely = likelihood(counts, near_source.directed_relations[i], near_target.directed_relations[j])
                strongest = max(strongest, product * likely)
    return strongest
