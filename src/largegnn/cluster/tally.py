"""What a training takes of a cluster, counted while it goes on."""

from __future__ import annotations

from dataclasses import dataclass

from largegnn.artifacts import ClusterUse

__all__ = ["Tally"]


@dataclass
class Tally:
    """Counts; what each means is said at `ClusterUse`."""

    num_nodes: int
    num_workers: int = 0
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

    def note_visit(self, staleness: int, seconds: float, cpu_seconds: float, peak_memory_mb: float) -> None:
        """Count a visit that was given back."""
        self.num_visits += 1
        self.staleness_sum += staleness
        self.most_stale = max(self.most_stale, staleness)
        self.seconds += seconds
        self.cpu_seconds += cpu_seconds
        self.peak_worker_mb = max(self.peak_worker_mb, peak_memory_mb)

    @property
    def mean_staleness(self) -> float:
        """Visits by others while one was under way, on average."""
        return self.staleness_sum / max(self.num_visits, 1)

    def use(self) -> ClusterUse:
        """The counts so far."""
        return ClusterUse(
            num_nodes=self.num_nodes,
            num_workers=self.num_workers,
            num_visits=self.num_visits,
            visits_repeated=self.visits_repeated,
            epochs_repeated=self.epochs_repeated,
            bytes_sent=self.bytes_sent,
            mean_staleness=self.mean_staleness,
            most_stale=self.most_stale,
            shared_rows=self.shared_rows,
            visit_seconds=self.seconds,
            visit_cpu_seconds=self.cpu_seconds,
            peak_worker_mb=self.peak_worker_mb,
        )
