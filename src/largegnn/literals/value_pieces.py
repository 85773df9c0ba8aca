"""Values compared in pieces: ranges of edges, on the workers of a cluster.

In: a comparator, the values of both sides, the rows of the edges' values on either side, a pool of workers. Out: how
alike the values of each edge are that has both.
The idea: an edge is compared by its two values alone. A piece takes along each value it names once; edges come in the
order of their sources, so that a source's value is read in one piece, a target's in those that name it.
Cost: that of comparing; a sort of the rows of a piece here. Memory here: the values of some pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from largegnn.artifacts import FloatArray, IntArray, StringTable
from largegnn.literals.comparators import Comparator, ReadingComparator
from largegnn.machine.pieces import pieces
from largegnn.machine.worker_pool import WorkerPool

__all__ = ["compare_piece", "compared_in_pieces"]

_EDGES = 1 << 18  # of a piece: about a second for names


def compared_in_pieces(
    comparator: Comparator | ReadingComparator,
    values: tuple[StringTable, StringTable],
    rows_of: Callable[[slice], tuple[IntArray, IntArray]],
    count: int,
    pool: WorkerPool,
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Those of `count` edges that have both values, a piece at a time, and how alike these are.

    `rows_of` gives for some edges the rows of their values, (e,) for either side, -1 for none.
    """
    both_of: dict[int, IntArray] = {}

    def arguments() -> Iterator[tuple[Any, ...]]:
        for number, (first, last) in enumerate(pieces(count, _EDGES)):
            here = rows_of(slice(first, last))
            both = np.flatnonzero((here[0] >= 0) & (here[1] >= 0))
            both_of[number] = first + both
            named, of = zip(*(np.unique(side[both], return_inverse=True) for side in here), strict=True)
            yield comparator, tuple(side.take(each) for side, each in zip(values, named, strict=True)), of

    for number, similar in pool.run(compare_piece, arguments()):
        yield both_of.pop(number), similar


def compare_piece(
    comparator: Comparator | ReadingComparator, values: tuple[list[str], list[str]], rows: tuple[IntArray, IntArray]
) -> FloatArray:
    """How alike the values at these rows (e,) of both lists are."""
    left, right = rows
    if isinstance(comparator, ReadingComparator):
        read = [comparator.read(side) for side in values]
        return np.asarray(comparator.compare(read[0][left], read[1][right]), dtype=np.float32)
    pairs, of = np.unique(left << 32 | right, return_inverse=True)
    texts = (
        [values[0][row] for row in (pairs >> 32).tolist()],
        [values[1][row] for row in (pairs & 0xFFFFFFFF).tolist()],
    )
    similar: FloatArray = np.asarray(comparator(*texts), dtype=np.float32)
    return similar[of]
