"""SBP, LIME's partition: CPS led by either side, united block by block.

In: the task, its seeds, the number of parts. Out: a `Partition` whose blocks overlap and cover every entity.
The idea: what CPS led by the source splits, CPS led by the target may keep. Each block of the first is united with that
block of the second with which it shares most seeds; a block of the second may be used several times or never.
Cost: CPS twice.

# Paper: LIME's SBP, the baseline "SBP" of the tables.
# Departs: each CPS is the repaired one, with stable matching; shared seeds are counted on both sides.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, Partition
from largegnn.division.cps import block_of_entity, count_overlap

__all__ = ["sbp"]


def sbp(task: AlignmentTask, seeds: IntArray, num_parts: int, seed: int) -> Partition:
    """Divide both graphs into `num_parts` overlapping blocks; `seeds` (k, 2)."""
    forward = block_of_entity(task, seeds, num_parts, seed)
    backward = block_of_entity(task, seeds, num_parts, seed, target_leads=True)
    ends = np.unique(seeds)
    partner_of_block = count_overlap(forward[ends], backward[ends], num_parts).argmax(axis=1)
    first, second = Partition.from_labels(forward, num_parts), Partition.from_labels(backward, num_parts)
    blocks = [np.union1d(first.part(block), second.part(partner_of_block[block])) for block in range(num_parts)]
    part_ptr = np.concatenate([[0], np.cumsum([len(block) for block in blocks], dtype=np.int64)])
    return Partition(task.num_entities, np.concatenate(blocks), part_ptr)
