"""From parts to subgraphs: the triples and seed pairs that lie wholly inside each part (section 4 of the paper).

In: the task, its seeds, a partition whose parts may overlap. Out: a `SubgraphSet`, flat arrays with local ids.
The idea: one pass over the triples counts what each part will hold, a second one writes it to its place, so that the
cost does not grow with the number of parts.
Cost: O(triples + members), two passes; memory is the result, twice while it is written.

# Paper: a triple is kept in every subgraph that has both its ends.
# Departs: sizes differ; no part is padded with random entities, as the authors' code did.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, Partition, SubgraphSet
from largegnn.division.membership import invert_parts, place_pairs

__all__ = ["build_subgraphs"]


def build_subgraphs(task: AlignmentTask, seeds: IntArray, partition: Partition) -> SubgraphSet:
    """Every part with its triples and those `seeds` (k, 2) that have both ends in it, in the order they come in."""
    membership = invert_parts(partition.num_entities, partition.entities, partition.part_ptr)
    # Copies, not views: numba would compile anew for each way an array can lie in memory.
    heads, tails = task.triples[:, 0].copy(), task.triples[:, 2].copy()
    placed = place_pairs(membership, partition.num_parts, heads, tails)
    triples = np.empty((len(placed.rows), 3), dtype=np.int32)
    triples[:, 0] = placed.firsts
    triples[:, 1] = task.triples[placed.rows, 1]
    triples[:, 2] = placed.seconds
    paired = place_pairs(membership, partition.num_parts, seeds[:, 0].copy(), seeds[:, 1].copy())
    return SubgraphSet(
        entities=partition.entities,
        entity_ptr=partition.part_ptr,
        triples=triples,
        triple_ptr=placed.part_ptr,
        seeds=np.stack([paired.firsts, paired.seconds], axis=1),
        seed_ptr=paired.part_ptr,
    )
