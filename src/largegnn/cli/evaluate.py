"""`largegnn evaluate`: the figures of a run with their protocol."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options
from largegnn.errors import InputError

__all__ = ["RunArgument", "evaluate_command"]

RunArgument = Annotated[Path, typer.Argument(help="A run folder.")]
_GOLD = ("auto", "full", "partial")


def evaluate_command(
    run: RunArgument,
    test_links: Annotated[
        Path | None,
        typer.Option("--test-links", help="Links to judge by instead of the run's own. Nothing is written."),
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option(
            "--gold",
            help="full: the links are complete, so pairs outside them are wrong. partial: pairs that touch none of "
            "them are not judged. Default: auto, full where every entity of a side has a link.",
        ),
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Skip test links that name unknown entities.")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Measure a run by test links, in the ideal and the real setting."""
    from largegnn.cli.reports import print_figures, print_findings, print_reliability
    from largegnn.figures import evaluate_by, evaluated_run
    from largegnn.result import AlignmentResult
    from largegnn.run import Run

    if gold is not None and gold not in _GOLD:
        raise InputError(f"there is no gold {gold[:100]!r}", expected=", ".join(_GOLD))
    if test_links is None and gold is None:
        result = AlignmentResult(evaluated_run(run))
        summary = result.summary
    else:
        result = AlignmentResult(Run.open(run, needs="match"))
        evaluation = evaluate_by(result.run, test_links, gold, skip_unknown=skip_unknown)
        summary = dataclasses.replace(result.summary, evaluation=evaluation)
    if as_json:
        typer.echo(json.dumps(summary.to_dict(), indent=1))
        return
    assert summary.evaluation is not None
    assert summary.match is not None
    if summary.evaluation.ideal is None:
        typer.echo("The run has no test links to measure it by. Give some with --test-links FILE.")
    print_figures(summary)
    print_reliability("halves of the valid links, each judged by the other", summary.match.reliability)
    print_reliability("test links", summary.evaluation.reliability)
    print_findings(result)
