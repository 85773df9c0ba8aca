"""`largegnn download`: fetch a public data set by name, compare its checksum, unpack it into loadable folders."""

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
from largegnn.datasets.checksums import ChecksumResult, verify
from largegnn.datasets.fetch import RetryPolicy, UnavailableError, fetch, read_small
from largegnn.datasets.unpack import UnpackedSet, unpack
from largegnn.errors import InputError

__all__ = ["download_command"]

_log = logging.getLogger(__name__)
_RETRY_POLICY = RetryPolicy()


@dataclass(frozen=True)
class _Archive:
    """An archive on this machine, checked."""

    path: Path
    origin: str
    checksum: ChecksumResult
    ours: bool


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
    if mirror is not None and file is not None:
        raise InputError("--mirror and --from exclude each other", fix="give one of them")
    dataset = find_dataset(name, DATASETS)
    _refuse_standing(dataset, out, force)
    try:
        archives = _obtain(dataset, out, mirror, file, skip_checksum)
    except KeyboardInterrupt:
        _log.warning("interrupted; run the same command again to resume")
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
        checksum = verify(
            file, _own_name(dataset, file.name), dataset.known_checksum(file.name), out, trust=trust, ours=False
        )
        return [_Archive(file, str(file), checksum, ours=False)]
    if mirror is not None:
        return [_bring(dataset, _at_mirror(dataset, mirror), out, trust)]
    refusals: list[UnavailableError] = []
    for source in dataset.mirrors:
        try:
            files = (
                [source]
                if isinstance(source, RemoteFile)
                else files_in_listing(read_small(source.url, _RETRY_POLICY), dataset, source.url)
            )
            return [_bring(dataset, entry, out, trust) for entry in files]
        except UnavailableError as error:
            _log.warning("%s does not give the file: %s", urlsplit(source.url).netloc, error.found or error.problem)
            refusals.append(error)
    raise InputError(
        f"{dataset.name} could not be fetched",
        where=", ".join(source.url for source in dataset.mirrors) or dataset.page,
        found="; ".join(error.found or error.problem for error in refusals) or "no address a program can fetch from",
        fix=dataset.note
        or f"fetch it by hand from {dataset.page} and give it with --from FILE, or name a mirror with --mirror URL",
    )


def _bring(dataset: DataSet, remote: RemoteFile, out: Path, trust: bool) -> _Archive:
    """One archive in `out`: the one that is there if its checksum is right, else a fetched one."""
    remote = replace(remote, checksum=remote.checksum or dataset.known_checksum(remote.name))
    local = replace(remote, name=_own_name(dataset, remote.name))
    path = out / local.name
    if path.is_file():
        try:
            checksum = verify(path, local.name, local.checksum, out, trust=trust)
            _log.info("%s exists and is not fetched again", path)
            return _Archive(path, str(path), checksum, ours=True)
        except InputError as error:
            _log.warning("%s: %s; fetched again", path, error.problem)
    _log.info("fetching %s from %s", local.name, local.url)
    quiet = not _log.isEnabledFor(logging.INFO)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task(local.name, total=None)
        fetch(local, out, _RETRY_POLICY, lambda done, total: bar.update(task, completed=done, total=total))
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
            fix=f"use it (largegnn inspect {folder}), replace it with --force, or name another folder with --out DIR",
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
                    "bytes": archive.checksum.size,
                    "sha256": archive.checksum.sha256,
                    "compared": archive.checksum.compared,
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
            "nothing": "recorded; no published one is known",
        }[archive.checksum.compared]
        typer.echo(f"sha256   {archive.checksum.sha256}  {archive.path.name} ({said})")
    typer.echo(
        f"page     {dataset.page}\nlicence  {dataset.licence}\ncite     {dataset.citation}\nnext     {following}"
    )


def _print_list(as_json: bool) -> None:
    if as_json:
        keys = ("name", "title", "archive", "folder", "page", "licence", "citation", "note")
        entries = [
            {key: getattr(entry, key) for key in keys} | {"mirrors": [mirror.url for mirror in entry.mirrors]}
            for entry in DATASETS.values()
        ]
        typer.echo(json.dumps(entries, indent=1))
        return
    rows = [(entry.name, entry.title) for entry in DATASETS.values()]
    print_table("public data sets", ("name", "what it is"), rows)
