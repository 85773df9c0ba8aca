"""`largegnn update`: a finished run grows by what came later, without training anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from largegnn import api
from largegnn.cli import options
from largegnn.cli.reports import print_expectation, print_figures
from largegnn.cli.tables import number, print_table
from largegnn.result import AlignmentResult

__all__ = ["update_command"]


def update_command(
    run: Annotated[Path, typer.Argument(help="a finished run folder; it is not changed")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the new run folder")],
    source_triples: Annotated[
        list[Path] | None, typer.Option("--source-triples", help="triples to add to the source graph; may be repeated")
    ] = None,
    target_triples: Annotated[
        list[Path] | None, typer.Option("--target-triples", help="triples to add to the target graph; may be repeated")
    ] = None,
    seeds: Annotated[
        Path | None, typer.Option("--seeds", help="more known links; they back other pairs, and are not trained on")
    ] = None,
    test_links: Annotated[Path | None, typer.Option("--test-links", help="more links for the report only")] = None,
    form: Annotated[str, typer.Option("--format", help="format of the triple files")] = "auto",
    device: options.DeviceOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Embed and align triples and entities that came later, with the trained model, and say what that costs."""
    from largegnn.runs.update import update_facts  # brings torch, which takes a second

    result = api.update(
        run, source_triples, target_triples, seeds, test_links=test_links, out=out, form=form, device=device
    )
    facts = update_facts(result.run)
    files = _write_files(result, facts, out)
    if as_json:
        typer.echo(json.dumps({"folder": str(out), "files": files, "update": facts, **result.report}, indent=1))
        return
    _show(facts)
    print_figures(result.report)
    print_expectation(result.report)
    print_table("files", ("file", "rows"), [(str(out / name), number(rows)) for name, rows in files.items()])


def _write_files(result: AlignmentResult, facts: dict[str, Any], out: Path) -> dict[str, int]:
    """The files of a finished run, with the rows in each; the report says what the update was."""
    files = {"alignment.tsv": result.to_tsv(out / "alignment.tsv")}
    files["alignment.parquet"] = result.to("parquet", out / "alignment.parquet", accepted_only=False)
    store, left_out = result.run.store, result.left_out
    assert store is not None
    store.write_text("report.json", json.dumps({**result.report, "update": facts}, indent=1) + "\n")
    store.write_text("left_out.tsv", left_out.write_csv(separator="\t", quote_style="never"))
    return {**files, "left_out.tsv": len(left_out)}


def _show(facts: dict[str, Any]) -> None:
    rows = [
        (label, *(number(count) for count in facts[key]))
        for label, key in (
            ("triples", "triples"),
            ("relations", "relations"),
            ("entities", "entities"),
            ("embedded from neighbours", "embedded"),
            ("  beside a known entity", "beside_known"),
            ("not covered: nothing known in reach", "not_reached"),
        )
    ]
    print_table(f"added to {facts['run']}, nothing trained", ("", "source", "target"), rows)
    typer.echo(f"known neighbours of an entity beside known ones: {facts['known_neighbors']:.1f} on average")
    if facts["formerly_isolated"]:
        typer.echo(f"entities without any triple before, embedded like new ones: {number(facts['formerly_isolated'])}")
    if facts["seeds"]:
        typer.echo(f"known links added: {number(facts['seeds'])}")
    typer.echo(f"pairs of new entities: {number(facts['pairs'])}, both new in {number(facts['pairs_both_new'])}")
    if facts["test_links"]:
        found, links = number(facts["test_links_found"]), number(facts["test_links"])
        typer.echo(f"test links of new entities among the pairs: {found} of {links}")
    typer.echo(_cost_line(facts["cost"]) + "\n")


def _cost_line(cost: dict[str, Any] | None) -> str:
    """What an update costs against training on everything, in one sentence."""
    if cost is None:
        return "cost against a full run: not known, as there are no valid links to measure it by"
    added, trained, links = (number(cost[key]) for key in ("found_added", "found_trained", "links"))
    ratio = "" if cost["ratio"] is None else f" {cost['ratio']:.2f} times as often as a trained one"
    return (
        f"cost against a full run, at least (measured on valid links): an entity added later is found{ratio} "
        f"({added} of {links} valid links instead of {trained} of {links})"
    )
