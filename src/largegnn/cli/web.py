"""`largegnn review` and `serve`: a page to accept and reject pairs, and a reconciliation service."""

from __future__ import annotations

import getpass
import logging
import secrets
import threading
from pathlib import Path

import click

from largegnn.cli import options
from largegnn.errors import InputError

__all__ = ["review_command", "serve_command"]

_log = logging.getLogger(__name__)
_PORT = click.IntRange(0, 65535)
_host_option = click.option(
    "--host",
    default="127.0.0.1",
    help="Address to listen on. Default: this machine alone. Others are not encrypted.",
)


@click.command("review")
@options.run_argument
@click.option("--decisions", type=options.PATH, help="File of decisions. Default: decisions.jsonl in the run folder.")
@click.option("--reviewer", help="The name to suggest. Default: the login name.")
@click.option(
    "--export",
    type=options.PATH,
    help="Write the decisions to a file and stop. Name.sssom.tsv: SSSOM, else a table.",
)
@_host_option
@click.option("--port", type=_PORT, default=8765, show_default=True, help="Port to listen on. 0: any free one.")
def review_command(
    run: Path, decisions: Path | None, reviewer: str | None, export: Path | None, host: str, port: int
) -> None:
    """Open a page to accept, reject and correct pairs; every decision is saved at once."""
    from largegnn.api import open_run
    from largegnn.review.decisions import DecisionLog, write_decisions

    result = open_run(run)
    file = run / "decisions.jsonl" if decisions is None else decisions
    if export is not None:
        write_decisions(DecisionLog(file).decisions(), export, result.export_info())
        click.echo(f"decisions written to {export}")
        return
    _need_web()
    from largegnn.services.review_app import review_application
    from largegnn.services.server import listening, run_server

    token = secrets.token_urlsafe(24)
    with listening(host, port) as bound:
        session = result.review(file)
        application = review_application(
            session,
            result.export_info(),
            token=token,
            hosts=_hosts_of(host),
            reviewer=_login() if reviewer is None else reviewer,
        )
        # The page opens meanwhile.
        threading.Thread(target=session.prepare, daemon=True).start()
        run_server(application, bound, lambda address: click.echo(f"review page: http://{address}/?token={token}"))


@click.command("serve")
@options.run_argument
@click.option(
    "--side",
    type=click.Choice(["source", "target"]),
    default="target",
    show_default=True,
    help="The side of the candidates.",
)
@_host_option
@click.option("--port", type=_PORT, default=8766, show_default=True, help="Port to listen on. 0: any free one.")
def serve_command(run: Path, side: str, host: str, port: int) -> None:
    """Serve a finished run to OpenRefine and others.

    The Reconciliation Service API 0.2 is at /, counterparts in plain JSON are at /align.
    """
    from largegnn.api import open_run

    _need_web()
    from largegnn.services.guard import is_loopback
    from largegnn.services.reconciliation import reconciliation_application
    from largegnn.services.server import listening, run_server

    result = open_run(run)
    if not is_loopback(host):
        _log.warning("the service has no password: every machine that reaches %s can read the run", host)
    with listening(host, port) as bound:
        reconciler = result.reconciler(side)
        application = reconciliation_application(reconciler, result.title, result.answer, hosts=_hosts_of(host))
        # Queries can be answered meanwhile; /align is slower at first.
        threading.Thread(target=result.prepare, daemon=True).start()
        run_server(application, bound, lambda address: click.echo(f"reconciliation service: http://{address}/"))


def _need_web() -> None:
    """Raise an error where the optional packages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "the packages of the web pages are not installed", fix="pip install 'largegnn[review]'"
        ) from None


def _hosts_of(host: str) -> tuple[str, ...]:
    """The host names that a server at this address accepts."""
    # On all addresses of a machine the names cannot be listed.
    return ("*",) if host in ("0.0.0.0", "::") else ("127.0.0.1", "localhost", "::1", host)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
