"""`largegnn export`: an alignment or its embeddings as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn.cli import options
from largegnn.cli.evaluate import RunArgument
from largegnn.cli.tables import number, print_table
from largegnn.errors import InputError
from largegnn.parts import EXPORTERS

__all__ = ["export_command"]

_FORMS = f"{', '.join(EXPORTERS)}, sssom-relations, embeddings-safetensors, embeddings-npy"


def export_command(
    run: RunArgument,
    forms: Annotated[list[str], typer.Option("--form", help=f"{_FORMS}. May be repeated.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the files. Default: the run folder.")
    ] = None,
    all_candidates: Annotated[
        bool, typer.Option("--all", help="tsv and parquet: all candidate pairs, not only the accepted ones.")
    ] = False,
    base_iri: Annotated[
        str | None, typer.Option("--base-iri", help="IRI to put before names that are no IRIs, in RDF forms.")
    ] = None,
    target_base_iri: Annotated[
        str | None, typer.Option("--target-base-iri", help="The same for target names. Default: as --base-iri.")
    ] = None,
    prefix: Annotated[
        list[str] | None,
        typer.Option("--prefix", help="What a prefix of names stands for, as name=IRI. May be repeated."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write an alignment as TSV, Parquet, RDF, SSSOM, for Neo4j or Wikidata, or its embeddings."""
    from largegnn.api import open_run
    from largegnn.export import file_of_form

    result, folder = open_run(run), out or run
    paths = {form: folder / file_of_form(form) for form in dict.fromkeys(forms)}
    rows = {
        str(path): result.export(
            form,
            path,
            accepted_only=not all_candidates,
            base_iri=base_iri,
            target_base_iri=target_base_iri,
            prefixes=dict(map(_prefix, prefix or [])),
        )
        for form, path in paths.items()
    }
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    print_table("written", ("file", "rows"), [(path, number(count)) for path, count in rows.items()])


def _prefix(text: str) -> tuple[str, str]:
    name, equals, iri = text.partition("=")
    if not equals or not name or not iri:
        raise InputError(
            "--prefix takes name=IRI", found=text[:100], fix="for example --prefix dbr=http://dbpedia.org/resource/"
        )
    return name, iri
