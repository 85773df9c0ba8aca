"""`largegnn serve`: a finished run as a reconciliation service for OpenRefine and others."""

from __future__ import annotations

import logging
import threading
from typing import Annotated

import typer

from largegnn.cli.evaluate import RunArgument
from largegnn.cli.review import HostOption, PortOption, hosts_of, need_web
from largegnn.errors import InputError

__all__ = ["serve_command"]

_log = logging.getLogger(__name__)


def serve_command(
    run: RunArgument,
    side: Annotated[str, typer.Option("--side", help="The side of the candidates: source or target.")] = "target",
    host: HostOption = "127.0.0.1",
    port: PortOption = 8766,
) -> None:
    """Serve a finished run: the Reconciliation Service API 0.2 at /, counterparts in plain JSON at /align."""
    from largegnn.api import open_run

    if side not in ("source", "target"):
        raise InputError(f"unknown side {side[:40]!r}", expected="source or target")
    need_web()
    from largegnn.services.guard import is_loopback
    from largegnn.services.reconciliation import reconciliation_application
    from largegnn.services.server import listening, run_server

    result = open_run(run)
    if not is_loopback(host):
        _log.warning("the service has no password: every machine that reaches %s can read the run", host)
    with listening(host, port) as bound:
        reconciler = result.reconciler(side)
        application = reconciliation_application(reconciler, result.title, result.answer, hosts=hosts_of(host))
        # Queries can be answered meanwhile; /align is slower at first.
        threading.Thread(target=result.prepare, daemon=True).start()
        run_server(application, bound, lambda address: typer.echo(f"reconciliation service: http://{address}/"))
