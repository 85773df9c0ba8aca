"""The candidates of a search as one bipartite graph: every pair that either side's search found.

In: the nearest targets of each source and the nearest sources of each target (`Neighbors`). Out: a `CandidateGraph`,
one edge for each distinct pair, sorted by source and target, with its cosine; and what is asked of such a graph: the
ranks of edges at either end, the best rival of an edge, its CSLS score.
The idea: all later decisions look at these edges alone, so their cost and memory are linear in the entities however
large the graphs are.
Cost: O(edges log edges) to sort; an edge takes some 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray, Neighbors, pair_keys
from largegnn.artifacts.checks import frozen
from largegnn.errors import ArtifactError

__all__ = ["CandidateGraph", "FloatArray", "build_candidates", "csls", "margins", "ranks"]

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class CandidateGraph:
    """Edges between sources and targets: entity ids (e,), ascending by source, then target, and cosines (e,)."""

    sources: IntArray
    targets: IntArray
    cosines: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", frozen(self.sources, np.int32, (None,), "sources"))
        object.__setattr__(self, "targets", frozen(self.targets, np.int32, (len(self.sources),), "targets"))
        object.__setattr__(self, "cosines", frozen(self.cosines, np.float32, (len(self.sources),), "cosines"))

    def __len__(self) -> int:
        return len(self.sources)

    def find(self, pairs: IntArray) -> IntArray:
        """The edge of each pair (p, 2), or -1, (p,)."""
        if not len(self):
            return np.full(len(pairs), -1, dtype=np.int64)
        keys = pair_keys(np.stack([self.sources, self.targets], axis=1))
        wanted = pair_keys(pairs)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, place, -1)


def build_candidates(source_neighbors: Neighbors, target_neighbors: Neighbors) -> CandidateGraph:
    """Every pair found from either side, once."""
    sources, targets, cosines = [], [], []
    for found, queries_are_sources in ((source_neighbors, True), (target_neighbors, False)):
        there = found.ids >= 0
        queries = np.repeat(found.queries, there.sum(axis=1))
        others = found.ids[there]
        sources.append(queries if queries_are_sources else others)
        targets.append(others if queries_are_sources else queries)
        cosines.append(found.scores[there])
    keys = pair_keys(np.stack([np.concatenate(sources), np.concatenate(targets)], axis=1))
    # Stable, so that a pair both sides found keeps the score of the source's search: the two may differ in rounding.
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    order = order[np.diff(keys, prepend=-1) != 0]
    return CandidateGraph(
        np.concatenate(sources)[order], np.concatenate(targets)[order], np.concatenate(cosines)[order]
    )


def csls(graph: CandidateGraph, source_neighbors: Neighbors, target_neighbors: Neighbors, k: int = 10) -> FloatArray:
    """CSLS of each edge: 2 cos(s, t) - r(s) - r(t), r the mean cosine to the k nearest of the other side."""
    if k < 1:
        raise ArtifactError(f"CSLS needs a neighbourhood of at least 1, not {k}")
    scores = 2 * graph.cosines
    for found, ends in ((source_neighbors, graph.sources), (target_neighbors, graph.targets)):
        near = found.scores[:, :k].astype(np.float64)
        there = np.isfinite(near)
        means = np.where(there, near, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        rows = found.row_of(ends)
        scores = scores - np.where(rows >= 0, means[rows] if len(means) else 0.0, 0.0).astype(np.float32)
    return np.asarray(scores, dtype=np.float32)


def ranks(ends: IntArray, scores: FloatArray) -> IntArray:
    """The place of each edge among those that share its end (e,), 1 = highest score, equal ones by position."""
    order = np.lexsort((-scores, ends))
    sorted_ends = ends[order]
    first = np.flatnonzero(np.diff(sorted_ends, prepend=-1) != 0)
    lengths = np.diff(first, append=len(order))
    result = np.empty(len(order), dtype=np.int64)
    result[order] = np.arange(len(order)) - np.repeat(first, lengths) + 1
    return result


def margins(ends: IntArray, scores: FloatArray, alone: float) -> FloatArray:
    """How far each edge's score lies above its best rival's at this end; `alone` where there is no rival."""
    order = np.lexsort((-scores, ends))
    sorted_ends, sorted_scores = ends[order], scores[order]
    starts = np.flatnonzero(np.diff(sorted_ends, prepend=-1) != 0)
    lengths = np.diff(starts, append=len(order))
    best = sorted_scores[starts] if len(starts) else sorted_scores
    second = np.full(len(starts), np.nan, dtype=np.float32)
    second[lengths > 1] = sorted_scores[starts[lengths > 1] + 1]
    rival = np.repeat(best, lengths)
    rival[starts] = second
    gap = sorted_scores - rival
    gap[np.isnan(gap)] = alone
    result = np.empty(len(order), dtype=np.float32)
    result[order] = gap
    return result
