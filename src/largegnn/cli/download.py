"""`largegnn download`: a public data set by name, fetched, checked and unpacked into folders the readers take."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote, urlsplit

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from largegnn.cli import options
from largegnn.cli.tables import number, print_table
from largegnn.datasets.catalogue import DATASETS, DataSet, RemoteFile, files_in_listing, find_dataset
from largegnn.datasets.checksums import Verdict, verify
from largegnn.datasets.fetch import Patience, UnavailableError, fetch, read_small
from largegnn.datasets.unpack import UnpackedSet, unpack
from largegnn.errors import InputError

__all__ = ["download_command"]

_log = logging.getLogger(__name__)
_PATIENCE = Patience()


@dataclass(frozen=True)
class _Archive:
    """An archive on this machine, checked."""

    path: Path
    origin: str
    verdict: Verdict
    ours: bool


def download_command(
    name: Annotated[str | None, typer.Argument(help="openea, EN_FR_15K_V1, dbpedia1m, ...: see --list")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder that gets the data set folders")] = Path("data"),
    mirror: Annotated[
        str | None, typer.Option("--mirror", help="fetch from here: the file's address, or a folder's, ending in /")
    ] = None,
    file: Annotated[Path | None, typer.Option("--from", help="unpack this archive; nothing is fetched")] = None,
    force: Annotated[bool, typer.Option("--force", help="replace data set folders that exist")] = False,
    keep: Annotated[
        bool, typer.Option("--keep-archive/--remove-archive", help="whether the fetched archive stays in --out")
    ] = True,
    skip_checksum: Annotated[
        bool, typer.Option("--skip-checksum", help="take a file with another checksum than the known one, record it")
    ] = False,
    show_list: Annotated[bool, typer.Option("--list", help="say what can be fetched, and stop")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Fetch a public data set, go on where an earlier call stopped, compare checksums, unpack."""
    if show_list:
        _print_list(as_json)
        return
    if name is None:
        raise InputError("no data set was named", expected="largegnn download NAME", fix="--list says what there is")
    if mirror is not None and file is not None:
        raise InputError("--mirror and --from exclude each other", fix="give one of them")
    dataset = find_dataset(name, DATASETS)
    _refuse_standing(dataset, out, force)
    try:
        archives = _obtain(dataset, out, mirror, file, skip_checksum)
    except KeyboardInterrupt:
        _log.warning("interrupted; the same command goes on where this stopped")
        raise typer.Exit(130) from None
    made: list[UnpackedSet] = []
    for archive in archives:
        top = dataset.home or dataset.name
        if len(archives) > 1:
            top += "/" + archive.path.name.removeprefix(f"{dataset.name}-").split(".")[0]
        made += unpack(archive.path, out, top=top, home=dataset.home, only=dataset.folder, force=force)
    kept = [keep or not archive.ours for archive in archives]
    for archive, stays in zip(archives, kept, strict=True):
        if not stays:
            archive.path.unlink()
    _report(dataset, archives, kept, made, as_json)


def _obtain(dataset: DataSet, out: Path, mirror: str | None, file: Path | None, trust: bool) -> list[_Archive]:
    """The archives, from wherever they were asked for."""
    if file is not None:
        if not file.is_file():
            raise InputError("there is no such file", where=str(file), expected="--from ARCHIVE")
        verdict = verify(
            file, _own_name(dataset, file.name), dataset.known_checksum(file.name), out, trust=trust, ours=False
        )
        return [_Archive(file, str(file), verdict, ours=False)]
    if mirror is not None:
        return [_bring(dataset, _at_mirror(dataset, mirror), out, trust)]
    refusals: list[UnavailableError] = []
    for place in dataset.places:
        try:
            files = (
                [place]
                if isinstance(place, RemoteFile)
                else files_in_listing(read_small(place.url, _PATIENCE), dataset, place.url)
            )
            return [_bring(dataset, entry, out, trust) for entry in files]
        except UnavailableError as error:
            _log.warning("%s does not give it: %s", urlsplit(place.url).netloc, error.found or error.problem)
            refusals.append(error)
    raise InputError(
        f"{dataset.name} could not be fetched",
        where=", ".join(place.url for place in dataset.places) or dataset.page,
        found="; ".join(error.found or error.problem for error in refusals) or "no address a program can fetch from",
        fix=dataset.note
        or f"fetch it by hand from {dataset.page} and give it with --from FILE, or name a --mirror URL",
    )


