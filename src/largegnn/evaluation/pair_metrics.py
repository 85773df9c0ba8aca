"""How good an alignment is in the real setting: precision, recall and F1 of the pairs put out.

In: pairs and true links, as entity ids. Out: shares, None for a share of nothing. Cost: two sorts.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray, pair_keys

__all__ = ["precision_recall_f1"]


def precision_recall_f1(pairs: IntArray, test_links: IntArray) -> dict[str, float | None]:
    """Judge pairs (p, 2), without seeds, against all test links (k, 2), both as sets; a share of nothing is None."""
    output, links = _distinct_keys(pairs), _distinct_keys(test_links)
    num_right = len(np.intersect1d(output, links, assume_unique=True))
    return {
        "precision": num_right / len(output) if len(output) else None,
        "recall": num_right / len(links) if len(links) else None,
        "f1": 2 * num_right / (len(output) + len(links)) if len(output) + len(links) else None,
    }


def _distinct_keys(pairs: IntArray) -> IntArray:
    """One number for each distinct row of (p, 2), ascending."""
    # Sorted by hand: np.unique hashes, and numbers packed like these collide, which is a hundred times slower.
    keys: IntArray = np.sort(pair_keys(pairs))
    distinct: IntArray = keys[np.diff(keys, prepend=-1) != 0]
    return distinct
