"""Stable matching of two equally large groups (Gale and Shapley).

In: a square table of how much the members of two groups have in common. Out: a one-to-one matching in which no two
would both rather have each other than whom they have. Ties go to the lower number, so that there is one result.
Cost: O(n^2 log n) for n members on a side.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray

__all__ = ["stable_matching"]


def stable_matching(overlap: IntArray) -> IntArray:
    """For each row of `overlap` (n, n) its column, (n,); everybody prefers whom they overlap with most."""
    size = len(overlap)
    wishes_of_row = np.argsort(-overlap, axis=1, kind="stable").tolist()
    rank_in_column = np.empty_like(overlap)
    np.put_along_axis(rank_in_column, np.argsort(-overlap, axis=0, kind="stable"), np.arange(size)[:, None], axis=0)
    next_wish = [0] * size
    row_of_column: list[int | None] = [None] * size
    waiting = list(range(size))[::-1]
    while waiting:
        row = waiting.pop()
        column = wishes_of_row[row][next_wish[row]]
        next_wish[row] += 1
        rival = row_of_column[column]
        if rival is None or rank_in_column[row, column] < rank_in_column[rival, column]:
            row_of_column[column] = row
            row = rival
        if row is not None:
            waiting.append(row)
    return np.argsort(np.array(row_of_column))
