"""`largegnn export`: an alignment or its embeddings as files; `largegnn explain`: why an entity has its pair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from largegnn import api
from largegnn.cli import options
from largegnn.cli.tables import number, print_table
from largegnn.errors import InputError
from largegnn.export import EMBEDDING_FORMS, ENTITY_LIST, EXPORTERS

__all__ = ["explain_command", "export_command"]

_FORMS = {
    "tsv": "alignment.tsv",
    "parquet": "alignment.parquet",
    "sameas": "sameas.nt",
    "sssom": "alignment.sssom.tsv",
    "alignment-api": "alignment.rdf",
    "embeddings-safetensors": "embeddings.safetensors",
    "embeddings-npy": "embeddings.npy",
}
_RunArgument = Annotated[Path, typer.Argument(help="a run folder")]
_SideOption = Annotated[str | None, typer.Option("--side", help="source or target, where both have that name")]


def export_command(
    run: _RunArgument,
    forms: Annotated[
        list[str], typer.Option("--form", help=f"may be repeated: {', '.join([*EXPORTERS, *EMBEDDING_FORMS])}")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="folder for the files; default: the run folder")
    ] = None,
    all_candidates: Annotated[
        bool, typer.Option("--all", help="tsv and parquet: all candidate pairs, not only those put out")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite files that are there")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Write an alignment as TSV, Parquet, owl:sameAs, SSSOM or Alignment API RDF, or its embeddings."""
    unknown = [form for form in forms if form not in _FORMS]
    if unknown:
        raise InputError(f"no form is called {unknown[0]!r}", expected=f"one of {', '.join(_FORMS)}")
    result, folder = api.open_run(run), out or run
    paths = {form: folder / _FORMS[form] for form in dict.fromkeys(forms)}
    for path in [*paths.values(), *_entity_lists(folder, forms)]:
        if path.exists() and not force:
            raise InputError("the file is there already", where=str(path), fix="name another folder, or use --force")
    rows = {str(path): result.to(form, path, accepted_only=not all_candidates) for form, path in paths.items()}
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    print_table("written", ("file", "rows"), [(path, number(count)) for path, count in rows.items()])


def _entity_lists(folder: Path, forms: list[str]) -> list[Path]:
    """The entity list written beside vectors, unless it lies beside some already: then it is the same, or of theirs."""
    beside = any((folder / _FORMS[form]).exists() for form in EMBEDDING_FORMS)
    return [] if beside or not set(forms) & set(EMBEDDING_FORMS) else [folder / ENTITY_LIST]


def explain_command(
    run: _RunArgument,
    entity: Annotated[str, typer.Argument(help="an entity, written as in its file")],
    side: _SideOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show an entity's candidates, the evidence for each, and the matched neighbours that speak for it."""
    found = api.open_run(run).explain(entity, side)
    if as_json:
        typer.echo(json.dumps(found, indent=1))
        return
    if not found:
        typer.echo("the entity has no candidate that has it among its own nearest")
    for pair in found:
        state = "put out" if pair["accepted"] else "not put out"
        typer.echo(f"{pair['source']}  =  {pair['target']}   {state}")
        typer.echo(
            f"  confidence {pair['confidence']:.3f}, score {pair['score']:.3f}, margin {pair['margin']:.3f}, "
            f"cosine {pair['cosine']:.3f}"
        )
        for source, target in pair["matched_neighbors"][:10]:
            typer.echo(f"  neighbours matched: {source}  =  {target}")
