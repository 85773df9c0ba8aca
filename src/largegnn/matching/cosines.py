"""The cosines of candidate pairs, by all processors, or by the workers of a cluster.

In: edges (e,), the vectors of all entities. Out: a cosine for each edge, -1 where an end has no vector.
The idea: vectors are compared a few thousand edges at a time, as they are copied for it. On a cluster each machine maps
the vectors from the run folder; those in memory alone stay here, as sending them takes longer than comparing them.
Cost: O(e d); memory for the vectors of a few thousand edges for each processor, and of a mapped file what is read of it
between two times that its pages are given back.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, FloatArray, IntArray
from largegnn.machine.mapped_file import file_behind, forget_pages
from largegnn.machine.pieces import by_all_processors, pieces
from largegnn.machine.worker_pool import by_all_workers, ranges_for, wider_pool

__all__ = ["cosine_piece", "edge_cosines"]

_PIECE = 1 << 12  # edges whose two vectors are copied at once
_WORTH_SHARING = 1_000_000  # edges: they take one core some seconds
_MAPPED_BYTES = 1 << 30  # of vectors that are read before the pages of their file are given back


def edge_cosines(graph: CandidateGraph, embeddings: EntityEmbeddings) -> FloatArray:
    """The cosine of every edge (e,), -1 where an end has no vector."""
    pool = wider_pool() if len(graph) >= _WORTH_SHARING else None
    if pool is not None and file_behind(embeddings.vectors) is not None:
        ranges = [(_PIECE * first, _PIECE * last) for first, last in ranges_for(pool, -(-len(graph) // _PIECE))]
        ends = [(graph.sources[first:last], graph.targets[first:last]) for first, last in ranges]
        return np.concatenate(by_all_workers(pool, cosine_piece, ends, pool.share(embeddings)))
    found = np.empty(len(graph), dtype=np.float32)

    row_bytes = max(1, embeddings.vectors.itemsize * embeddings.vectors.shape[1])
    for start, stop in pieces(len(graph), max(_PIECE, _MAPPED_BYTES // (2 * row_bytes))):

        def compare(first: int, last: int, start: int = start) -> None:
            here = slice(start + first, start + last)
            found[here] = _compared(graph.sources[here], graph.targets[here], embeddings)

        by_all_processors(compare, stop - start, _PIECE)
        forget_pages(embeddings.vectors)
    return found


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
