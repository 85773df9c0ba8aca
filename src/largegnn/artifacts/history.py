"""What training was like: one record for each epoch, and for each self-training round."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClusterUse", "EpochRecord", "RoundRecord"]


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: mean loss of its steps, H@1 on the valid links if it was validated, seconds."""

    epoch: int
    loss: float
    valid_hits: float | None
    seconds: float


@dataclass(frozen=True)
class RoundRecord:
    """One self-training round: its pseudo-seeds, how many of those that touch a valid link are right, and its H@1.

    `share_right` and `valid_hits` are None where there are no valid links to judge by; `kept` is False for a round that
    did not help.
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
