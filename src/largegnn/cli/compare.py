"""`largegnn compare`: runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import print_table

__all__ = ["compare_command"]


def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders.")], as_json: options.JsonOption = False
) -> None:
    """Compare runs: the settings that differ, and the figures."""
    from largegnn.figures import compare_runs

    found = compare_runs(runs)
    if as_json:
        reports = {name: summary.to_dict() for name, summary in found.summaries.items()}
        typer.echo(json.dumps({"settings": found.settings, "figures": found.figures, "reports": reports}, indent=1))
        return
    names = list(found.summaries)
    rows = [(key, *(str(values[name]) for name in names)) for key, values in found.settings.items()]
    print_table("settings that differ", ("setting", *names), rows or [("none", *("" for _ in names))])
    figures = [(label, *(_written(values[name]) for name in names)) for label, values in found.figures.items()]
    print_table("figures", ("", *names), figures)


def _written(value: float | int | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}" if value <= 1 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else value
