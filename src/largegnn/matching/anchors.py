"""Find pairs to start from without seeds: each other's clear best by names and values, without contradiction.

In: candidate edges with the columns `literal`, `agreement` and `contradiction`. Out: pairs, the most confident first.
The idea: the similarity is made local (CSLS), so that a name shared by all entities counts nothing; of the pairs that
are best at both ends the clearest are taken, unless their values contradict more than they agree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.matching.candidates import preferred
from largegnn.matching.confidence.decoys import confidence_by_decoys, find_decoys
from largegnn.matching.evidence_weights import localised

__all__ = ["find_anchors"]

_LEAST_CONFIDENT = 0.9  # probability from which a pair is an anchor
_NEAREST = 5


def find_anchors(graph: CandidateGraph) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The anchors (a, 2), most confident first, and the probability that each is right; by the column `literal`."""
    scores = _local(graph)
    best, gaps = preferred(graph, scores, alone=1.0)
    if not len(best):
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    confidence = confidence_by_decoys(scores[best], find_decoys(graph, best, _local))
    if confidence is None:
        # Too few to compare with: the clearest half, by how far they are above their rivals.
        confidence = np.where(gaps >= np.median(gaps), _LEAST_CONFIDENT, 0.5)
    is_contradicted = graph.column("contradiction")[best] > graph.column("agreement")[best] + 1.0
    confident = np.flatnonzero((confidence >= _LEAST_CONFIDENT) & ~is_contradicted & (gaps > 0))
    order = confident[np.argsort(-confidence[confident], kind="stable")]
    return graph.pairs(best[order]), confidence[order]


def _local(graph: CandidateGraph) -> FloatArray:
    local: FloatArray = localised(graph, graph.column("literal").astype(np.float64), _NEAREST).astype(np.float32)
    return local
