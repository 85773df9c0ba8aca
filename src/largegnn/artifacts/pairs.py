"""Pairs and links as single numbers, so that sets of them can be compared."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import IntArray

__all__ = ["are_among", "pair_keys"]


def pair_keys(pairs: IntArray) -> IntArray:
    """One number for each pair (p, 2), in the order of (source, target)."""
    keys: IntArray = pairs[:, 0].astype(np.int64) << 32 | pairs[:, 1].astype(np.int64)
    return keys


def are_among(pairs: IntArray, links: IntArray) -> npt.NDArray[np.bool_]:
    """Which of the pairs (p, 2) are among the links (k, 2), (p,)."""
    if not len(links):
        return np.zeros(len(pairs), dtype=bool)
    # Not np.isin: it hashes, and numbers packed like these collide, which is a hundred times slower.
    wanted, known = pair_keys(pairs), np.sort(pair_keys(links))
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[place] == wanted
    return found
