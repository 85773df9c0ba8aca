"""Find the rows of an array of ids that hold a given id.

In: entity ids, one for each row. Out: the rows of one entity. `span` searches an ascending array by bisection; `Rows`
sorts any other array once, by a counting sort, which takes some 0.3 seconds for twenty million rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from largegnn.artifacts import IntArray

__all__ = ["Rows", "span"]


def span(ordered: IntArray, value: int) -> tuple[int, int]:
    """The rows that hold a value in an ascending array (n,), as begin and end of a range."""
    # The values have the type of the array; otherwise numpy would copy the array for each search.
    begin, end = np.searchsorted(ordered, np.array([value, value + 1], dtype=ordered.dtype)).tolist()
    return begin, end


class Rows:
    """An index of an array of ids (n,), all below `num_ids`, that gives the rows of an id."""

    def __init__(self, ids: IntArray, num_ids: int) -> None:
        # scipy converts to CSR by a counting sort, in linear time; argsort takes eight times as long.
        ones, columns = np.ones(len(ids), dtype=bool), np.arange(len(ids), dtype=np.int32)
        matrix = sparse.coo_array((ones, (ids, columns)), shape=(num_ids, max(1, len(ids)))).tocsr()
        self._ptr, self._rows = matrix.indptr, matrix.indices

    def of(self, value: int) -> IntArray:
        """The rows that hold an id, ascending."""
        rows: IntArray = self._rows[self._ptr[value] : self._ptr[value + 1]]
        return rows