def _bring(dataset: DataSet, remote: RemoteFile, out: Path, trust: bool) -> _Archive:
    """One archive in `out`: the one that is there if it passes, else a fetched one."""
    remote = replace(remote, checksum=remote.checksum or dataset.known_checksum(remote.name))
    local = replace(remote, name=_own_name(dataset, remote.name))
    path = out / local.name
    if path.is_file():
        try:
            verdict = verify(path, local.name, local.checksum, out, trust=trust)
            _log.info("%s is there already", path)
            return _Archive(path, str(path), verdict, ours=True)
        except InputError as error:
            _log.warning("%s: %s; fetched again", path, error.problem)
    _log.info("fetching %s from %s", local.name, local.url)
    quiet = not _log.isEnabledFor(logging.INFO)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(local.name, total=None)
        fetch(local, out, _PATIENCE, lambda done, total: bar.update(task, completed=done, total=total))
    return _Archive(path, local.url, verify(path, local.name, local.checksum, out, trust=trust), ours=True)


def _at_mirror(dataset: DataSet, mirror: str) -> RemoteFile:
    if not mirror.endswith("/"):
        return RemoteFile(unquote(urlsplit(mirror).path).rsplit("/", 1)[-1], mirror)
    if dataset.archive is None:
        raise InputError(
            f"the name of {dataset.name}'s archive is not known",
            where=mirror,
            fix="give the address of the file itself",
        )
    return RemoteFile(dataset.archive, mirror + quote(dataset.archive))


def _own_name(dataset: DataSet, file_name: str) -> str:
    """What an archive is called here: its published name, or one that cannot be taken for another data set's."""
    if file_name == dataset.archive:
        return file_name
    return f"{dataset.name}-{re.sub(r'[^A-Za-z0-9._-]+', '_', file_name).lstrip('.') or 'archive'}"


def _refuse_standing(dataset: DataSet, out: Path, force: bool) -> None:
    """Say so before the transfer, not after it, where the folder is known."""
    folder = out / (dataset.folder or dataset.home)
    if folder != out and not force and folder.exists():
        raise InputError(
            "the folder exists already",
            where=str(folder),
            fix=f"use it: largegnn inspect {folder}; or --force replaces it, or --out DIR names another place",
        )


def _report(
    dataset: DataSet, archives: list[_Archive], kept: list[bool], made: list[UnpackedSet], as_json: bool
) -> None:
    following = f"largegnn inspect {made[0].folder}"
    if as_json:
        facts = {
            "name": dataset.name,
            "folders": [{"folder": str(entry.folder), "layout": entry.layout, "bytes": entry.size} for entry in made],
            "archives": [
                {
                    "file": str(archive.path),
                    "from": archive.origin,
                    "bytes": archive.verdict.size,
                    "sha256": archive.verdict.sha256,
                    "compared": archive.verdict.compared,
                    "kept": stays,
                }
                for archive, stays in zip(archives, kept, strict=True)
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
    for archive in archives:
        said = {
            "known": "the published one",
            "recorded": "the same as the last time",
            "nothing": "recorded; none is known to compare with",
        }[archive.verdict.compared]
        typer.echo(f"sha256   {archive.verdict.sha256}  {archive.path.name} ({said})")
    typer.echo(
        f"page     {dataset.page}\nlicence  {dataset.licence}\ncite     {dataset.citation}\nnext     {following}"
    )


def _print_list(as_json: bool) -> None:
    if as_json:
        keys = ("name", "title", "archive", "folder", "page", "licence", "citation", "note")
        entries = [
            {key: getattr(entry, key) for key in keys} | {"places": [place.url for place in entry.places]}
            for entry in DATASETS.values()
        ]
        typer.echo(json.dumps(entries, indent=1))
        return
    rows = [(entry.name, entry.title) for entry in DATASETS.values()]
    print_table("public data sets", ("name", "what it is"), rows)
