"""One cluster of two nodes on this machine for all tests of this folder; skipped where Ray is not installed."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import largegnn
from largegnn.cluster.connection import import_ray
from largegnn.cluster.nodes import ask_nodes
from largegnn.cluster.workers import RayWorkers
from largegnn.settings import ClusterSettings

pytest.importorskip("ray", reason="Ray is not installed: pip install 'largegnn[cluster]'")

ROOT = Path(__file__).parents[2]
PACKAGES = Path(largegnn.__file__).parents[1]  # of the checkout, or of the environment a wheel is installed in


class Nodes:
    """A cluster of which nodes can be added and removed."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.ray: Any = import_ray()
        small = {"include_dashboard": False, "object_store_memory": 80 * 2**20, "num_cpus": 1}
        # A node that is gone is noticed after three seconds; a slow one has time to answer.
        health = {"period_ms": 1_000, "initial_delay_ms": 1_000, "timeout_ms": 8_000, "failure_threshold": 3}
        config = {"_system_config": {f"health_check_{name}": value for name, value in health.items()}}
        self._cluster = Cluster(initialize_head=True, head_node_args=small | config)
        self.address: str = self._cluster.address
        self.add()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        self.facts = ask_nodes(self.ray, None)

    def add(self) -> Any:
        """Start one more node of one processor."""
        return self._cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)

    def remove(self, node: Any) -> None:
        """Take a node away at once, with all that runs on it, and wait until the others have noticed."""
        num_before = self._num_alive()
        self._cluster.remove_node(node, allow_graceful=False)
        while self._num_alive() == num_before:
            time.sleep(0.1)

    def workers(self, **settings: Any) -> RayWorkers:
        """The workers of a run on these nodes."""
        return RayWorkers(self.ray, ClusterSettings(**settings), self.facts, "cpu")

    def _num_alive(self) -> int:
        return sum(entry["Alive"] for entry in self.ray.nodes())

    def close(self) -> None:
        self.ray.shutdown()
        self._cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    """Two nodes of one processor each; this process is connected to them."""
    before = dict(os.environ)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(PACKAGES), str(ROOT), before.get("PYTHONPATH", "")])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    found = Nodes()
    try:
        yield found
    finally:
        found.close()
        os.environ.clear()
        os.environ.update(before)
