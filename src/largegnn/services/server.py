"""Run a web application on a socket of this machine until it is interrupted.

In: an application and an address. Out: nothing; the address is reported once the socket is bound.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from largegnn.errors import InputError

__all__ = ["listening", "run_server"]

_MAX_WAITING = 2048  # connections that are not accepted yet
_MAX_CONCURRENT = 512  # further requests at the same moment are refused with status 503


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Bind a socket, and close it at the end; port 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is given as TCP; without it, an answer may wait 40 ms for more data.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except (OSError, OverflowError) as error:
            raise InputError(
                "the server cannot listen at this address",
                where=f"{host}:{port}",
                found=getattr(error, "strerror", None) or str(error),
                fix="name another port with --port, or 0 for any free port",
            ) from None
        yield bound


def run_server(application: Any, bound: socket.socket, report: Callable[[str], None]) -> None:
    """Serve until the process is interrupted; `report` is called with the address, such as `127.0.0.1:8765`."""
    bound.listen(_MAX_WAITING)
    host, port = bound.getsockname()[:2]
    config = uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MAX_CONCURRENT,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=3,
        lifespan="off",
        ws="none",
    )
    report(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    uvicorn.Server(config).run(sockets=[bound])
