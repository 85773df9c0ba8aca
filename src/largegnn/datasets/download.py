"""Fetch a public data set by name, check its checksum with pooch, and unpack it into folders that can be loaded.

In: a name of the catalogue and a folder. Out: the data set folders, their archives, and the origin of each checksum.
The mirrors of the catalogue are tried in turn. If an archive has no published checksum, its checksum is recorded in
`checksums.json`, so that a change is noticed the next time.
pooch restarts an interrupted transfer at the first byte, and these files have gigabytes: `_transfer` keeps the received
bytes in `NAME.partial`, with the address and the version of the file, and requests the rest.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pooch
import requests

from largegnn.datasets.catalogue import DATASETS, DataSet, RemoteFile, files_in_listing, find_dataset
from largegnn.datasets.unpack import UnpackedSet, unpack
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_text
from largegnn.machine.progress import Work, progress
from largegnn.version import __version__

__all__ = ["Download", "FetchedArchive", "download"]

_log = logging.getLogger(__name__)
_LEDGER = "checksums.json"
_ATTEMPTS, _FIRST_PAUSE_S, _TIMEOUT_S = 5, 1.0, 60.0
_CHUNK = 1 << 14  # small, because an incomplete chunk is lost if the connection breaks
_TEMPORARY_ERRORS = {408, 425, 429, 500, 502, 503, 504}
_BY_HAND = "name another mirror with --mirror URL, or fetch the file by hand and give it with --from FILE"


class _UnavailableError(InputError):
    """A mirror does not provide the file; another mirror may."""


class _NoAnswerError(requests.ConnectionError):
    """The server could not be reached: retried only if an earlier attempt reached it."""


@dataclass(frozen=True)
class FetchedArchive:
    """A checked archive; `compared` says which checksum it was compared with: known, recorded or nothing."""

    path: Path
    origin: str
    sha256: str
    size: int
    compared: str
    kept: bool


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
    """Fetch and unpack a data set; `mirror` is another address, `file` an archive on this machine.

    `force` replaces data set folders, `keep` keeps the archive, `trust` accepts a changed checksum and records it.
    """
    if mirror is not None and file is not None:
        raise InputError("--mirror and --from exclude each other", fix="give one of them")
    dataset = find_dataset(name, DATASETS)
    folder = out / (dataset.folder or dataset.home)
    if folder != out and not force and folder.exists():  # before the transfer, not after it
        raise InputError(
            "the folder exists already",
            where=str(folder),
            fix=f"use it (largegnn inspect {folder}), replace it with --force, or name another folder with --out DIR",
        )
    if file is not None:
        archives = [_check_file(dataset, file, out, trust)]
    elif mirror is not None:
        archives = [_fetch(dataset, _file_at_mirror(dataset, mirror), out, trust)]
    else:
        archives = _fetch_from_mirrors(dataset, out, trust)
    folders: list[UnpackedSet] = []
    for archive in archives:
        top = dataset.home or dataset.name
        if len(archives) > 1:
            top += "/" + archive.path.name.removeprefix(f"{dataset.name}-").split(".")[0]
        folders += unpack(archive.path, out, top=top, home=dataset.home, only=dataset.folder, force=force)
    if not keep and file is None:
        for archive in archives:
            archive.path.unlink()
        archives = [replace(archive, kept=False) for archive in archives]
    return Download(dataset, tuple(archives), tuple(folders))


def _fetch_from_mirrors(dataset: DataSet, out: Path, trust: bool) -> list[FetchedArchive]:
    """Fetch the archives from the first mirror of the catalogue that provides them."""
    refusals: list[str] = []
    for source in dataset.mirrors:
        try:
            files = [source] if isinstance(source, RemoteFile) else _listed_files(dataset, source.url)
            return [_fetch(dataset, entry, out, trust) for entry in files]
        except _UnavailableError as error:
            refusals.append(error.found or error.problem)
            _log.warning("%s does not provide the file: %s", urlsplit(source.url).netloc, refusals[-1])
    raise InputError(
        f"{dataset.name} could not be fetched",
        where=", ".join(source.url for source in dataset.mirrors) or dataset.page,
        found="; ".join(refusals) or "no address that a program can fetch from",
        fix=dataset.note
        or f"fetch it by hand from {dataset.page} and give it with --from FILE, or name a mirror with --mirror URL",
    )


def _file_at_mirror(dataset: DataSet, mirror: str) -> RemoteFile:
    if urlsplit(mirror).scheme.lower() not in {"http", "https"}:
        raise InputError("this address cannot be fetched", where=mirror, expected="http:// or https://")
    if not mirror.endswith("/"):
        return RemoteFile(unquote(urlsplit(mirror).path).rsplit("/", 1)[-1], mirror)
    if dataset.archive is None:
        raise InputError(
            f"the name of {dataset.name}'s archive is not known",
            where=mirror,
            fix="give the address of the file itself",
        )
    return RemoteFile(dataset.archive, mirror + quote(dataset.archive))


def _local_name(dataset: DataSet, file_name: str) -> str:
    """Name the local archive: its published name, or a name that no archive of another data set has."""
    if file_name == dataset.archive:
        return file_name
    return f"{dataset.name}-{re.sub(r'[^A-Za-z0-9._-]+', '_', file_name).lstrip('.') or 'archive'}"


def _check_file(dataset: DataSet, file: Path, out: Path, trust: bool) -> FetchedArchive:
    """Check the checksum of an archive on this machine."""
    if not file.is_file():
        raise InputError("there is no such file", where=str(file), expected="--from ARCHIVE")
    name = _local_name(dataset, file.name)
    checksum, compared = _expected_checksum(name, dataset.known_checksum(file.name), out, trust)
    try:
        pooch.hashes.hash_matches(file, checksum, strict=True)
    except ValueError as error:
        raise _wrong_checksum(file, checksum, error) from None
    return _record_checksum(file, name, str(file), compared, out)


def _fetch(dataset: DataSet, remote: RemoteFile, out: Path, trust: bool) -> FetchedArchive:
    """Return an archive in `out`; it is fetched unless it exists with the right checksum."""
    path = out / _local_name(dataset, remote.name)
    published = remote.checksum or dataset.known_checksum(remote.name)
    checksum, compared = _expected_checksum(path.name, published, out, trust)
    pooch.get_logger().setLevel(logging.WARNING)
    if path.exists() and not pooch.hashes.hash_matches(path, checksum):
        _log.warning("%s: the checksum is wrong; fetching it again", path)
    try:
        pooch.retrieve(remote.url, checksum, fname=path.name, path=out, downloader=_transfer(path, remote.size))
    except ValueError as error:
        raise _wrong_checksum(path, checksum, error) from None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; the received bytes are kept") from error
    return _record_checksum(path, path.name, remote.url, compared, out)


def _expected_checksum(name: str, published: str | None, out: Path, trust: bool) -> tuple[str | None, str]:
    """Return the checksum a file must have, and its origin: known, recorded or nothing."""
    records = _read_ledger(out / _LEDGER)
    if trust:
        return None, "nothing"
    if published is not None:
        return published, "known"
    return (f"sha256:{records[name]['sha256']}", "recorded") if name in records else (None, "nothing")


def _record_checksum(path: Path, name: str, origin: str, compared: str, out: Path) -> FetchedArchive:
    """Write the checksum of an archive to the ledger, and describe the archive."""
    sha256, size = pooch.file_hash(str(path)), path.stat().st_size
    records = _read_ledger(out / _LEDGER) | {name: {"sha256": sha256, "bytes": size}}
    write_text(out / _LEDGER, json.dumps(records, indent=1, sort_keys=True) + "\n")
    return FetchedArchive(path, origin, sha256, size, compared, kept=True)


def _read_ledger(path: Path) -> dict[str, dict[str, object]]:
    try:
        records = json.loads(path.read_bytes())
        return {name: {"sha256": str(record["sha256"]), "bytes": record["bytes"]} for name, record in records.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InputError("the record of checksums cannot be read", where=str(path), fix="delete it") from None


def _wrong_checksum(path: Path, checksum: str | None, error: Exception) -> InputError:
    return InputError(
        "the file's checksum is wrong: it was damaged, or it is another file",
        where=str(path),
        expected=f"{checksum}, as published or as recorded in {_LEDGER}",
        found=str(error),
        fix="fetch it again; if the publisher has replaced the file, accept it with --skip-checksum",
    )


def _transfer(path: Path, size: int | None) -> Callable[[str, str, object], None]:
    """Make a downloader for pooch that resumes a transfer from `NAME.partial`, left by an earlier attempt or call."""
    partial = path.with_name(path.name + ".partial")
    version = path.with_name(path.name + ".partial.version")

    def run(url: str, output_file: str, _: object) -> None:
        with progress(f"fetching {path.name}", size, "bytes") as work:
            _with_retries(url, lambda: _append(url, partial, version, work))
        partial.replace(output_file)
        version.unlink()

    return run


def _append(url: str, partial: Path, version: Path, work: Work) -> None:
    """Request the rest of a file if the server still has the version of `partial`, otherwise the whole file."""
    recorded = version.read_text(encoding="utf-8") if version.exists() and partial.exists() else ""
    tag = recorded.removeprefix(f"{url}\n") if recorded.startswith(f"{url}\n") else ""
    num_received = partial.stat().st_size if tag else 0
    with _request(url, {"Range": f"bytes={num_received}-", "If-Range": tag} if num_received else {}) as response:
        if response.headers.get("Content-Type", "").startswith("text/html"):
            raise _UnavailableError("the server sent a web page instead of the file", where=url, fix=_BY_HAND)
        is_rest = response.headers.get("Content-Range", "").startswith(f"bytes {num_received}-")
        if response.status_code != 200 and not is_rest:
            partial.unlink(missing_ok=True)
            raise requests.HTTPError("the server sent a different part of the file than requested")
        num_received = num_received if is_rest else 0
        length = response.headers.get("Content-Length")
        free = shutil.disk_usage(partial.parent).free
        if length is not None and int(length) > free:
            raise StorageError(f"not enough space for {partial}: {int(length):,} bytes to come, {free:,} free")
        # A weak tag promises equal meaning, not equal bytes, so that a transfer cannot be resumed by it.
        etag = response.headers.get("ETag", "W/")
        tag = response.headers.get("Last-Modified", "") if etag.startswith("W/") else etag
        version.write_text(f"{url}\n{tag}", encoding="utf-8")
        work.total = None if length is None else num_received + int(length)
        work.advance(num_received - work.done)
        with partial.open("ab" if num_received else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                file.write(chunk)
                work.advance(len(chunk))


def _listed_files(dataset: DataSet, url: str) -> list[RemoteFile]:
    """Fetch the list of files in a figshare record."""
    text: list[bytes] = []
    _with_retries(url, lambda: text.append(_request(url, {"Accept": "application/json"}).content))
    return files_in_listing(text[0], dataset, url)


def _request(url: str, headers: dict[str, str]) -> requests.Response:
    """Request a file or a part of it; a temporary failure is a `RequestException`, a refusal is final."""
    headers |= {"User-Agent": f"largegnn/{__version__}", "Accept-Encoding": "identity"}
    try:
        response = requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_S)
    except requests.ConnectionError as error:
        raise _NoAnswerError(f"the server does not answer: {error}") from None
    if response.status_code in {200, 206, 416}:
        return response
    response.close()
    found = f"HTTP {response.status_code} {response.reason}"
    if response.status_code in _TEMPORARY_ERRORS:
        raise requests.HTTPError(found)
    found += "; some sites refuse programs but not browsers"
    raise _UnavailableError("the server refused", where=url, expected="HTTP 200", found=found, fix=_BY_HAND)


def _with_retries(url: str, attempt: Callable[[], None]) -> None:
    """Call `attempt` until it succeeds, at most five times, with growing pauses."""
    for number in range(1, _ATTEMPTS + 1):
        try:
            return attempt()
        except requests.RequestException as error:
            if number == _ATTEMPTS or (number == 1 and isinstance(error, _NoAnswerError)):
                fix = "run the same command again to resume; or " + _BY_HAND
                raise _UnavailableError("the transfer stopped", where=url, found=str(error), fix=fix) from None
            _log.warning("attempt %d of %d stopped: %s", number, _ATTEMPTS, error)
            time.sleep(_FIRST_PAUSE_S * 2 ** (number - 1))
    raise AssertionError("the last attempt raises")
