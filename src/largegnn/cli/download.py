"""`largegnn download`: fetch a public data set by name, compare its checksum, unpack it into loadable folders."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largegnn.cli import options
from largegnn.cli.tables import number, print_table
from largegnn.errors import InputError

if TYPE_CHECKING:
    from largegnn.datasets.download import Download

__all__ = ["download_command"]

_log = logging.getLogger(__name__)


def download_command(
    name: Annotated[
        str | None, typer.Argument(help="Name of the data set, such as openea or EN_FR_15K_V1; see --list.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the data set folders.")] = Path("data"),
    mirror: Annotated[
        str | None,
        typer.Option(
            "--mirror",
            help="Address of the archive, or of its folder if it ends in /. Default: the mirrors of the catalogue.",
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--from", help="Unpack this archive and fetch nothing.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace data set folders that exist.")] = False,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep-archive/--remove-archive", help="Keep the fetched archive in --out, or remove it at the end."
        ),
    ] = True,
    skip_checksum: Annotated[
        bool, typer.Option("--skip-checksum", help="Accept a file whose checksum differs, and record the new checksum.")
    ] = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the data sets and exit.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Fetch a public data set, compare its checksum and unpack it.

    Run the same command again to resume an interrupted transfer.
    """
    if show_list:
        _print_list(as_json)
        return
    if name is None:
        raise InputError("no data set was named", expected="largegnn download NAME", fix="list the names with --list")
    from largegnn.datasets.download import download

    try:
        found = download(name, out, mirror=mirror, file=file, force=force, keep=keep, trust=skip_checksum)
    except KeyboardInterrupt:
        _log.warning("interrupted; run the same command again to resume")
        raise typer.Exit(130) from None
    _report(found, as_json)


def _report(found: Download, as_json: bool) -> None:
    dataset, made = found.dataset, found.folders
    following = f"largegnn inspect {made[0].folder}"
    if as_json:
        facts = {
            "name": dataset.name,
            "folders": [{"folder": str(entry.folder), "layout": entry.layout, "bytes": entry.size} for entry in made],
            "archives": [
                {
                    "file": str(archive.path),
                    "from": archive.origin,
                    "bytes": archive.size,
                    "sha256": archive.sha256,
                    "compared": archive.compared,
                    "kept": archive.kept,
                }
                for archive in found.archives
            ],
            "page": dataset.page,
            "licence": dataset.licence,
            "citation": dataset.citation,
            "next": following,
        }
        typer.echo(json.dumps(facts, indent=1))
        return
    rows = [(str(entry.folder), entry.layout, number(entry.size)) for entry in made]
    print_table(dataset.title, ("folder", "layout", "bytes"), rows)
    for archive in found.archives:
        meaning = {
            "known": "the published one",
            "recorded": "the same as the last time",
            "nothing": "recorded; no published one is known",
        }[archive.compared]
        typer.echo(f"sha256   {archive.sha256}  {archive.path.name} ({meaning})")
    typer.echo(
        f"page     {dataset.page}\nlicence  {dataset.licence}\ncite     {dataset.citation}\nnext     {following}"
    )


def _print_list(as_json: bool) -> None:
    from largegnn.datasets.catalogue import DATASETS

    if as_json:
        keys = ("name", "title", "archive", "folder", "page", "licence", "citation", "note")
        entries = [
            {key: getattr(entry, key) for key in keys} | {"mirrors": [mirror.url for mirror in entry.mirrors]}
            for entry in DATASETS.values()
        ]
        typer.echo(json.dumps(entries, indent=1))
        return
    rows = [(entry.name, entry.title) for entry in DATASETS.values()]
    print_table("public data sets", ("name", "title"), rows)
