"""A public data set by name: fetched, its checksum compared, unpacked into loadable folders.

In: a name of the catalogue and a folder. Out: the data set folders, the archives they came from, and how each was
checked. The mirrors of the catalogue are tried in turn; an interrupted transfer resumes.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from largegnn.datasets.catalogue import DATASETS, DataSet, RemoteFile, files_in_listing, find_dataset
from largegnn.datasets.checksums import ChecksumResult, verify
from largegnn.datasets.fetch import RetryPolicy, UnavailableError, fetch, read_small
from largegnn.datasets.unpack import UnpackedSet, unpack
from largegnn.errors import InputError
from largegnn.machine.progress import progress

__all__ = ["Download", "FetchedArchive", "download"]

_log = logging.getLogger(__name__)
_RETRY_POLICY = RetryPolicy()


@dataclass(frozen=True)
class FetchedArchive:
    """An archive on this machine, checked; `ours` is one that was fetched here, `kept` whether it is still there."""

    path: Path
    origin: str
    checksum: ChecksumResult
    ours: bool
    kept: bool = True


@dataclass(frozen=True)
class Download:
    """A data set that is ready to be loaded."""

    dataset: DataSet
    archives: tuple[FetchedArchive, ...]
    folders: tuple[UnpackedSet, ...]


def download(
    name: str,
    out: Path,
    *,
    mirror: str | None = None,
    file: Path | None = None,
    force: bool = False,
    keep: bool = True,
    trust: bool = False,
) -> Download:
    """Fetch and unpack a data set; `mirror` is another address, `file` an archive that is here already.

    `force` replaces data set folders, `keep` leaves the archive, `trust` accepts another checksum and records it.
    """
    if mirror is not None and file is not None:
        raise InputError("--mirror and --from exclude each other", fix="give one of them")
    dataset = find_dataset(name, DATASETS)
    _refuse_standing(dataset, out, force)
    archives = _obtain(dataset, out, mirror, file, trust)
    made: list[UnpackedSet] = []
    for archive in archives:
        top = dataset.home or dataset.name
        if len(archives) > 1:
            top += "/" + archive.path.name.removeprefix(f"{dataset.name}-").split(".")[0]
        made += unpack(archive.path, out, top=top, home=dataset.home, only=dataset.folder, force=force)
    archives = [replace(archive, kept=keep or not archive.ours) for archive in archives]
    for archive in archives:
        if not archive.kept:
            archive.path.unlink()
    return Download(dataset, tuple(archives), tuple(made))


def _obtain(dataset: DataSet, out: Path, mirror: str | None, file: Path | None, trust: bool) -> list[FetchedArchive]:
    """The archives, from wherever they were asked for."""
    if file is not None:
        if not file.is_file():
            raise InputError("there is no such file", where=str(file), expected="--from ARCHIVE")
        checksum = verify(
            file, _own_name(dataset, file.name), dataset.known_checksum(file.name), out, trust=trust, ours=False
        )
        return [FetchedArchive(file, str(file), checksum, ours=False)]
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


def _bring(dataset: DataSet, remote: RemoteFile, out: Path, trust: bool) -> FetchedArchive:
    """One archive in `out`: the one that is there if its checksum is right, else a fetched one."""
    remote = replace(remote, checksum=remote.checksum or dataset.known_checksum(remote.name))
    local = replace(remote, name=_own_name(dataset, remote.name))
    path = out / local.name
    if path.is_file():
        try:
            checksum = verify(path, local.name, local.checksum, out, trust=trust)
            _log.info("%s exists and is not fetched again", path)
            return FetchedArchive(path, str(path), checksum, ours=True)
        except InputError as error:
            _log.warning("%s: %s; fetched again", path, error.problem)
    _log.info("fetching %s from %s", local.name, local.url)
    with progress(f"fetching {local.name}", None, "bytes") as work:

        def advance(done: int, total: int | None) -> None:
            work.total = total
            work.advance(done - work.done)

        fetch(local, out, _RETRY_POLICY, advance)
    checksum = verify(path, local.name, local.checksum, out, trust=trust)
    return FetchedArchive(path, local.url, checksum, ours=True)


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
