"""Define `largegnn align`, `train` and `update`, the commands that compute a run.

They start the pipeline in a run folder and print its figures, costs and findings as tables, or as JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from largegnn.cli import options
from largegnn.cli.printing import number, print_costs, print_figures, print_findings, print_table

if TYPE_CHECKING:
    from largegnn.artifacts import UpdateReport
    from largegnn.result import AlignmentResult

__all__ = ["align_command", "train_command", "update_command"]


@click.command("align")
@options.takes_request(*options.DATA_FLAGS, *options.RUN_FLAGS, folder=options.RunFolder())
@click.option("--dry-run", is_flag=True, help="Read the input, show sizes, memory and time, and stop.")
@options.json_option
def align_command(request: options.RunRequest, dry_run: bool, as_json: bool) -> None:
    """Align two graphs: every pair with a score and a confidence, every other entity with a reason."""
    from largegnn.result import AlignmentResult

    if dry_run:
        _show_plan(request, as_json)
        return
    options.warm_up_in_background()
    run = request.run()
    if as_json:
        _echo_json({"folder": str(request.out), **run.summary.to_dict(), "files": run.pages})
    elif "match" in run.finished:
        result = AlignmentResult(run)
        print_figures(result.summary)
        _print_costs_and_files(result)
        print_findings(result)
    else:
        print_costs(f"run folder {run.folder}", run.costs())


@click.command("train")
@options.takes_request(
    *options.DATA_FLAGS, "--seed", "--device", "--cluster", folder=options.RunFolder(last="integrate")
)
@options.json_option
def train_command(request: options.RunRequest, as_json: bool) -> None:
    """Divide and train: everything up to one vector for each entity."""
    summary = request.run().summary
    if as_json:
        _echo_json({"folder": str(request.out), **summary.to_dict()})
        return
    history = () if summary.training is None else summary.training.history
    rows = [
        (str(epoch.member + 1), str(epoch.epoch + 1), f"{epoch.loss:.3f}", f"{epoch.valid_hits:.4f}")
        for epoch in history
        if epoch.valid_hits is not None
    ]
    if rows:
        title = "H@1 of the valid links by cosine, mean of both directions"
        print_table(title, ("member", "epoch", "loss", "H@1"), rows)
    print_costs(f"run folder {request.out}", summary.costs)


@click.command("update")
@click.argument("run", type=options.PATH, help="A finished run folder. It is not changed.")
@click.option("--out", "-o", type=options.PATH, required=True, help="The new run folder.")
@click.option(
    "--source-triples", type=options.PATH, multiple=True, help="Triples to add to the source graph. May be repeated."
)
@click.option(
    "--target-triples", type=options.PATH, multiple=True, help="Triples to add to the target graph. May be repeated."
)
@click.option(
    "--seeds", type=options.PATH, help="Further known links. They support other pairs and are not trained on."
)
@click.option("--test-links", type=options.PATH, help="Further links that are used only for measuring.")
@click.option("--format", "form", default="auto", show_default=True, help="Format of the triple files.")
@click.option("--device", help="Device: auto, cpu or cuda.")
@click.option("--cluster", help="Ray cluster: none, local, auto or HOST:PORT.")
@options.json_option
def update_command(run: Path, as_json: bool, **inputs: Any) -> None:
    """Add triples and entities to a finished run and align them with its model. Nothing is trained."""
    from largegnn.api import update

    result = update(run, **inputs)
    summary = result.summary
    if as_json:
        _echo_json({"folder": str(result.run.folder), **summary.to_dict(), "files": result.run.pages})
        return
    assert summary.update is not None
    _show_update(summary.update)
    print_figures(summary)
    print_findings(result)


def _echo_json(facts: dict[str, Any]) -> None:
    click.echo(json.dumps(facts, indent=1))


def _print_costs_and_files(result: AlignmentResult) -> None:
    folder = result.run.folder
    print_costs(f"run folder {folder}", result.summary.costs)
    if result.run.pages:
        rows = [(str(folder / name), number(rows)) for name, rows in result.run.pages.items()]
        print_table("files", ("file", "rows"), rows)


def _show_plan(request: options.RunRequest, as_json: bool) -> None:
    from largegnn.errors import InputError
    from largegnn.planning.forecast import forecast  # imports torch, which takes a second

    if request.given is None:
        raise InputError("--dry-run needs the input files", fix="name the input files instead of using --resume")
    plan = forecast(request.given, request.settings)
    if as_json:
        _echo_json(plan.to_dict())
        return
    print_table(f"plan ({plan.reason})", ("", "value"), plan.rows())
    print_table(
        "estimate for this machine (order of magnitude)",
        ("step", "seconds", "peak MB"),
        [(step, f"{seconds:,.0f}", f"{plan.memory_mb.get(step, 0):,.0f}") for step, seconds in plan.seconds.items()]
        + [("all", f"{sum(plan.seconds.values()):,.0f}", f"{plan.peak_memory_mb:,.0f}")],
    )
    for warning in plan.warnings:
        click.echo(f"warning: {warning}", err=True)


def _show_update(report: UpdateReport) -> None:
    rows = [
        (label, *(number(count) for count in both_sides))
        for label, both_sides in (
            ("triples", report.triples),
            ("relations", report.relations),
            ("entities", report.entities),
            ("entities with a vector from neighbours", report.embedded),
            ("  next to a known entity", report.beside_known),
            ("not covered: no path to a known entity", report.not_reached),
        )
    ]
    print_table(f"added to {report.run}, nothing trained", ("", "source", "target"), rows)
    click.echo(f"New entities next to a known one have {report.known_neighbors:.1f} known neighbours on average.")
    if report.formerly_isolated:
        click.echo(
            f"Entities that had no triple before and are embedded like new ones: {number(report.formerly_isolated)}."
        )
    if report.seeds:
        click.echo(f"Known links added: {number(report.seeds)}.")
    pairs = report.pairs
    if pairs is not None:
        click.echo(f"Pairs of new entities: {number(pairs.pairs)}, both new in {number(pairs.pairs_both_new)}.")
        if pairs.test_links:
            found, links = number(pairs.test_links_found), number(pairs.test_links)
            click.echo(f"Test links of new entities among the pairs: {found} of {links}.")
    cost = report.cost
    if cost is None:
        click.echo("Loss of accuracy against a full run: not known, since there are no valid links.\n")
    else:
        click.echo(
            f"Loss of accuracy against a full run, measured on {number(cost.links)} valid links: "
            f"{number(cost.found_added)} are found if one end is treated as added later, "
            f"{number(cost.found_trained)} if both ends are trained.\n"
        )
