"""`largegnn review`: a page on this machine to accept and reject pairs."""

from __future__ import annotations

import getpass
import secrets
import threading
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli.evaluate import RunArgument
from largegnn.errors import InputError

__all__ = ["HostOption", "PortOption", "hosts_of", "need_web", "review_command"]

HostOption = Annotated[
    str,
    typer.Option("--host", help="Address to listen on. Default: this machine alone. Others are not encrypted."),
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on. 0: any free one.")]


def review_command(
    run: RunArgument,
    decisions: Annotated[
        Path | None, typer.Option("--decisions", help="File of decisions. Default: decisions.jsonl in the run folder.")
    ] = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", help="The name to suggest. Default: the login name.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write the decisions to a file and stop. Name.sssom.tsv: SSSOM, else a table."),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8765,
) -> None:
    """Open a page to accept, reject and correct pairs; every decision is saved at once."""
    from largegnn.api import open_run
    from largegnn.review.decisions import DecisionLog

    result = open_run(run)
    file = run / "decisions.jsonl" if decisions is None else decisions
    if export is not None:
        from largegnn.review.decisions import write_decisions

        write_decisions(DecisionLog(file).decisions(), export, result.export_info())
        typer.echo(f"decisions written to {export}")
        return
    need_web()
    from largegnn.services.review_app import review_application
    from largegnn.services.server import listening, run_server

    token = secrets.token_urlsafe(24)
    with listening(host, port) as bound:
        session = result.review(file)
        application = review_application(
            session,
            result.export_info(),
            token=token,
            hosts=hosts_of(host),
            reviewer=_login() if reviewer is None else reviewer,
        )
        # The page opens meanwhile.
        threading.Thread(target=session.prepare, daemon=True).start()
        run_server(application, bound, lambda address: typer.echo(f"review page: http://{address}/?token={token}"))


def need_web() -> None:
    """Raise an error where the optional packages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise InputError(
            "the packages of the web pages are not installed", fix="pip install 'largegnn[review]'"
        ) from None


def hosts_of(host: str) -> tuple[str, ...]:
    """The host names that a server at this address accepts."""
    # On all addresses of a machine the names cannot be listed.
    return ("*",) if host in ("0.0.0.0", "::") else ("127.0.0.1", "localhost", "::1", host)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
