"""Define `largegnn review` and `serve`: a page to accept and reject pairs, and a reconciliation service."""

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
    help="Address to listen on. Default: this machine only. Connections from other machines are not encrypted.",
)


@click.command("review")
@options.run_argument
@click.option(
    "--decisions", type=options.PATH, help="The file of decisions. Default: decisions.jsonl in the run folder."
)
@click.option("--reviewer", help="The reviewer name that the page suggests. Default: the login name.")
@click.option(
    "--export",
    type=options.PATH,
    help="Write the decisions to this file and exit: as SSSOM if it ends in .sssom.tsv, else as a table.",
)
@_host_option
@click.option("--port", type=_PORT, default=8765, show_default=True, help="Port to listen on. 0: any free port.")
def review_command(
    run: Path, decisions: Path | None, reviewer: str | None, export: Path | None, host: str, port: int
) -> None:
    """Open a page to accept, reject and correct pairs. Every decision is saved at once."""
    from largegnn.api import open_run
    from largegnn.review.decisions import DecisionLog, write_decisions

    result = open_run(run)
    file = run / "decisions.jsonl" if decisions is None else decisions
    if export is not None:
        write_decisions(DecisionLog(file).decisions(), export, result.export_info())
        click.echo(f"decisions written to {export}")
        return
    _check_web_packages()
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
        # In the background, so that the page opens at once.
        threading.Thread(target=session.prepare, daemon=True).start()
        run_server(application, bound, lambda address: click.echo(f"review page: http://{address}/?token={token}"))


@click.command("serve")
@options.run_argument
@click.option(
    "--side",
    type=click.Choice(["source", "target"]),
    default="target",
    show_default=True,
    help="The graph whose entities are proposed.",
)
@_host_option
@click.option("--port", type=_PORT, default=8766, show_default=True, help="Port to listen on. 0: any free port.")
def serve_command(run: Path, side: str, host: str, port: int) -> None:
    """Serve a finished run to OpenRefine and other programs.

    The address / offers the Reconciliation Service API 0.2, /align gives counterparts as plain JSON.
    """
    from largegnn.api import open_run

    _check_web_packages()
    from largegnn.services.guard import is_loopback
    from largegnn.services.reconciliation import reconciliation_application
    from largegnn.services.server import listening, run_server

    result = open_run(run)
    if not is_loopback(host):
        _log.warning("the service has no password: every machine that reaches %s can read the run", host)
    with listening(host, port) as bound:
        reconciler = result.reconciler(side)
        application = reconciliation_application(reconciler, result.title, result.answer, hosts=_hosts_of(host))
        # In the background: queries are answered at once, /align is slower at first.
        threading.Thread(target=result.prepare, daemon=True).start()
        run_server(application, bound, lambda address: click.echo(f"reconciliation service: http://{address}/"))


def _check_web_packages() -> None:
    """Raise an error if the optional packages of the web pages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "the packages of the web pages are not installed", fix="pip install 'largegnn[review]'"
        ) from None


def _hosts_of(host: str) -> tuple[str, ...]:
    """Return the host names that a server at this address accepts."""
    # The host names of all addresses of a machine cannot be listed.
    return ("*",) if host in ("0.0.0.0", "::") else ("127.0.0.1", "localhost", "::1", host)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
