"""`largegnn report`: write the files of a finished run again."""

from __future__ import annotations

import json

import typer

from largegnn.cli import options
from largegnn.cli.evaluate import RunArgument
from largegnn.cli.tables import number, print_table

__all__ = ["report_command"]


def report_command(run: RunArgument, as_json: options.JsonOption = False) -> None:
    """Write the files of a finished run again: report.html, report.json, pairs and unmatched entities."""
    from largegnn.pipeline import run_pipeline
    from largegnn.run import Run

    found = Run.open(run, needs="match")
    wanted = tuple(dict.fromkeys([*found.settings.report.pages, "report.html"]))
    report = found.settings.report.model_copy(update={"pages": wanted})
    settings = found.settings.model_copy(update={"report": report})
    pages = run_pipeline(run, found.given, settings, force="report").pages
    if as_json:
        typer.echo(json.dumps({str(run / name): rows for name, rows in pages.items()}, indent=1))
        return
    print_table("written", ("file", "rows"), [(str(run / name), number(rows)) for name, rows in pages.items()])
