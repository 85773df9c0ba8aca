"""Select the candidate pairs that may be accepted, by their scores.

In: a `CandidateGraph` and a score for each edge, and the ranks of the edges at their ends where they are known
already. Out: the indices of the selected edges, ascending.
`many_to_one` lets several sources have one target, for graphs in which things occur twice or are cut finer.
`mutual_knn` is the paper's (each among the other's k best), `mutual_top1` its strictest form, `one_to_one` an
assignment that uses each entity at most once and has the greatest sum of scores among those with most pairs.
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
    """Selects edges; `ranks` are theirs by these scores, and are found out where they are not given."""

    def __call__(self, graph: CandidateGraph, scores: FloatArray, k: int, ranks: EdgeRanks | None = None) -> IntArray:
        """The selected edges, ascending."""
        ...


def mutual_knn(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """Edges that are among the k best of both ends."""
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    return np.flatnonzero((ranks.source <= k) & (ranks.target <= k))


def mutual_top1(graph: CandidateGraph, scores: FloatArray, k: int = 1, ranks: EdgeRanks | None = None) -> IntArray:
    """Edges that are the best of both ends, whatever k."""
    return preferred(graph, scores, alone=0.0)[0] if ranks is None else mutual_knn(graph, scores, 1, ranks)


def many_to_one(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """The best edge of each source, if it is among the k best of its target: a target may have several sources."""
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    return np.flatnonzero((ranks.source == 1) & (ranks.target <= k))


def one_to_one(graph: CandidateGraph, scores: FloatArray, k: int = 5, ranks: EdgeRanks | None = None) -> IntArray:
    """An assignment over the edges that are among the k best of either end.

    Entities may stay alone: each source has a column of its own that costs more than any edge, so that a full matching
    always exists and as many as possible are paired.
    """
    ranks = edge_ranks(graph, scores) if ranks is None else ranks
    near = np.flatnonzero((ranks.source <= k) | (ranks.target <= k))
    if not len(near):
        return near
    sources, rows = np.unique(graph.sources[near], return_inverse=True)
    targets, columns = np.unique(graph.targets[near], return_inverse=True)
    values = scores[near].astype(np.float64)
    # Costs must not be zero: the sparse solver takes a stored zero for an absent edge.
    costs = values.max() - values + 1.0
    alone = costs.max() * (min(len(sources), len(targets)) + 1)
    own = np.arange(len(sources))
    weights = sparse.csr_matrix(
        (
            np.concatenate([costs, np.full(len(sources), alone)]),
            (np.concatenate([rows, own]), np.concatenate([columns, len(targets) + own])),
        ),
        shape=(len(sources), len(targets) + len(sources)),
    )
    matched_rows, matched_columns = csgraph.min_weight_full_bipartite_matching(weights)
    partner = np.full(len(sources), -1)
    partner[matched_rows] = matched_columns
    chosen: IntArray = near[partner[rows] == columns]
    return chosen


SELECTIONS: dict[str, Selection] = {
    "mutual_top1": mutual_top1,
    "mutual_knn": mutual_knn,
    "one_to_one": one_to_one,
    "many_to_one": many_to_one,
}
