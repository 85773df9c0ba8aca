"""Neighbourhood support: how many neighbours of the two ends of a candidate pair are themselves counterparts.

In: the triples, the seeds, candidate edges with scores. Out: a support for each edge, and scores that count it in.
The idea: if s and t are the same, their neighbours are too. A neighbour pair (a, b) that is a seed, or a pair both
sides prefer, speaks for (s, t) by its own certainty times how much it narrows things down: an edge from a to s by a
relation with which a reaches m entities tells s from m - 1 others, hence m ** -1/4 on either side. The embeddings know
this only in sum; the single facts tell near-equal candidates apart, and they are what a person can check.
The pairs preferred after counting support are better than before, so it is done a few times over.
Cost: a sparse product over the neighbours of matched entities and a row product per edge; linear in edges times degree.

# Departs: not in the paper, which decides by the embeddings alone. Akin to PARIS (Suchanek et al., 2011), without its
#     fixpoint over relations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.matching.candidates import CandidateGraph, FloatArray, margins, ranks

__all__ = ["SUPPORT_PER_SCORE", "SupportFinder"]

# What support worth one cosine adds in each scoring: CSLS counts the cosine twice, transport works on cosines.
SUPPORT_PER_SCORE = {"cosine": 1.0, "csls": 2.0, "transport": 1.0}

_Matrix = Any  # scipy's sparse arrays are typed too loosely to name them
_DISCOUNT = 0.25
_MOST = 2.0  # support beyond this adds nothing: a hub's many neighbours prove no more than a few good ones
_CERTAINTY = (12.0, -1.0)  # slope and offset from a pair's margin to the certainty it lends its neighbours
_CHUNK_EDGES = 1 << 18


class SupportFinder:
    """Knows the two graphs and the seeds; says how well candidate edges are supported."""

    def __init__(self, task: AlignmentTask, seeds: IntArray, weight: float = 0.3, passes: int = 3) -> None:
        """`weight` is what one unit of support adds to a score; `passes` how often pairs and support are redone."""
        self._weight, self._passes, self._seeds = weight, passes, seeds
        self._shape = (task.num_source_entities, task.num_target_entities)
        split = task.num_source_triples
        self._source = _weighted_neighbors(task.triples[:split], task.num_source_entities, 0)
        self._target = _weighted_neighbors(task.triples[split:], task.num_target_entities, task.num_source_entities)

    def add_to(self, graph: CandidateGraph, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores (e,) with support counted in, and the support itself (e,)."""
        support = np.zeros(len(graph), dtype=np.float32)
        supported = scores
        for _ in range(self._passes if len(graph) else 0):
            support = self._support(graph, *_preferred(graph, supported))
            supported = scores + np.float32(self._weight) * support
        return supported, support

    def neighbors(self, source: int, target: int, matched: IntArray) -> IntArray:
        """The pairs of `matched` (m, 2) that are neighbours of the two ends, strongest first, (n, 2)."""
        offset = self._shape[0]
        near_source = dict(zip(*_row(self._source, source), strict=True))
        near_target = dict(zip(*_row(self._target, target - offset), strict=True))
        speaking = [
            (near_source[int(a)] * near_target[int(b) - offset], int(a), int(b))
            for a, b in matched
            if int(a) in near_source and int(b) - offset in near_target
        ]
        ordered = sorted(speaking, key=lambda found: (-found[0], found[1:]))
        return np.array([pair[1:] for pair in ordered], dtype=np.int32).reshape(-1, 2)

    def _support(self, graph: CandidateGraph, edges: IntArray, certainty: FloatArray) -> FloatArray:
        """Support of every edge by the seeds and by the preferred `edges`, each as certain as said."""
        offset = self._shape[0]
        rows = np.concatenate([self._seeds[:, 0], graph.sources[edges]])
        columns = np.concatenate([self._seeds[:, 1], graph.targets[edges]]) - offset
        weights = np.concatenate([np.ones(len(self._seeds), dtype=np.float32), certainty])
        matched = sparse.csr_array((weights, (rows, columns)), shape=self._shape)
        reached = (self._source @ matched).tocsr()  # the counterparts of each source's neighbours
        result = np.empty(len(graph), dtype=np.float32)
        for start in range(0, len(graph), _CHUNK_EDGES):
            sources = graph.sources[start : start + _CHUNK_EDGES]
            targets = graph.targets[start : start + _CHUNK_EDGES] - offset
            together = reached[sources].multiply(self._target[targets])
            result[start : start + _CHUNK_EDGES] = np.asarray(together.sum(axis=1)).ravel()
        return np.minimum(result, np.float32(_MOST))


def _preferred(graph: CandidateGraph, scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """The edges that are best at both ends, and how certain their margins make them."""
    best = np.flatnonzero((ranks(graph.sources, scores) == 1) & (ranks(graph.targets, scores) == 1))
    gap = np.minimum(margins(graph.sources, scores, 1.0)[best], margins(graph.targets, scores, 1.0)[best])
    slope, offset = _CERTAINTY
    return best, (1 / (1 + np.exp(-(slope * gap + offset)))).astype(np.float32)


def _weighted_neighbors(triples: IntArray, num_entities: int, offset: int) -> _Matrix:
    """Each entity's neighbours, weighted by how much they narrow things down, the strongest relation counting."""
    heads, relations, tails = triples[:, 0] - offset, triples[:, 1].astype(np.int64), triples[:, 2] - offset
    entities = np.concatenate([heads, tails]).astype(np.int64)
    neighbors = np.concatenate([tails, heads]).astype(np.int64)
    reach = np.concatenate([_sharing(tails, relations), _sharing(heads, relations)])
    keys = entities * num_entities + neighbors
    order = np.lexsort((reach, keys))
    order = order[np.diff(keys[order], prepend=-1) != 0]
    order = order[entities[order] != neighbors[order]]
    weights = (reach[order] ** -_DISCOUNT).astype(np.float32)
    return sparse.csr_array((weights, (entities[order], neighbors[order])), shape=(num_entities, num_entities))


def _sharing(ends: IntArray, relations: IntArray) -> npt.NDArray[np.float64]:
    """For each triple, how many have the same end and relation."""
    keys = ends.astype(np.int64) << 32 | relations
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1) != 0)
    lengths = np.diff(starts, append=len(order))
    result = np.empty(len(order), dtype=np.float64)
    result[order] = np.repeat(lengths, lengths)
    return result


def _row(matrix: _Matrix, index: int) -> tuple[list[int], list[float]]:
    begin, end = matrix.indptr[index], matrix.indptr[index + 1]
    return matrix.indices[begin:end].tolist(), matrix.data[begin:end].tolist()
