"""Propose candidate pairs next to matched pairs, by aligned relations.

In: matched pairs, and how often relations occur together. Out: for each source the targets with the most support,
whether or not a search found them.
The idea: go from s by a relation to a, from a to its counterpart b, and from b by a relation aligned with the first to
t. A relation by which a or b reaches many entities is skipped, since it proposes many pairs with little support. The
paths s - b and b - t are two sparse matrices; the largest entries of each row of their product are kept.
Cost: the neighbours of each source times the few aligned relations, with at most `_MAX_REACHED` targets for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import AlignmentTask, FloatArray, IntArray, Mask
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces, piece_size, pieces
from largegnn.matching.evidence import REACH_EXPONENT
from largegnn.matching.neighbor_rows import NeighborRows, directed_relations_of, should_distribute
from largegnn.matching.relations import Counterparts, RelationCounts, likelihoods
from largegnn.matching.rows import entries_of, offsets

__all__ = ["propose_pairs"]

Values = npt.NDArray[np.float64]

_MAX_REACHED = 50  # entities that a directed relation may lead to
_MIN_LIKELIHOOD = 0.15  # of two aligned relations; above the likelihood of relations that never occurred together


def propose_pairs(
    task: AlignmentTask,
    near_source: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    allowed: Mask,
    number: int,
) -> IntArray:
    """Propose pairs (p, 2) of entity ids: for each allowed source the `number` best supported allowed targets."""
    split, send = task.num_source_entities, should_distribute(task)
    keys, reverse = _reverse_matrix(task, allowed[split:])
    args = (near_source, matched, counts, keys, reverse, allowed[:split], number)
    ranges = pieces(split, piece_size(split, send))
    pairs: IntArray = np.concatenate(
        [np.empty((0, 2), dtype=np.int32), *map_pieces(rule_piece, ranges, *args, send=send)]
    )
    return pairs + np.array([0, split], dtype=np.int32)


def _reverse_matrix(task: AlignmentTask, allowed: Mask) -> tuple[IntArray, Any]:
    """Make the matrix (g, t) from target entities with a directed relation to allowed targets; its keys (g,) ascend.

    A key is the entity times the number of directed relations, plus the directed relation.
    """
    entities, ids, directed_relations = directed_relations_of(task, 1)
    keys, groups, sizes = np.unique(
        entities.astype(np.int64) * (2 * task.num_target_relations) + directed_relations,
        return_inverse=True,
        return_counts=True,
    )
    keep = np.flatnonzero(allowed[ids] & (sizes[groups] <= _MAX_REACHED))
    keep = keep[np.lexsort((ids[keep], groups[keep]))]
    rows = groups[keep]
    weights = sizes[rows].astype(np.float64) ** REACH_EXPONENT
    shape = (len(keys), task.num_target_entities)
    return keys, sparse.csr_array((weights, ids[keep], offsets(rows, len(keys))), shape=shape)


def rule_piece(
    first: int,
    last: int,
    near: NeighborRows,
    matched: Counterparts,
    counts: RelationCounts,
    keys: IntArray,
    reverse: Any,
    allowed: Mask,
    number: int,
) -> IntArray:
    """Propose the pairs (p, 2) of the sources from `first` to `last`, both ends numbered from 0."""
    relations = np.repeat(np.arange(len(counts.ptr) - 1), np.diff(counts.ptr))
    likely = likelihoods(counts, relations)
    aligned = np.flatnonzero(likely >= _MIN_LIKELIHOOD)
    ptr = offsets(relations[aligned], len(counts.ptr) - 1)

    sources, steps = entries_of(near.ptr[first:last], near.ptr[first + 1 : last + 1])
    keep = allowed[first:last][sources] & (near.weights[steps] >= np.float64(_MAX_REACHED**REACH_EXPONENT))
    sources, steps = sources[keep], steps[keep]
    rows, links = entries_of(matched.ptr[near.ids[steps]], matched.ptr[near.ids[steps] + 1])
    sources, steps = sources[rows], steps[rows]
    strengths = near.weights[steps] * matched.certainties[links]
    relation = near.directed_relations[steps] >> 1
    rows, alignments = entries_of(ptr[relation], ptr[relation + 1])
    # The relation leads to the counterpart b; from b, it is read in the opposite direction.
    targets = counts.directed_relations[aligned[alignments]] ^ (near.directed_relations[steps[rows]] & 1) ^ 1
    wanted = matched.ids[links[rows]].astype(np.int64) * (2 * len(counts.target_scale)) + targets
    columns = np.searchsorted(keys, wanted)
    found = np.flatnonzero(np.append(keys, -1)[columns] == wanted)
    values = strengths[rows[found]] * likely[aligned[alignments[found]]]
    columns = columns[found]
    ptr = offsets(sources[rows[found]], last - first)
    best = np.empty((int(np.count_nonzero(np.diff(ptr))) * number, 2), dtype=np.int32)
    support = np.zeros(reverse.shape[1], dtype=np.float32)
    reached = np.empty(reverse.shape[1], dtype=np.int32)
    size = _choose(ptr, columns, values, reverse.indptr, reverse.indices, reverse.data, number, support, reached, best)
    return best[:size] + np.array([first, 0], dtype=np.int32)


@compiled
def _choose(
    ptr: IntArray,
    columns: IntArray,
    values: Values,
    reverse_ptr: IntArray,
    reverse_ids: IntArray,
    weights: Values,
    number: int,
    support: FloatArray,
    reached: IntArray,
    best: IntArray,
) -> int:
    """Multiply two sparse matrices, (`ptr`, `columns`, `values`) and (`reverse_ptr`, `reverse_ids`, `weights`).

    Writes the `number` largest entries of each row of the product to `best`, and returns how many there are. `support`,
    of zeros, and `reached` are buffers for one row.
    """
    size = 0
    for row in range(len(ptr) - 1):
        num_reached = 0
        for entry in range(ptr[row], ptr[row + 1]):
            for index in range(reverse_ptr[columns[entry]], reverse_ptr[columns[entry] + 1]):
                target = reverse_ids[index]
                if support[target] == 0:
                    reached[num_reached] = target
                    num_reached += 1
                support[target] += values[entry] * weights[index]
        # Of targets with equal support, the first that was reached.
        for rank in range(min(number, num_reached)):
            first = rank
            for other in range(rank + 1, num_reached):
                if support[reached[other]] > support[reached[first]]:
                    first = other
            reached[rank], reached[first] = reached[first], reached[rank]
            best[size, 0], best[size, 1] = row, reached[rank]
            size += 1
        for index in range(num_reached):
            support[reached[index]] = 0.0
    return size
