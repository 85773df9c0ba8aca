"""Connect to a Ray cluster, or start one on this machine, and install its workers for a run.

In: `none`, `local`, `auto` or HOST:PORT. Out: a connection for as long as a run takes; `map_pieces` uses its workers.
The idea: Ray waits minutes for an address that does not answer, so the address is tried first, which takes seconds.
No dashboard, no usage statistics: no data leaves the cluster, and no port is opened beyond those Ray needs.
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
_SECONDS = 5.0  # for an address to answer
_START = "start one with `ray start --head`, and `ray start --address HOST:PORT` on every other machine"
# The first bytes of a client of HTTP/2, which Ray's server speaks: the preface and empty settings.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
_SETTINGS_FRAME = 4


def import_ray() -> Any:
    """Import Ray; where it is missing, the error has the command that installs it."""
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
    """Ray, connected to a cluster for as long as the `with` lasts; an open connection is used and stays open."""
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
    """Compute pieces of work on a cluster inside the `with`; without an address on this machine."""
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
        options["address"] = _checked_address(ray, address)
        # For the workers before they load PyTorch; those of this machine have the environment of this process.
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
            "the cluster runs other versions than this process",
            found=" ".join(str(error).split())[:300],
            fix="install the same versions of Python and Ray on every machine",
        ) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)  # Ray sets its own, which ends without a message


def _checked_address(ray: Any, address: str) -> str:
    """HOST:PORT of a cluster at which a Ray server answers; `auto` where Ray itself finds one quickly."""
    found: str | None = address
    if address == "auto":
        found = os.environ.get("RAY_ADDRESS") or _last_started(ray)
        if found is None:
            return "auto"  # Ray searches the processes of this machine, which takes no time
    assert found is not None
    host, _, port = found.rpartition(":")
    if not host or not port.isdigit() or "://" in found:
        raise InputError(
            "not an address of a cluster", expected="none, local, auto or HOST:PORT", found=found, fix=_START
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
            f"the server at {found} is not a Ray cluster", fix="name the port of `ray start`, 6379 if none was given"
        )
    return found


def _last_started(ray: Any) -> str | None:
    """The address of the cluster that was last started on this machine, from Ray's own notes."""
    try:
        from ray._private.services import find_bootstrap_address
    except ImportError:  # not a public name
        return None
    found: str | None = find_bootstrap_address(None)
    return found


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:300]
