"""Compute figures of candidate edges: cosines, CSLS, ranks at both ends, and margins over the best rival.

In: a `CandidateGraph` and scores of its edges, or the vectors and neighbours to compute scores from. Out: one number
for each edge.
The idea: all decisions are made from these edges alone, so that time and memory are linear in the entities. Edges are
grouped by their ends in passes that count instead of sorting; ranks are counted within the few edges of each entity, by
all processors. Vectors in a mapped file are read in windows.
Cost: O(edges), O(edges d) for cosines; 12 bytes for each edge, and about 20 more while its figures are computed.
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
_MAX_COUNTED_ROW = 200  # edges of an entity whose ranks are counted; more edges are sorted
_COSINE_CHUNK = 1 << 12  # edges whose vectors are copied at once
_WORTH_SENDING = 1_000_000  # edges from which work is sent to other machines: one core needs some seconds
_WINDOW_BYTES = 1 << 29  # of a mapped file that is read for either end of edges before its pages are released
_MAX_WINDOWS = 8  # for either end: the sources are read again for each window of the targets


def csls(graph: CandidateGraph, source_neighbors: Neighbors, target_neighbors: Neighbors, k: int = 10) -> FloatArray:
    """Compute CSLS of each edge: 2 cos(s, t) - r(s) - r(t), r the mean cosine to the k nearest of the other side."""
    if k < 1:
        raise ArtifactError(f"CSLS needs a neighbourhood of at least 1, not {k}")
    means: list[FloatArray] = []
    for neighbors, ends in ((source_neighbors, graph.sources), (target_neighbors, graph.targets)):
        # By entity; an entity that was no query has a mean of 0.
        entity_means = np.zeros(1 + max(ends.max(initial=-1), neighbors.queries.max(initial=-1)), dtype=np.float32)
        entity_means[neighbors.queries] = mean_nearest(neighbors, k)
        means.append(entity_means)
        forget_pages(neighbors.scores)
        forget_pages(neighbors.ids)
    cosines, scores = graph.column("cosine"), np.empty(len(graph), dtype=np.float32)
    by_all_processors(
        lambda first, last: _compute_csls(
            first, last, graph.sources, graph.targets, cosines, means[0], means[1], scores
        ),
        len(graph),
        _PIECE,
    )
    return scores


def mean_nearest(neighbors: Neighbors, k: int) -> FloatArray:
    """Compute the mean cosine of each query (q,) to its k nearest, or to all if fewer were found; 0 without any."""
    means = np.empty(len(neighbors.queries), dtype=np.float32)

    def average(first: int, last: int) -> None:
        nearest = neighbors.scores[first:last, :k].astype(np.float64)
        is_found = np.isfinite(nearest)
        nearest[~is_found] = 0.0
        means[first:last] = nearest.sum(axis=1) / np.maximum(is_found.sum(axis=1), 1)

    by_all_processors(average, len(means), _PIECE >> 4)
    return means


def edge_cosines(graph: CandidateGraph, embeddings: EntityEmbeddings) -> FloatArray:
    """Compute the cosine of every edge (e,), -1 if an end has no vector.

    Vectors in memory stay on this machine, since sending them takes longer than comparing them.
    """
    cosines = np.empty(len(graph), dtype=np.float32)
    is_mapped = file_behind(embeddings.vectors) is not None
    send = is_mapped and len(graph) >= _WORTH_SENDING
    for edges in _windows(graph, embeddings) if is_mapped else [None]:
        number = len(graph) if edges is None else len(edges)
        ranges = list(pieces(number, piece_size(number, send)))
        parts = [slice(*limits) if edges is None else edges[slice(*limits)] for limits in ranges]
        ends = ((graph.sources[part], graph.targets[part]) for part in parts)
        for part, values in zip(parts, map_pieces(cosine_piece, ends, embeddings, send=send), strict=True):
            cosines[part] = values
        forget_pages(embeddings.vectors)
    return cosines


def cosine_piece(sources: IntArray, targets: IntArray, embeddings: EntityEmbeddings) -> FloatArray:
    """Compute the cosines of some edges (e,), a few thousand at a time."""
    cosines = np.empty(len(sources), dtype=np.float32)
    for first, last in pieces(len(sources), _COSINE_CHUNK):
        ends = sources[first:last], targets[first:last]
        left, right = (embeddings.vectors[entities].astype(np.float64) for entities in ends)
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        is_known = (lengths > 0) & embeddings.covered[ends[0]] & embeddings.covered[ends[1]]
        products = np.einsum("ed,ed->e", left, right)
        cosines[first:last] = np.where(is_known, products / np.where(lengths > 0, lengths, 1.0), -1.0)
    return cosines


def _windows(graph: CandidateGraph, embeddings: EntityEmbeddings) -> Iterator[IntArray]:
    """Divide the edges into windows, in which sources and targets are each within a short range of the file.

    Reading a row of a mapped file also loads its surroundings: scattered rows would soon load the whole file.
    """
    row_bytes = max(1, embeddings.vectors.itemsize * embeddings.vectors.shape[1])
    for first, last in _ranges(graph.targets, row_bytes):
        edges = np.flatnonzero((graph.targets >= first) & (graph.targets < last))
        sources = graph.sources[edges]  # ascending, since edges are sorted by source
        ends = np.searchsorted(sources, [end for _, end in _ranges(sources, row_bytes)])
        yield from (part for part in np.split(edges, ends[:-1]) if len(part))


def _ranges(ids: IntArray, row_bytes: int) -> list[tuple[int, int]]:
    """Divide the range of ids into windows, for rows of `row_bytes` bytes; from first to last id, exclusive."""
    if not len(ids):
        return []
    lowest, number = int(ids.min()), int(ids.max()) - int(ids.min()) + 1
    size = max(1, _WINDOW_BYTES // row_bytes, -(-number // _MAX_WINDOWS))
    return [(lowest + first, lowest + last) for first, last in pieces(number, size)]


def edge_ranks(graph: CandidateGraph, scores: FloatArray, target_scores: FloatArray | None = None) -> EdgeRanks:
    """Rank each edge among the edges of its source and of its target, 1 = highest; equal scores rank by index.

    At the targets, edges are ranked by `target_scores` if given.
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
    next_places = target_ptr[:-1].copy()
    by_all_processors(
        lambda begin, end: _list_edges(begin, end, graph.targets, first, next_places, edges),
        num_targets,
        max(1, -(-num_targets // num_processors())),  # few pieces, since each reads all targets
    )
    ranks = np.empty(len(graph), dtype=np.int32)  # in the order of targets
    _rank_rows(target_ptr, target_scores[edges], ranks)
    by_target = np.empty(len(graph), dtype=np.int32)
    by_target[edges] = ranks
    return EdgeRanks(by_source, by_target)


def _row_ptr(ends: IntArray) -> IntArray:
    """Compute where the edges of each distinct end begin in ascending `ends` (e,), and where the last of them end."""
    begins = np.flatnonzero(np.diff(ends, prepend=-1))
    return np.concatenate([begins, [len(ends)]])


def _rank_rows(ptr: IntArray, scores: FloatArray, ranks: IntArray) -> None:
    """Rank each score (e,) within its row, 1 = highest; equal scores rank by index."""

    def rank(first: int, last: int) -> None:
        _count_higher(first, last, ptr, scores, _MAX_COUNTED_ROW, ranks)
        for row in first + np.flatnonzero(np.diff(ptr[first : last + 1]) > _MAX_COUNTED_ROW):
            begin, end = ptr[row], ptr[row + 1]
            ranks[begin:end][np.argsort(-scores[begin:end], kind="stable")] = np.arange(1, 1 + end - begin)

    by_all_processors(rank, len(ptr) - 1, piece_size(len(ptr) - 1))


def margins(ends: IntArray, scores: FloatArray, alone: float, edges: IntArray | None = None) -> FloatArray:
    """Compute how far the score of each edge is above its best rival at this end; `alone` if it has no rival.

    The margins are those of all edges (e,), or of the given `edges` (m,).
    """
    return _gaps(_two_best(ends, scores), ends, scores, alone, np.arange(len(ends)) if edges is None else edges)


def preferred(graph: CandidateGraph, scores: FloatArray, alone: float) -> tuple[IntArray, FloatArray]:
    """Find the edges that are best at both ends, ascending, and the smaller of their two margins (see `margins`)."""
    at_source, at_target = _two_best(graph.sources, scores), _two_best(graph.targets, scores)
    edges = at_source[0][at_source[0] >= 0]
    edges = edges[at_target[0][graph.targets[edges]] == edges]
    gaps = [
        _gaps(two_best, ends, scores, alone, edges)
        for two_best, ends in ((at_source, graph.sources), (at_target, graph.targets))
    ]
    return edges, np.minimum(*gaps)


def _two_best(ends: IntArray, scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Find the best edge of each entity (-1 for none, the first if equal) and the next best score (NaN for none)."""
    ends = frozen(ends, np.int32, (None,), "ends")
    num_entities = int(ends.max(initial=-1)) + 1
    first = np.full(num_entities, -1, dtype=np.int64)
    second = np.full(num_entities, np.nan, dtype=np.float32)
    _find_two_best(ends, frozen(scores, np.float32, (len(ends),), "scores"), first, second)
    return first, second


def _gaps(
    two_best: tuple[IntArray, FloatArray], ends: IntArray, scores: FloatArray, alone: float, edges: IntArray
) -> FloatArray:
    first, second = two_best
    entities = ends[edges]
    best_rivals = np.where(first[entities] == edges, second[entities], scores[first[entities]])
    gaps: FloatArray = scores[edges] - best_rivals
    gaps[np.isnan(gaps)] = alone
    return gaps


@compiled
def _compute_csls(
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
def _list_edges(begin: int, end: int, ends: IntArray, first: int, next_places: IntArray, edges: IntArray) -> None:
    """List the edges of the ends from `begin` to `end`, ascending; `next_places` are their next free places."""
    for edge in range(len(ends)):
        row = ends[edge] - first
        if begin <= row < end:
            edges[next_places[row]] = edge
            next_places[row] += 1


@compiled
def _count_higher(first: int, last: int, ptr: IntArray, scores: FloatArray, max_length: int, ranks: IntArray) -> None:
    """Rank each score as 1 + the number of higher scores in its row; rows longer than `max_length` are skipped."""
    for row in range(first, last):
        begin, end = ptr[row], ptr[row + 1]
        if end - begin > max_length:
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
        elif not score <= second[end]:  # also true while the second is NaN
            second[end] = score
