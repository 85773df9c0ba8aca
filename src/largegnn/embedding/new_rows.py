"""Compute input rows of entities that were not in the training from the rows of their neighbours.

In: the trained rows, which entities have one, and the triples. Out: rows of all entities that a path joins with a known
one, and which those are.
The idea: entity reconstruction (section 5.3 of the paper) pulls every row towards the mean of its neighbours' rows, so
that mean is the estimate for a new entity. Neighbours of known entities come first, then their neighbours; a few more
passes average among new neighbours. The rows returned are half of these means: a whole mean of an uncertain row blurs
the neighbours of a new entity (docs/measurements/updating.md has the measurement).
Cost: O(d) for each pair of a new entity and its neighbour and each pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import IntArray

__all__ = ["NewRows", "fill_rows", "grow_relation_rows"]

_PASSES = 2
_TRUST = np.float32(0.5)  # share of the mean that becomes the row
FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows (n, d) of all entities; `reached` (n,): which have one, `num_known` (n,) how many known neighbours.

    `num_known` counts for entities that are not known themselves; it is 0 for the others.
    """

    rows: FloatArray
    reached: Mask
    num_known: IntArray


def fill_rows(rows: FloatArray, known: Mask, triples: IntArray, passes: int = _PASSES) -> NewRows:
    """Rows for entities that are not `known` (n,), as half the means over their neighbours in `triples` (m, 3)."""
    unknown = np.flatnonzero(~known)
    links = _neighbors_of(unknown, triples, len(known))
    filled = np.array(rows, dtype=np.float32)
    filled[unknown] = 0.0
    reached = known.copy()
    while True:
        num_reached = links @ reached.astype(np.float32)
        frontier = np.flatnonzero((num_reached > 0) & ~reached[unknown])
        if not len(frontier):
            break
        # Rows of what is not reached are zeros and add nothing to the sum.
        filled[unknown[frontier]] = (links[frontier] @ filled) / num_reached[frontier, None]
        reached[unknown[frontier]] = True
    inside = np.flatnonzero(reached[unknown])
    for _ in range(passes):
        filled[unknown[inside]] = (links[inside] @ filled) / num_reached[inside, None]
    filled[unknown] *= _TRUST
    num_known = np.zeros(len(known), dtype=np.int32)
    num_known[unknown] = links @ known.astype(np.float32)
    return NewRows(filled, reached, num_known)


def grow_relation_rows(rows: FloatArray, relation_of_old: IntArray, num_relations: int) -> FloatArray:
    """Relation rows (2R, d) in the order of more relations; those of new ones, either direction, are zeros.

    A relation without a direction reflects nothing. That measured better than the mean of all rows, that of the side
    and direction, and random rows.
    """
    num_old = len(relation_of_old)
    grown = np.zeros((2 * num_relations, rows.shape[1]), dtype=np.float32)
    grown[relation_of_old] = rows[:num_old]
    grown[num_relations + relation_of_old] = rows[num_old:]
    return grown


def _neighbors_of(receivers: IntArray, triples: IntArray, num_entities: int) -> sparse.csr_array[np.float32]:
    """The distinct neighbours of each receiver, none its own: a matrix (k, n) of ones."""
    row_of = np.full(num_entities, -1, dtype=np.int64)
    row_of[receivers] = np.arange(len(receivers))
    ends = np.concatenate([triples[:, (0, 2)], triples[:, (2, 0)]])
    ends = ends[(row_of[ends[:, 0]] >= 0) & (ends[:, 0] != ends[:, 1])]
    matrix = sparse.csr_array(
        (np.ones(len(ends), dtype=np.float32), (row_of[ends[:, 0]], ends[:, 1])), shape=(len(receivers), num_entities)
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix
