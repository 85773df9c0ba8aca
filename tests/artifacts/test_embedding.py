"""Test that the uses of a cluster by several trainings are joined."""

from __future__ import annotations

from dataclasses import replace

from largegnn.artifacts import ClusterUse

USE = ClusterUse(2, 3, 10, 500, 0.5, 2, 40, 8.0, 6.0, 600.0)


def test_uses_of_a_cluster_join() -> None:
    assert ClusterUse.joined([USE]) == USE
    later = replace(
        USE, num_nodes=1, num_workers=4, num_visits=30, mean_staleness=1.5, most_stale=1, peak_worker_mb=700.0
    )
    both = ClusterUse.joined([USE, later])
    assert (both.num_nodes, both.num_workers, both.most_stale, both.peak_worker_mb) == (2, 4, 2, 700.0)
    assert (both.num_visits, both.bytes_sent, both.visit_seconds) == (40, 1000, 16.0)
    assert both.mean_staleness == (10 * 0.5 + 30 * 1.5) / 40
