"""The one door to Ray: a cluster that is there, or one started here, and a clear error where there is neither.

In: `none`, `local`, `auto` or HOST:PORT. Out: a connection for as long as a run takes, and a pool of workers in it.
The idea: Ray waits minutes for an address where nobody answers, so the address is asked first, which takes seconds.
No dashboard, no usage statistics: nothing leaves the cluster, and no port is opened beyond those Ray needs.
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

from largegnn.cluster.nodes import Node, ask_nodes, refuse_unfit
from largegnn.cluster.pool import RayPool
from largegnn.errors import InputError
from largegnn.machine.devices import num_processors
from largegnn.machine.worker_pool import using_pool
from largegnn.settings import ClusterSettings

__all__ = ["connection", "import_ray", "open_cluster"]

_log = logging.getLogger(__name__)
_SECONDS = 5.0  # for an address to answer
_START = "start one with `ray start --head`, and `ray start --address HOST:PORT` on every other machine"
# What every speaker of HTTP/2, such as Ray's server, is greeted with: the preface and empty settings.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS_FRAME = 4


def import_ray() -> Any:
    """Ray itself, or an error that says how to install it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else it warns of a change to come
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
    """Ray, connected to a cluster; one that this process is connected to already is used and left as it is."""
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
    """Give pieces of work to a cluster inside the `with`; without an address everything happens here."""
    if cluster.address == "none":
        yield
        return
    with connection(cluster.address) as ray:
        nodes = ask_nodes(ray, folder)
        refuse_unfit(nodes)
        pool = RayPool(ray, cluster, nodes, device)
        _log.info("cluster: %s", _described(nodes, pool))
        with using_pool(pool):
            yield


def _described(nodes: list[Node], pool: RayPool) -> str:
    count = f"{len(nodes)} node{'s' if len(nodes) != 1 else ''}"
    return f"{count}, {pool.num_workers} workers on {pool.device}"


def _connect(ray: Any, address: str) -> None:
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR, "configure_logging": False}
    if address == "local":
        how |= {"address": "local", "num_cpus": num_processors(), "include_dashboard": False}
    else:
        how["address"] = _answering(ray, address)
    logging.getLogger("ray").setLevel(logging.ERROR)
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(**how)
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
            "the cluster runs other versions than this process",
            found=" ".join(str(error).split())[:300],
            fix="install the same versions of Python and Ray on every machine",
        ) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray sets its own, which ends without a word


def _answering(ray: Any, address: str) -> str:
    """The address itself if a Ray server answers there."""
    found: str | None = address
    if address == "auto":
        found = os.environ.get("RAY_ADDRESS") or _last_started(ray)
        if found is None:
            return "auto"  # Ray looks at the processes of this machine, which takes no time
    assert found is not None
    host, _, port = found.rpartition(":")
    if not host or not port.isdigit() or "://" in found:
        raise InputError(
            "no such address of a cluster", expected="none, local, auto or HOST:PORT", found=found, fix=_START
        )
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS) as line:
            line.settimeout(_SECONDS)
            line.sendall(_GREETING)
            answer = line.recv(9)
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {found}", found=_first_line(error) or type(error).__name__, fix=_START
        ) from None
    if os.environ.get("RAY_USE_TLS", "0") != "1" and (len(answer) < 4 or answer[3] != _SETTINGS_FRAME):
        raise InputError(
            f"what answers at {found} is no Ray cluster", fix="name the port of `ray start`, 6379 if none was given"
        )
    return found


def _last_started(ray: Any) -> str | None:
    """The address of the cluster that was last started on this machine, as Ray notes it."""
    try:
        from ray._private.services import find_bootstrap_address
    except ImportError:  # not a public name
        return None
    found: str | None = find_bootstrap_address(None)
    return found


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
