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


@dataclass
class ClusterUse:
    """What a training took of a cluster; it is counted while the training goes on.

    `staleness_sum` adds up, over the visits, how many others were given back while each was under way; `shared_rows`
    counts rows that another visit had changed meanwhile; `seconds` and `cpu_seconds` are those of the visits alone.
    """

    num_nodes: int
    num_workers: int
    num_visits: int = 0
    visits_repeated: int = 0
    epochs_repeated: int = 0
    bytes_sent: int = 0
    staleness_sum: int = 0
    most_stale: int = 0
    shared_rows: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_worker_mb: float = 0.0

    @property
    def mean_staleness(self) -> float:
        """Visits by others while one was under way, on average."""
        return self.staleness_sum / max(self.num_visits, 1)
