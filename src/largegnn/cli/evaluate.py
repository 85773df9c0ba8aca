"""`largegnn evaluate`: the figures of a run with their protocol; `largegnn compare`: runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from largegnn.cli import options
from largegnn.cli.reports import print_expectation, print_figures
from largegnn.cli.tables import print_table, share
from largegnn.errors import InputError
from largegnn.result import report_of
from largegnn.runs.pipeline import flat_settings, resume_input, run_pipeline
from largegnn.runs.store import RunStore
from largegnn.stages import Run

__all__ = ["compare_command", "evaluate_command"]

_RunArgument = Annotated[Path, typer.Argument(help="a run folder")]


def evaluate_command(run: _RunArgument, as_json: options.JsonOption = False) -> None:
    """Measure a run by its test links, in the ideal and the real setting."""
    report = _report(run)
    if as_json:
        typer.echo(json.dumps(report, indent=1))
        return
    if report["ideal"] is None:
        typer.echo("the run has no test links to measure it by")
    print_figures(report)
    print_expectation(report)
    for name, title in (("valid", "halves of the valid links, each judged by the other"), ("test", "test links")):
        table = report["reliability"][name]
        if table:
            rows = [
                (
                    f"{row['from']:.1f} to {row['to']:.1f}",
                    f"{row['pairs']:,}",
                    share(row["confidence"]),
                    share(row["right"]),
                )
                for row in table
                if row["pairs"]
            ]
            print_table(f"reliability by {title}", ("confidence", "pairs", "mean", "right"), rows)


def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="two or more run folders")], as_json: options.JsonOption = False
) -> None:
    """Set runs side by side: the settings that differ, and the figures."""
    if len({folder.resolve() for folder in runs}) < 2:
        raise InputError("there is nothing to compare", expected="two or more run folders", found="one")
    reports = {str(folder): _report(folder) for folder in runs}
    flat = {name: flat_settings(report["settings"]) for name, report in reports.items()}
    keys = sorted({key for values in flat.values() for key in values})
    different = [key for key in keys if len({json.dumps(values.get(key)) for values in flat.values()}) > 1]
    rows = [(key, *(str(flat[name].get(key)) for name in reports)) for key in different]
    figures = [(label, *(_figure(report, path) for report in reports.values())) for label, path in _FIGURES.items()]
    if as_json:
        settings = {key: {name: flat[name].get(key) for name in reports} for key in different}
        typer.echo(json.dumps({"settings": settings, "reports": reports}, indent=1))
        return
    print_table("settings that differ", ("setting", *reports), rows or [("none", *("" for _ in reports))])
    print_table("figures", ("", *reports), figures)


def _report(folder: Path) -> dict[str, Any]:
    """The report of a run whose evaluation is made if it is not there yet."""
    given, settings = resume_input(folder)
    run = Run(settings, given, RunStore(folder))
    if "match" not in run.finished():
        raise InputError(
            "the run has no pairs to measure yet",
            where=str(folder),
            found=f"stages up to {run.finished()[-1]}" if run.finished() else "no stage",
            fix=f"finish it: largegnn align --resume --out {folder}",
        )
    # What was measured is only read: a folder may be looked at while it cannot be written, and without its input.
    if "evaluate" not in run.finished():
        run = run_pipeline(folder, given, settings, first="evaluate")
    return report_of(run)


_FIGURES: dict[str, tuple[str, ...]] = {
    "seeds from": ("protocol", "seeds_from"),
    "test links": ("protocol", "num_test_links"),
    **{f"H@1 {name}": ("ideal", name, "source_to_target", "hits@1") for name in ("cosine", "csls", "transport")},
    "H@1 transport+support": ("ideal", "transport+support", "source_to_target", "hits@1"),
    "MRR csls": ("ideal", "csls", "source_to_target", "mrr"),
    **{f"{key} at the threshold": ("real", "threshold", key) for key in ("precision", "recall", "f1")},
    "F1 mutual 5-NN": ("real", "mutual_5nn", "f1"),
    "expected precision": ("threshold", "expected_precision"),
    "pairs": ("pairs",),
    "seconds of training": ("stages", "train", "seconds"),
    "peak MB of training": ("stages", "train", "peak_memory_mb"),
}


def _figure(report: dict[str, Any], path: tuple[str, ...]) -> str:
    value: Any = report
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return "-"
    return (
        f"{value:.4f}"
        if isinstance(value, float) and value <= 1
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
