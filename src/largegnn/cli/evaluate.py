"""`largegnn evaluate`: the figures of a run with their protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options

__all__ = ["RunArgument", "evaluate_command"]

RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]


def evaluate_command(run: RunArgument, as_json: options.JsonOption = False) -> None:
    """Measure a run by its test links, in the ideal and the real setting."""
    from largegnn.cli.reports import print_figures, print_findings, print_reliability
    from largegnn.result import AlignmentResult
    from largegnn.runs.evaluation import evaluated_run

    result = AlignmentResult(evaluated_run(run))
    summary = result.summary
    if as_json:
        typer.echo(json.dumps(summary.to_dict(), indent=1))
        return
    assert summary.evaluation is not None and summary.match is not None
    if summary.evaluation.ideal is None:
        typer.echo("The run has no test links to measure it by.")
    print_figures(summary)
    print_reliability("halves of the valid links, each judged by the other", summary.match.reliability)
    print_reliability("test links", summary.evaluation.reliability)
    print_findings(result)
