"""Estimate input rows of entities that were not in the training from the rows of their neighbours.

In: the trained rows, which entities have a trained row, and the triples. Out: rows of all entities that a path connects
with a trained entity, and which entities these are.
The idea: entity reconstruction (section 5.3 of the paper) pulls every row towards the mean of its neighbours' rows, so
this mean is the estimate for a new entity. Neighbours of known entities are computed first, then their neighbours; then
a few passes recompute all means. The returned rows are half of the means, which gave more accurate alignments than the
means (lab/measurements/updating.md).
Cost: O(d) for each pass and each pair of a new entity and its neighbour.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import IntArray

__all__ = ["NewRows", "fill_rows", "grow_relation_rows"]

_PASSES = 2
_SHRINKAGE = np.float32(0.5)  # factor from the mean to the row
FloatArray = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows (n, d) of all entities.

    `reached` (n,): which entities have a row; `num_known` (n,): how many known neighbours an entity has, or 0 if the
    entity itself is known.
    """

    rows: FloatArray
    reached: Mask
    num_known: IntArray


def fill_rows(rows: FloatArray, known: Mask, triples: IntArray, passes: int = _PASSES) -> NewRows:
    """Compute rows of entities that are not `known` (n,): half the means over their neighbours in `triples` (m, 3)."""
    unknown = np.flatnonzero(~known)
    neighbor_matrix = _neighbors_of(unknown, triples, len(known))
    filled = np.array(rows, dtype=np.float32)
    filled[unknown] = 0.0
    reached = known.copy()
    while True:
        num_reached = neighbor_matrix @ reached.astype(np.float32)
        frontier = np.flatnonzero((num_reached > 0) & ~reached[unknown])
        if not len(frontier):
            break
        # Rows of entities that are not reached yet are zeros and add nothing to the sum.
        filled[unknown[frontier]] = (neighbor_matrix[frontier] @ filled) / num_reached[frontier, None]
        reached[unknown[frontier]] = True
    inside = np.flatnonzero(reached[unknown])
    for _ in range(passes):
        filled[unknown[inside]] = (neighbor_matrix[inside] @ filled) / num_reached[inside, None]
    filled[unknown] *= _SHRINKAGE
    num_known = np.zeros(len(known), dtype=np.int32)
    num_known[unknown] = neighbor_matrix @ known.astype(np.float32)
    return NewRows(filled, reached, num_known)


def grow_relation_rows(rows: FloatArray, relation_of_old: IntArray, num_relations: int) -> FloatArray:
    """Copy relation rows into a table (2R, d) of more relations; both rows of a new relation are zeros.

    A reflection at a zero vector changes nothing. In measurements, zeros were better than the mean of all rows, than
    the mean of the rows of a side and direction, and than random rows.
    """
    num_old = len(relation_of_old)
    grown = np.zeros((2 * num_relations, rows.shape[1]), dtype=np.float32)
    grown[relation_of_old] = rows[:num_old]
    grown[num_relations + relation_of_old] = rows[num_old:]
    return grown


def _neighbors_of(receivers: IntArray, triples: IntArray, num_entities: int) -> sparse.csr_array[np.float32]:
    """The distinct neighbours of each receiver, without the receiver itself: a matrix (k, n) of ones."""
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
