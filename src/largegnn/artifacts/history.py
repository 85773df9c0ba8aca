"""What training was like: one record for each epoch, and for each self-training round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ClusterUse", "EpochRecord", "RoundRecord"]


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a member of the ensemble: mean loss of its steps, H@1 on the valid links if measured, seconds."""

    epoch: int
    loss: float
    valid_hits: float | None
    seconds: float
    member: int = 0


@dataclass(frozen=True)
class RoundRecord:
    """One self-training round: its pseudo-seeds, how many of those that touch a valid link are right, and its H@1.

    `share_right` and `valid_hits` are None where there are no valid links to judge by; `kept` is False for a round that
    did harm.
    """

    round: int
    num_pseudo_seeds: int
    num_judged: int
    share_right: float | None
    valid_hits: float | None
    kept: bool


@dataclass(frozen=True)
class ClusterUse:
    """What a training took of a cluster: most nodes and workers at a time, visits, and what was lost and made again.

    `mean_staleness` and `most_stale` count the visits that others gave back while one was under way; `shared_rows` are
    rows that another visit had changed meanwhile; `visit_seconds` are those of the visits alone, over all workers.
    """

    num_nodes: int
    num_workers: int
    num_visits: int
    visits_repeated: int
    epochs_repeated: int
    bytes_sent: int
    mean_staleness: float
    most_stale: int
    shared_rows: int
    visit_seconds: float
    visit_cpu_seconds: float
    peak_worker_mb: float

    @classmethod
    def joined(cls, uses: Sequence[ClusterUse]) -> ClusterUse:
        """What several trainings, one after the other, took together."""
        counts = ("num_visits", "visits_repeated", "epochs_repeated", "bytes_sent", "shared_rows")
        sums = (*counts, "visit_seconds", "visit_cpu_seconds")
        most = ("num_nodes", "num_workers", "most_stale", "peak_worker_mb")
        staleness = sum(use.mean_staleness * use.num_visits for use in uses)
        values = {name: sum(getattr(use, name) for use in uses) for name in sums}
        values |= {name: max(getattr(use, name) for use in uses) for name in most}
        return cls(**values, mean_staleness=staleness / max(values["num_visits"], 1))
