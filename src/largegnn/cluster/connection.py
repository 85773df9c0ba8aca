"""Connect to a Ray cluster, or start one on this machine, and install its workers for a run.

In: `none`, `local`, `auto` or HOST:PORT. Out: a connection for the duration of a run; `map_pieces` uses its workers.
The idea: Ray waits minutes for an address that does not answer, so a socket is opened to the address first, which
fails within seconds. Dashboard and usage statistics are off: no data leaves the cluster, and no port is opened beyond
the ports that Ray needs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from largegnn.cluster.nodes import ask_nodes, refuse_unfit
from largegnn.cluster.workers import RayWorkers
from largegnn.errors import InputError
from largegnn.machine.devices import num_processors, spin_variables
from largegnn.machine.pieces import use_workers
from largegnn.settings import ClusterSettings

__all__ = ["connection", "import_ray", "open_cluster"]

_log = logging.getLogger(__name__)
_TIMEOUT_SECONDS = 5.0  # for an address to answer
_START = "start one with `ray start --head`, and `ray start --address HOST:PORT` on every other machine"


def import_ray() -> Any:
    """Import Ray; if it is not installed, the error has the command that installs it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # otherwise Ray warns of a future change
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
    except ImportError:
        raise InputError(
            "a cluster needs Ray, which is not installed", fix="pip install 'largegnn[cluster]', on every machine"
        ) from None
    return ray


@contextlib.contextmanager
def connection(address: str) -> Iterator[Any]:
    """Connect Ray to a cluster for the duration of the `with`; an existing connection is used and stays open."""
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, address)
    try:
        yield ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def open_cluster(cluster: ClusterSettings, folder: Path, device: str) -> Iterator[None]:
    """Compute pieces of work on a cluster inside the `with`; with the address `none`, on this machine."""
    if cluster.address == "none":
        yield
        return
    with connection(cluster.address) as ray:
        nodes = ask_nodes(ray, folder)
        refuse_unfit(nodes)
        workers = RayWorkers(ray, cluster, nodes, device)
        count = f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}"
        _log.info("cluster: %s, %d workers on %s", count, workers.num_workers, workers.device)
        with use_workers(workers):
            yield


def _connect(ray: Any, address: str) -> None:
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    if address == "local":
        options |= {"address": "local", "num_cpus": num_processors(), "include_dashboard": False}
    else:
        options["address"] = _checked_address(address)
        # Set before workers import PyTorch; with `local`, workers inherit the environment of this process.
        options["runtime_env"] = {"env_vars": spin_variables()}
    logging.getLogger("ray").setLevel(logging.ERROR)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(**options)
    except (ConnectionError, TimeoutError, ValueError) as error:
        raise InputError(f"there is no Ray cluster at {address}", found=_first_line(error), fix=_START) from None
    except ray.exceptions.RayError as error:
        raise InputError(
            f"the cluster at {address} refuses this process",
            found=_first_line(error),
            fix="give every machine the same token of Ray, or start all of them with RAY_AUTH_MODE=disabled",
        ) from None
    except RuntimeError as error:
        if "ersion" not in str(error):
            raise
        raise InputError(
            "the cluster runs different versions from this process",
            found=" ".join(str(error).split())[:300],
            fix="install the same versions of Python and Ray on every machine",
        ) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray installs a handler that exits without a message


def _checked_address(address: str) -> str:
    """HOST:PORT of a cluster, after checking that a server answers; with `auto`, Ray searches for a cluster."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", address)
    if address == "auto":
        return address
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in address:
        raise InputError(
            "not an address of a cluster", expected="none, local, auto or HOST:PORT", found=address, fix=_START
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_TIMEOUT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address}", found=_first_line(error) or type(error).__name__, fix=_START
        ) from None
    return address


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
