"""Which ranks of test links a search has shown, and which are to be counted.

In: what the nearest of each end say. Out: for which links their ranks among the nearest are their ranks among all.
The idea: a pair that neither end lists among its nearest is no nearer than the last that either end does list. So no
cosine that an end does not list is above its last one; and no CSLS, 2 cos - r - r', is above its last cosine less its
mean r, for what the other end could add, its own last less its own mean, is never above 0. A link that scores higher
meets all its rivals in the lists, and its rank there is its rank.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import FloatArray, IntArray, Mask
from largegnn.evaluation.metrics import MOST_PRODUCTS, SAME_SCORE, Ranks, Scoring, rank_edges
from largegnn.machine.pieces import by_all_processors, piece_size

__all__ = ["above_unlisted", "copied_rows", "even_sample", "rank_by_edges"]

_LEAST_RANKED = 2_000


def above_unlisted(gold: FloatArray, last: FloatArray, means: FloatArray, scoring: Scoring) -> Mask:
    """Whether the score of each link (k,) is above all that one end does not list.

    `last` (k,) is the last cosine that end lists, -inf where it lists all there are, `means` (k,) its mean cosine.
    """
    bounds = last - means if scoring == "csls" else last
    is_above: Mask = gold > bounds + 4 * SAME_SCORE
    return is_above


def rank_by_edges(
    ends: tuple[IntArray, IntArray], scores: FloatArray, links: IntArray, edges: IntArray, same: float = SAME_SCORE
) -> Ranks:
    """Ranks of links (k, 2) among candidate edges, given by their ends and scores (e,); `edges` (k,) has -1 for none.

    A link that is no edge is last.
    """
    gold = np.full(len(links), np.nan)
    gold[edges >= 0] = scores[edges[edges >= 0]]
    sizes = [len(np.unique(links[:, side])) for side in (0, 1)]
    return Ranks(
        rank_edges(ends[0], scores, links[:, 0], gold, sizes[1], same),
        rank_edges(ends[1], scores, links[:, 1], gold, sizes[0], same),
    )


def even_sample(num_links: int, products: float, device: str) -> IntArray:
    """Which of so many links to rank at `products` for each end: all, or evenly spread ones if that takes hours."""
    most = int(MOST_PRODUCTS[device] // max(2 * num_links * products, 1))
    if most >= num_links:
        return np.arange(num_links)
    return np.unique(np.linspace(0, num_links - 1, max(most, _LEAST_RANKED)).astype(np.int64))


def copied_rows(vectors: FloatArray, ids: IntArray) -> FloatArray:
    """A copy of the vectors with these ids (k,), by all processors."""
    rows = np.empty((len(ids), vectors.shape[1]), dtype=np.float32)

    def copy(first: int, last: int) -> None:
        rows[first:last] = vectors[ids[first:last]]

    by_all_processors(copy, len(ids), piece_size(len(ids)))
    return rows
