"""The cosines of candidate pairs, by all processors, or by the workers of a cluster.

In: edges (e,), the vectors of all entities. Out: a cosine for each edge, -1 where an end has no vector.
The idea: vectors are compared a few thousand edges at a time, as they are copied for it. On a cluster each machine maps
the vectors from the run folder; those in memory alone stay here, as sending them takes longer than comparing them.
Cost: O(e d); memory for the vectors of a few thousand edges for each processor, and of a mapped file one window of the
sources' vectors and one of the targets', half a GB or an eighth of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, FloatArray, IntArray
from largegnn.machine.mapped_file import file_behind, forget_pages
from largegnn.machine.pieces import by_all_processors, pieces
from largegnn.machine.worker_pool import by_all_workers, ranges_for, wider_pool

__all__ = ["cosine_piece", "edge_cosines"]

_PIECE = 1 << 12  # edges whose two vectors are copied at once
_WORTH_SHARING = 1_000_000  # edges: they take one core some seconds
_WINDOW_BYTES = 1 << 29  # of a file that is read at either end of edges before its pages are given back
_MOST_WINDOWS = 8  # at either end: each window of the targets reads the sources again


def edge_cosines(graph: CandidateGraph, embeddings: EntityEmbeddings) -> FloatArray:
    """The cosine of every edge (e,), -1 where an end has no vector."""
    pool = wider_pool() if len(graph) >= _WORTH_SHARING else None
    if pool is not None and file_behind(embeddings.vectors) is not None:
        ranges = [(_PIECE * first, _PIECE * last) for first, last in ranges_for(pool, -(-len(graph) // _PIECE))]
        ends = [(graph.sources[first:last], graph.targets[first:last]) for first, last in ranges]
        return np.concatenate(by_all_workers(pool, cosine_piece, ends, pool.share(embeddings)))
    found = np.empty(len(graph), dtype=np.float32)

    def compare(edges: IntArray | range) -> None:
        def fill(first: int, last: int) -> None:
            some = slice(first, last) if isinstance(edges, range) else edges[first:last]
            found[some] = _compared(graph.sources[some], graph.targets[some], embeddings)

        by_all_processors(fill, len(edges), _PIECE)

    if file_behind(embeddings.vectors) is None:
        compare(range(len(graph)))
        return found
    row_bytes = max(1, embeddings.vectors.itemsize * embeddings.vectors.shape[1])
    for edges in _windows(graph, row_bytes):
        compare(edges)
        forget_pages(embeddings.vectors)
    return found


def _windows(graph: CandidateGraph, row_bytes: int) -> Iterator[IntArray]:
    """The edges whose sources lie near each other in a file, and whose targets do, one such window after the other.

    Reading a row of a mapped file brings in what lies around it: rows taken all over it would soon be the whole file.
    """
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


def cosine_piece(sources: IntArray, targets: IntArray, embeddings: EntityEmbeddings) -> FloatArray:
    """The cosines of some edges (e,), as one processor makes them."""
    parts = [
        _compared(sources[first:last], targets[first:last], embeddings) for first, last in pieces(len(sources), _PIECE)
    ]
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _compared(sources: IntArray, targets: IntArray, embeddings: EntityEmbeddings) -> FloatArray:
    left, right = (embeddings.vectors[ends].astype(np.float64) for ends in (sources, targets))
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    there = (lengths > 0) & embeddings.covered[sources] & embeddings.covered[targets]
    products = np.einsum("ed,ed->e", left, right)
    found: FloatArray = np.where(there, products / np.where(lengths > 0, lengths, 1.0), -1.0).astype(np.float32)
    return found
