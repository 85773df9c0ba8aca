"""Both graphs on the workers of a cluster: sent to each machine once, for all that rules ask of them.

In: the neighbours of each entity of both graphs. Out: what stands for them in a piece of work, if the run has a cluster
and the graphs are worth it. Pieces are ranges of sources; what is asked of one source needs all targets.
Cost: 24 bytes a triple and direction, in the memory that the workers of a machine share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from largegnn.artifacts import AlignmentTask
from largegnn.machine.worker_pool import WorkerPool, wider_pool
from largegnn.matching.neighbor_rows import NeighborRows

__all__ = ["SharedRows", "shared_rows"]

# Entities of a side: below, rules take some ten seconds, about as long as it takes to send the graphs and to load the
# loops on each worker.
_WORTH_SHARING = 200_000


class SharedRows(NamedTuple):
    """The workers, and what stands for the neighbours of source and target entities."""

    pool: WorkerPool
    near: tuple[Any, Any]


def shared_rows(task: AlignmentTask, near_source: NeighborRows, near_target: NeighborRows) -> SharedRows | None:
    """Send the graphs to the workers of the run; None if there are no more than here, or too little to do."""
    pool = wider_pool()
    if pool is None or max(task.num_source_entities, task.num_target_entities) < _WORTH_SHARING:
        return None
    return SharedRows(pool, (pool.share(near_source), pool.share(near_target)))
