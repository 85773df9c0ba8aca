"""Select the candidate pairs that may be accepted, by their scores.

In: a `CandidateGraph` with a score for each edge, and the ranks of the edges at both ends if they are known. Out: the
indices of the selected edges, ascending.
`mutual_knn` is the selection of the paper (each among the k best of the other), `mutual_top1` its strictest form,
`one_to_one` an assignment that uses each entity at most once and has the greatest sum of scores among those with most
pairs. `many_to_one` lets several sources have one target, for graphs with duplicates or a finer granularity.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from largegnn.artifacts import CandidateGraph, EdgeRanks, FloatArray, IntArray
from largegnn.matching.candidates import edge_ranks, preferred

__all__ = ["SELECTIONS", "Selection", "many_to_one", "mutual_knn", "mutual_top1", "one_to_one"]


class Selection(Protocol):
    """A function that selects edges; `ranks` of the edges by these scores are computed if not given."""

    def __call__(self, graph: CandidateGraph, scores: FloatArray, k: int, ranks: EdgeRanks | None = None) -> IntArray:
        """Return the indices of the selected edges, ascending."""
        ...


def mutual_knn(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """Select edges that are among the k best of both ends."""
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    return np.flatnonzero((ranks.source <= k) & (ranks.target <= k))


def mutual_top1(graph: CandidateGraph, scores: FloatArray, k: int = 1, ranks: EdgeRanks | None = None) -> IntArray:
    """Select edges that are the best of both ends, whatever k is."""
    return preferred(graph, scores, alone=0.0)[0] if ranks is None else mutual_knn(graph, scores, 1, ranks)


def many_to_one(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """Select the best edge of each source if it is among the k best of its target, which may have several sources."""
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    return np.flatnonzero((ranks.source == 1) & (ranks.target <= k))


def one_to_one(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """Select an assignment over the edges that are among the k best of either end.

    Entities may stay unmatched: each source has an additional column that costs more than any edges, so that a full
    matching always exists and as many sources as possible are paired.
    """
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    edges = np.flatnonzero((ranks.source <= k) | (ranks.target <= k))
    if not len(edges):
        return edges
    sources, rows = np.unique(graph.sources[edges], return_inverse=True)
    targets, columns = np.unique(graph.targets[edges], return_inverse=True)
    values = scores[edges].astype(np.float64)
    # Costs must not be zero: the sparse solver takes a stored zero for an absent edge.
    costs = values.max() - values + 1.0
    unmatched_cost = costs.max() * (min(len(sources), len(targets)) + 1)
    all_rows = np.arange(len(sources))
    weights = sparse.csr_matrix(
        (
            np.concatenate([costs, np.full(len(sources), unmatched_cost)]),
            (np.concatenate([rows, all_rows]), np.concatenate([columns, len(targets) + all_rows])),
        ),
        shape=(len(sources), len(targets) + len(sources)),
    )
    matched_rows, matched_columns = csgraph.min_weight_full_bipartite_matching(weights)
    partner = np.full(len(sources), -1)
    partner[matched_rows] = matched_columns
    chosen: IntArray = edges[partner[rows] == columns]
    return chosen


SELECTIONS: dict[str, Selection] = {
    "mutual_top1": mutual_top1,
    "mutual_knn": mutual_knn,
    "one_to_one": one_to_one,
    "many_to_one": many_to_one,
}
