"""Errors where there is no cluster, or one that no run can use."""

from __future__ import annotations

import dataclasses
import socket
import sys
import time
from pathlib import Path

import pytest

from largegnn.cluster.connection import connection, open_cluster
from largegnn.cluster.nodes import Node, refuse_unfit, versions_here
from largegnn.errors import InputError
from largegnn.settings import ClusterSettings
from tests.cli.small_runs import call, make_pair

GOOD = Node("1", "anna (10.0.0.1)", 4, 0, 8_000, versions_here(), sees_folder=True)


def test_without_a_cluster_nothing_is_connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with open_cluster(ClusterSettings(), tmp_path, "cpu"):
        assert not list(tmp_path.iterdir())


def test_ray_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="needs Ray") as error, connection("local"):
        pass
    assert "largegnn[cluster]" in str(error.value.fix)


@pytest.fixture
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this process were not connected to the cluster of the tests."""
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


@pytest.mark.usefixtures("_apart")
def test_an_address_that_does_not_answer(tmp_path: Path) -> None:
    started = time.monotonic()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"127.0.0.1:{taken.getsockname()[1]}"
        found = call("align", make_pair(tmp_path / "pair"), "--out", tmp_path / "run", "--cluster", dead, expect=2)
        assert f"no Ray cluster answers at {dead}" in found.stderr
        assert "ray start --head" in found.stderr
    assert not list((tmp_path / "run").glob("*.json")), "nothing was computed"
    with pytest.raises(InputError, match="not an address"), connection("ray://somewhere:10001"):
        pass
    assert time.monotonic() - started < 30


def test_nodes_that_cannot_take_part_are_named() -> None:
    refuse_unfit([GOOD])
    blind = dataclasses.replace(GOOD, name="berta (10.0.0.2)", sees_folder=False)
    with pytest.raises(InputError, match="does not see the run folder") as error:
        refuse_unfit([GOOD, blind])
    assert error.value.where == "berta (10.0.0.2)"
    old = dataclasses.replace(blind, versions=tuple((dict(versions_here()) | {"torch": "1.0"}).items()))
    with pytest.raises(InputError, match="different versions") as error:
        refuse_unfit([old])
    assert error.value.found == "torch 1.0"
    bare = dataclasses.replace(GOOD, problem="ModuleNotFoundError: No module named 'largegnn'")
    with pytest.raises(InputError, match="cannot take part") as error:
        refuse_unfit([bare])
    assert "largegnn" in str(error.value.found)
