"""`largegnn align`: from two graphs to an alignment, in a run folder."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import cost_rows, print_table

__all__ = ["align_command"]


@options.takes_request(*options.DATA_FLAGS, *options.RUN_FLAGS, folder=options.RunFolder())
def align_command(
    request: options.RunRequest,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read the input, show sizes, memory and time, and stop.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Align two graphs: every pair with a score and a confidence, every other entity with a reason."""
    from largegnn.division import warm_up

    if dry_run:
        _show_plan(request, as_json)
        return
    assert request.out is not None
    # Loading compiled code takes a moment; it goes on while the files are read. Not a daemon: one that is cut off when
    # the program ends with an error adds a traceback to it.
    threading.Thread(target=warm_up).start()
    run = request.run()
    summary = run.summary
    if as_json:
        typer.echo(json.dumps({"folder": str(request.out), **summary.to_dict(), "files": run.pages}, indent=1))
        return
    if summary.match is None:
        print_table(f"run folder {request.out}", ("stage", "seconds", "peak MB"), cost_rows(summary.costs))
        return
    _show(request.out)


def _show(out: Path) -> None:
    from largegnn.api import open_run
    from largegnn.cli.reports import print_figures, print_findings

    result = open_run(out)
    print_figures(result.summary)
    print_table(f"run folder {out}", ("stage", "seconds", "peak MB"), cost_rows(result.summary.costs))
    files = [(str(out / name), f"{rows:,}") for name, rows in result.run.pages.items()]
    if files:
        print_table("files", ("file", "rows"), files)
    print_findings(result)


def _show_plan(request: options.RunRequest, as_json: bool) -> None:
    from largegnn.errors import InputError
    from largegnn.planning.forecast import forecast  # brings torch, which takes a second

    if request.given is None:
        raise InputError("--dry-run needs the input files", fix="name them instead of --resume")
    plan = forecast(request.given, request.settings)
    if as_json:
        typer.echo(json.dumps(plan.to_dict(), indent=1))
        return
    print_table(f"plan ({plan.reason})", ("", "value"), plan.rows())
    print_table(
        "estimate for this machine, order of magnitude",
        ("stage", "seconds", "peak MB"),
        [(stage, f"{seconds:,.0f}", f"{plan.memory_mb.get(stage, 0):,.0f}") for stage, seconds in plan.seconds.items()]
        + [("all", f"{sum(plan.seconds.values()):,.0f}", f"{plan.peak_memory_mb:,.0f}")],
    )
    for warning in plan.warnings:
        typer.echo(f"warning: {warning}", err=True)
