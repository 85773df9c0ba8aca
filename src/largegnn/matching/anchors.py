"""Find anchors: confident pairs to train from without seeds, by names and values.

In: candidate edges with the columns `literal`, `agreement` and `contradiction`. Out: pairs, the most confident first.
The idea: CSLS of the similarity of literals discounts names that many entities share. Of the pairs that are best at
both ends, the most confident are anchors, unless their values contradict each other more than they agree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.matching.candidates import preferred
from largegnn.matching.confidence.decoys import confidence_by_decoys, find_decoys
from largegnn.matching.evidence_weights import localised

__all__ = ["find_anchors"]

_MIN_CONFIDENCE = 0.9  # minimum confidence of an anchor
_NEAREST = 5


def find_anchors(graph: CandidateGraph) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """Find the anchors (a, 2), most confident first, and the probability that each is correct."""
    scores = _literal_csls(graph)
    best, gaps = preferred(graph, scores, alone=1.0)
    if not len(best):
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    confidence = confidence_by_decoys(scores[best], find_decoys(graph, best, _literal_csls))
    if confidence is None:
        # Too few decoys: the half with the larger margins is confident.
        confidence = np.where(gaps >= np.median(gaps), _MIN_CONFIDENCE, 0.5)
    is_contradicted = graph.column("contradiction")[best] > graph.column("agreement")[best] + 1.0
    confident = np.flatnonzero((confidence >= _MIN_CONFIDENCE) & ~is_contradicted & (gaps > 0))
    order = confident[np.argsort(-confidence[confident], kind="stable")]
    return graph.pairs(best[order]), confidence[order]


def _literal_csls(graph: CandidateGraph) -> FloatArray:
    scores: FloatArray = localised(graph, graph.column("literal").astype(np.float64), _NEAREST).astype(np.float32)
    return scores
