"""Compute figures of candidate edges: cosines, CSLS, ranks at both ends, and margins over the best rival.

In: a `CandidateGraph` and scores of its edges, or the vectors and neighbours they come from. Out: one number an edge.
The idea: all decisions are made from these edges alone, so that cost and memory are linear in the entities however
large the graphs are. Edges are grouped by their ends in passes that count, not sort; ranks are counted within the few
edges of each entity, by all processors. Vectors in a mapped file are read window by window.
Cost: O(edges), O(edges d) for cosines; an edge takes 12 bytes, and some 20 more while its figures are computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from largegnn.artifacts import CandidateGraph, EdgeRanks, EntityEmbeddings, FloatArray, IntArray, Neighbors
from largegnn.artifacts.arrays import frozen
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.mapped_file import file_behind, forget_pages
from largegnn.machine.pieces import by_all_processors, map_pieces, piece_size, pieces
from largegnn.matching.rows import offsets

__all__ = [
    "csls",
    "edge_cosines",
    "edge_ranks",
    "margins",
    "mean_nearest",
    "preferred",
]

_PIECE = 1 << 20
_LONG_ROW = 200  # edges of an entity that are sorted, not counted
_COMPARED = 1 << 12  # edges whose two vectors are copied at once
_WORTH_SENDING = 1_000_000  # edges: their cosines take one core some seconds
_WINDOW_BYTES = 1 << 29  # of a file that is read at either end of edges before its pages are given back
_MOST_WINDOWS = 8  # at either end: each window of the targets reads the sources again


def csls(graph: CandidateGraph, source_neighbors: Neighbors, target_neighbors: Neighbors, k: int = 10) -> FloatArray:
    """CSLS of each edge: 2 cos(s, t) - r(s) - r(t), r the mean cosine to the k nearest of the other side."""
    if k < 1:
        raise ArtifactError(f"CSLS needs a neighbourhood of at least 1, not {k}")
    means: list[FloatArray] = []
    for found, ends in ((source_neighbors, graph.sources), (target_neighbors, graph.targets)):
        # By entity: those that were no query have no mean, and nothing is taken off for them.
        own = np.zeros(1 + max(ends.max(initial=-1), found.queries.max(initial=-1)), dtype=np.float32)
        own[found.queries] = mean_nearest(found, k)
        means.append(own)
        forget_pages(found.scores)
        forget_pages(found.ids)
    cosines, scores = graph.column("cosine"), np.empty(len(graph), dtype=np.float32)
    by_all_processors(
        lambda first, last: _localise(first, last, graph.sources, graph.targets, cosines, means[0], means[1], scores),
        len(graph),
        _PIECE,
    )
    return scores


def mean_nearest(found: Neighbors, k: int) -> FloatArray:
    """The mean cosine of each query (q,) to its k nearest, of fewer where fewer were found, 0 where none were."""
    means = np.empty(len(found.queries), dtype=np.float32)

    def average(first: int, last: int) -> None:
        near = found.scores[first:last, :k].astype(np.float64)
        there = np.isfinite(near)
        near[~there] = 0.0
        means[first:last] = near.sum(axis=1) / np.maximum(there.sum(axis=1), 1)

    by_all_processors(average, len(means), _PIECE >> 4)
    return means


def edge_cosines(graph: CandidateGraph, embeddings: EntityEmbeddings) -> FloatArray:
    """The cosine of every edge (e,), -1 where an end has no vector.

    Vectors in memory stay on this machine: to send them takes longer than to compare them.
    """
    found = np.empty(len(graph), dtype=np.float32)
    is_mapped = file_behind(embeddings.vectors) is not None
    send = is_mapped and len(graph) >= _WORTH_SENDING
    for edges in _windows(graph, embeddings) if is_mapped else [None]:
        number = len(graph) if edges is None else len(edges)
        cuts = list(pieces(number, piece_size(number, send)))
        parts = [slice(*cut) if edges is None else edges[slice(*cut)] for cut in cuts]
        ends = ((graph.sources[part], graph.targets[part]) for part in parts)
        for part, cosines in zip(parts, map_pieces(cosine_piece, ends, embeddings, send=send), strict=True):
            found[part] = cosines
        forget_pages(embeddings.vectors)
    return found


def cosine_piece(sources: IntArray, targets: IntArray, embeddings: EntityEmbeddings) -> FloatArray:
    """The cosines of some edges (e,), a few thousand at a time."""
    found = np.empty(len(sources), dtype=np.float32)
    for first, last in pieces(len(sources), _COMPARED):
        here, ends = slice(first, last), (sources[first:last], targets[first:last])
        left, right = (embeddings.vectors[entities].astype(np.float64) for entities in ends)
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        is_known = (lengths > 0) & embeddings.covered[ends[0]] & embeddings.covered[ends[1]]
        products = np.einsum("ed,ed->e", left, right)
        found[here] = np.where(is_known, products / np.where(lengths > 0, lengths, 1.0), -1.0)
    return found


def _windows(graph: CandidateGraph, embeddings: EntityEmbeddings) -> Iterator[IntArray]:
    """The edges whose sources lie near each other in a file, and whose targets do, one such window after the other.

    Reading a row of a mapped file brings in what lies around it: rows taken all over it would soon be the whole file.
    """
    row_bytes = max(1, embeddings.vectors.itemsize * embeddings.vectors.shape[1])
    for first, last in _ranges(graph.targets, row_bytes):
        edges = np.flatnonzero((graph.targets >= first) & (graph.targets < last))
        sources = graph.sources[edges]  # ascending, as edges are in order of them
        ends = np.searchsorted(sources, [end for _, end in _ranges(sources, row_bytes)])
        yield from (part for part in np.split(edges, ends[:-1]) if len(part))


def _ranges(ids: IntArray, row_bytes: int) -> list[tuple[int, int]]:
    """From which id to which each window goes, for rows of so many bytes."""
    if not len(ids):
        return []
    lowest, number = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    size = max(1, _WINDOW_BYTES // row_bytes, -(-number // _MOST_WINDOWS))
    return [(lowest + first, lowest + last) for first, last in pieces(number, size)]


def edge_ranks(graph: CandidateGraph, scores: FloatArray, target_scores: FloatArray | None = None) -> EdgeRanks:
    """The rank of each edge among those of its source, and among those of its target, 1 = highest, equal ones by index.

    At the targets `target_scores` count instead, if given.
    """
    scores = frozen(scores, np.float32, (len(graph),), "scores")
    target_scores = scores if target_scores is None else frozen(target_scores, np.float32, (len(graph),), "scores")
    if not len(graph):
        return EdgeRanks(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32))
    by_source = np.empty(len(graph), dtype=np.int32)
    source_ptr = _row_ptr(graph.sources)
    _rank_rows(source_ptr, scores, by_source)
    first = int(graph.targets.min())
    num_targets = int(graph.targets.max()) - first + 1
    target_ptr = offsets(graph.targets, num_targets, first)
    edges = np.empty(len(graph), dtype=np.int32 if len(graph) < 2**31 else np.int64)
    free = target_ptr[:-1].copy()
    by_all_processors(
        lambda begin, end: _list_edges(begin, end, graph.targets, first, free, edges),
        num_targets,
        max(1, -(-num_targets // num_processors())),  # all targets are read once for every piece
    )
    by_target, turned = np.empty(len(graph), dtype=np.int32), np.empty(len(graph), dtype=np.int32)
    _rank_rows(target_ptr, target_scores[edges], turned)
    by_target[edges] = turned
    return EdgeRanks(by_source, by_target)


def _row_ptr(ends: IntArray) -> IntArray:
    """Where the edges of each end begin in ends (e,) that ascend, of ends that have any, and where they stop."""
    begins = np.flatnonzero(np.diff(ends, prepend=-1))
    return np.concatenate([begins, [len(ends)]])


def _rank_rows(ptr: IntArray, scores: FloatArray, ranks: IntArray) -> None:
    """The rank of each score (e,) within its row, 1 = highest, equal ones by index."""

    def rank(first: int, last: int) -> None:
        _count_higher(first, last, ptr, scores, _LONG_ROW, ranks)
        for row in first + np.flatnonzero(np.diff(ptr[first : last + 1]) > _LONG_ROW):
            here = slice(ptr[row], ptr[row + 1])
            ranks[here][np.argsort(-scores[here], kind="stable")] = np.arange(1, 1 + here.stop - here.start)

    by_all_processors(rank, len(ptr) - 1, piece_size(len(ptr) - 1))


def margins(ends: IntArray, scores: FloatArray, alone: float, edges: IntArray | None = None) -> FloatArray:
    """How far each edge's score lies above its best rival's at this end; `alone` where there is no rival.

    Of all edges (e,), or of the `edges` (m,) asked for alone.
    """
    return _gaps(_leaders(ends, scores), ends, scores, alone, np.arange(len(ends)) if edges is None else edges)


def preferred(graph: CandidateGraph, scores: FloatArray, alone: float) -> tuple[IntArray, FloatArray]:
    """The edges that are best at both ends, ascending, and the smaller of their two margins (see `margins`)."""
    at_source, at_target = _leaders(graph.sources, scores), _leaders(graph.targets, scores)
    edges = at_source[0][at_source[0] >= 0]
    edges = edges[at_target[0][graph.targets[edges]] == edges]
    gaps = [
        _gaps(leaders, ends, scores, alone, edges)
        for leaders, ends in ((at_source, graph.sources), (at_target, graph.targets))
    ]
    return edges, np.minimum(*gaps)


def _leaders(ends: IntArray, scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """The best edge of each entity, the first of equal ones, -1 for none, and the next best score, NaN for none."""
    ends = frozen(ends, np.int32, (None,), "ends")
    num_entities = int(ends.max(initial=-1)) + 1
    first = np.full(num_entities, -1, dtype=np.int64)
    second = np.full(num_entities, np.nan, dtype=np.float32)
    _find_two_best(ends, frozen(scores, np.float32, (len(ends),), "scores"), first, second)
    return first, second


def _gaps(
    leaders: tuple[IntArray, FloatArray], ends: IntArray, scores: FloatArray, alone: float, edges: IntArray
) -> FloatArray:
    first, second = leaders
    here = ends[edges]
    gaps: FloatArray = scores[edges] - np.where(first[here] == edges, second[here], scores[first[here]])
    gaps[np.isnan(gaps)] = alone
    return gaps


@compiled
def _localise(
    first: int,
    last: int,
    sources: IntArray,
    targets: IntArray,
    cosines: FloatArray,
    source_means: FloatArray,
    target_means: FloatArray,
    scores: FloatArray,
) -> None:
    for edge in range(first, last):
        scores[edge] = np.float32(2) * cosines[edge] - source_means[sources[edge]] - target_means[targets[edge]]


@compiled
def _list_edges(begin: int, end: int, ends: IntArray, first: int, free: IntArray, edges: IntArray) -> None:
    """List the edges of the ends from `begin` to `end`, ascending."""
    for edge in range(len(ends)):
        own = ends[edge] - first
        if begin <= own < end:
            edges[free[own]] = edge
            free[own] += 1


@compiled
def _count_higher(first: int, last: int, ptr: IntArray, scores: FloatArray, most: int, ranks: IntArray) -> None:
    """One more than those above each score in its row, for the rows that are not long."""
    for row in range(first, last):
        begin, end = ptr[row], ptr[row + 1]
        if end - begin > most:
            continue
        for edge in range(begin, end):
            rank, score = 1, scores[edge]
            for other in range(begin, edge):
                rank += scores[other] >= score
            for other in range(edge + 1, end):
                rank += scores[other] > score
            ranks[edge] = rank


@compiled
def _find_two_best(ends: IntArray, scores: FloatArray, first: IntArray, second: FloatArray) -> None:
    for edge in range(len(ends)):
        end = ends[edge]
        score = scores[edge]
        if first[end] < 0:
            first[end] = edge
        elif score > scores[first[end]]:
            second[end] = scores[first[end]]
            first[end] = edge
        elif not score <= second[end]:  # also where there was no second yet
            second[end] = score
