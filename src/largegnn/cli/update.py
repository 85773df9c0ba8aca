"""`largegnn update`: a finished run grows by what came later, without training again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import number, print_table

if TYPE_CHECKING:
    from largegnn.artifacts import UpdateCost, UpdateReport

__all__ = ["update_command"]


def update_command(
    run: Annotated[Path, typer.Argument(help="A finished run folder. It is not changed.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new run folder.")],
    source_triples: Annotated[
        list[Path] | None, typer.Option("--source-triples", help="Triples to add to the source graph. May be repeated.")
    ] = None,
    target_triples: Annotated[
        list[Path] | None, typer.Option("--target-triples", help="Triples to add to the target graph. May be repeated.")
    ] = None,
    seeds: Annotated[
        Path | None, typer.Option("--seeds", help="More known links. They support other pairs and are not trained on.")
    ] = None,
    test_links: Annotated[Path | None, typer.Option("--test-links", help="More links that only measure.")] = None,
    form: Annotated[str, typer.Option("--format", help="Format of the triple files.")] = "auto",
    device: Annotated[str | None, typer.Option("--device", help="Device: auto, cpu or cuda.")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Ray cluster: none, local, auto or HOST:PORT.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Add triples and entities to a finished run and align them with its model. Nothing is trained."""
    from largegnn.api import update
    from largegnn.cli.reports import print_figures, print_findings

    result = update(
        run,
        source_triples,
        target_triples,
        seeds,
        test_links=test_links,
        out=out,
        form=form,
        device=device,
        cluster=cluster,
    )
    summary = result.summary
    if as_json:
        typer.echo(json.dumps({"folder": str(out), **summary.to_dict(), "files": result.run.pages}, indent=1))
        return
    assert summary.update is not None
    _show(summary.update)
    print_figures(summary)
    print_findings(result)


def _show(report: UpdateReport) -> None:
    rows = [
        (label, *(number(count) for count in sides))
        for label, sides in (
            ("triples", report.triples),
            ("relations", report.relations),
            ("entities", report.entities),
            ("embedded from neighbours", report.embedded),
            ("  beside a known entity", report.beside_known),
            ("not covered: nothing known in reach", report.not_reached),
        )
    ]
    print_table(f"added to {report.run}, nothing trained", ("", "source", "target"), rows)
    typer.echo(f"Known neighbours of an entity beside known ones: {report.known_neighbors:.1f} on average.")
    if report.formerly_isolated:
        typer.echo(f"Entities without any triple before, embedded like new ones: {number(report.formerly_isolated)}.")
    if report.seeds:
        typer.echo(f"Known links added: {number(report.seeds)}.")
    pairs = report.pairs
    if pairs is not None:
        typer.echo(f"Pairs of new entities: {number(pairs.pairs)}, both new in {number(pairs.pairs_both_new)}.")
        if pairs.test_links:
            found, links = number(pairs.test_links_found), number(pairs.test_links)
            typer.echo(f"Test links of new entities among the pairs: {found} of {links}.")
    typer.echo(_cost_line(report.cost) + "\n")


def _cost_line(cost: UpdateCost | None) -> str:
    """What an update costs against training on everything, in one sentence."""
    if cost is None:
        return "Cost against a full run: not known, as there are no valid links to measure it by."
    return (
        f"Cost against a full run, measured on {number(cost.links)} valid links: {number(cost.found_added)} are found "
        f"with one end as if added later, {number(cost.found_trained)} with both ends trained."
    )
