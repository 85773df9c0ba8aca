"""Pairs to start from where no seeds are given: each other's clear best by names and values, contradicting nothing.

In: candidate edges with a similarity, agreement and contradiction. Out: pairs, surest first.
The idea: the similarity is made local (CSLS), so that a name everybody has is no name; of the pairs that are best at
both ends the clearest are taken, unless their values speak against them more than for them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import CandidateGraph, IntArray
from largegnn.matching.candidates import preferred
from largegnn.matching.decoys import confidence_by_decoys, decoy_scores
from largegnn.matching.fusing import localised

__all__ = ["find_anchors"]

_SURE = 0.9  # probability from which a pair is an anchor
_NEAREST = 5


def find_anchors(
    graph: CandidateGraph, similarity: npt.NDArray[np.float64]
) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The anchors (a, 2), surest first, and the probability that each is right."""
    scores = localised(graph, similarity, _NEAREST).astype(np.float32)
    best, gaps = preferred(graph, scores, alone=1.0)
    if not len(best):
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    confidence = confidence_by_decoys(scores[best], decoy_scores(graph, scores, best))
    if confidence is None:
        # Too few to compare with: the clearest half, by how far they are above their rivals.
        confidence = np.where(gaps >= np.median(gaps), _SURE, 0.5)
    spoken_against = graph.column("contradiction")[best] > graph.column("agreement")[best] + 1.0
    sure = np.flatnonzero((confidence >= _SURE) & ~spoken_against & (gaps > 0))
    order = sure[np.argsort(-confidence[sure], kind="stable")]
    return graph.pairs(best[order]), confidence[order]
