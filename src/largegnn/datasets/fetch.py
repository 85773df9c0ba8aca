"""A file from the network to the disk, in as many attempts as it takes.

In: a `RemoteFile` and a folder. Out: the file under its name, or an error that says what to do.

The bytes go to `NAME.partial`; `NAME.partial.json` remembers the address, the length and what the server said the
version was (ETag, Last-Modified). The next attempt, in this call or in a later one, asks for the rest with Range and
If-Range, so a file that changed meanwhile comes whole; a server that ignores ranges is taken from the start. Dropped
connections, time-outs and 5xx answers are tried again after growing pauses; refusals (404, 403, a web page where a file
was expected, the empty 202 of a bot guard) are not. A body shorter than announced is never taken for a whole file.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import re
import shutil
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from largegnn.datasets.catalogue import RemoteFile
from largegnn.errors import InputError, StorageError
from largegnn.version import __version__

__all__ = ["Patience", "UnavailableError", "fetch", "read_small"]

_log = logging.getLogger(__name__)
_CHUNK = 1 << 20
_SMALL = 1 << 22
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_BY_HAND = "name another place with --mirror URL, or fetch it by hand and give it with --from FILE"

Progress = Callable[[int, int | None], None]


class UnavailableError(InputError):
    """One place does not give the file; another one may."""


class _StoppedError(Exception):
    """An attempt that is worth repeating."""


@dataclass(frozen=True)
class Patience:
    """How often and how long to try; tests put their own `pause` in."""

    attempts: int = 5
    timeout_s: float = 60.0
    first_pause_s: float = 1.0
    pause: Callable[[float], None] = time.sleep


@dataclass
class _Partial:
    """An unfinished file and what is remembered of its origin."""

    file: RemoteFile
    path: Path
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def side(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def resumable(self) -> int:
        """How many bytes may be kept: those of this address, if a change would be noticed."""
        self.memory = {}
        with contextlib.suppress(OSError, ValueError):
            memory = json.loads(self.side.read_bytes())
            if isinstance(memory, dict) and memory.get("url") == self.file.url:
                self.memory = memory
        guarded = self.memory.get("validator") or self.file.checksum
        return self.path.stat().st_size if self.memory and guarded and self.path.exists() else 0

    def remember(self, response: Any, total: int | None) -> None:
        tag = response.headers.get("ETag")
        # A weak tag promises equal meaning, not equal bytes: it is no use for going on in the middle.
        validator = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
        self.memory = {"url": self.file.url, "validator": validator, "size": total}
        self.side.write_text(json.dumps(self.memory), encoding="utf-8")

    def discard(self) -> None:
        for path in (self.path, self.side):
            path.unlink(missing_ok=True)


def fetch(file: RemoteFile, folder: Path, patience: Patience | None = None, progress: Progress | None = None) -> Path:
    """Bring a file into a folder, going on with what an earlier call left; `verify` says if it is the right one."""
    patience = patience or Patience()
    _check_scheme(file.url)
    part = _Partial(file, folder / f"{file.name}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, patience.attempts + 1):
            try:
                _attempt(part, patience, progress or (lambda done, total: None), first=attempt == 1)
                break
            except _StoppedError as stop:
                _before_next(file, attempt, patience, str(stop), part.resumable())
        part.path.replace(folder / file.name)
        part.side.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {part.path}: {error.strerror or error}; what arrived is kept") from error
    return folder / file.name


def read_small(url: str, patience: Patience | None = None) -> bytes:
    """A short answer, such as a list of files, at once."""
    patience = patience or Patience()
    _check_scheme(url)
    for attempt in range(1, patience.attempts + 1):
        try:
            with _open(url, {"Accept": "application/json"}, patience, first=attempt == 1) as response:
                _refuse_other_status(response, url)
                try:
                    return bytes(response.read(_SMALL))
                except (OSError, http.client.HTTPException) as error:
                    raise _StoppedError(_reason(error)) from None
        except _StoppedError as stop:
            _before_next(RemoteFile("", url), attempt, patience, str(stop), 0)
    raise AssertionError("the last attempt raises")


def _attempt(part: _Partial, patience: Patience, progress: Progress, *, first: bool) -> None:
    """One request: the whole file, or the rest of it."""
    have = part.resumable()
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and part.memory.get("validator"):
        headers["If-Range"] = str(part.memory["validator"])
    if have and have == part.memory.get("size"):
        return
    with _open(part.file.url, headers, patience, first=first) as response:
        if response.status == 416:  # nothing left to send, yet the length does not agree: another file
            part.discard()
            raise _StoppedError("the file changed since it was begun")
        have, total = _place_in_file(part, response, have)
        if part.file.size is not None and total is not None and total != part.file.size:
            raise UnavailableError(
                "the place offers a file of another size",
                where=part.file.url,
                expected=f"{part.file.size:,} bytes",
                found=f"{total:,} bytes",
                fix=_BY_HAND,
            )
        free = shutil.disk_usage(part.path.parent).free
        if total is not None and total - have > free:
            raise StorageError(f"not enough space for {part.path}: {total - have:,} bytes to come, {free:,} free")
        part.remember(response, total)
        done = _copy(response, part.path, have, total, progress)
    expected = total if total is not None else part.file.size
    if expected is not None and done != expected:
        raise _StoppedError(f"the connection ended after {done:,} of {expected:,} bytes")


def _copy(response: Any, path: Path, have: int, total: int | None, progress: Progress) -> int:
    done = have
    progress(done, total)
    with path.open("ab" if have else "wb") as out:
        while total is None or done < total:
            try:
                chunk = response.read1(_CHUNK if total is None else min(_CHUNK, total - done))
            except (OSError, http.client.HTTPException) as error:
                raise _StoppedError(_reason(error)) from None
            if not chunk:
                break
            out.write(chunk)
            done += len(chunk)
            progress(done, total)
    return done


def _place_in_file(part: _Partial, response: Any, have: int) -> tuple[int, int | None]:
    """Where in the file the answer begins, and how long the file is."""
    _refuse_other_status(response, part.file.url)
    if response.headers.get_content_type() == "text/html":
        raise UnavailableError(
            "a web page came instead of the file", where=part.file.url, expected=part.file.name, fix=_BY_HAND
        )
    if response.status != 206:
        length = response.headers.get("Content-Length", "")
        return 0, int(length) if length.isdigit() else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    total = None if match is None or match[2] == "*" else int(match[2])
    if match is None or int(match[1]) != have or total != part.memory.get("size"):
        part.discard()
        raise _StoppedError("the server sent another piece than asked for")
    return have, total


def _open(url: str, headers: dict[str, str], patience: Patience, *, first: bool) -> Any:
    """An answer with status 2xx or 416."""
    request = urllib.request.Request(url, headers={"User-Agent": f"largegnn/{__version__}", **headers})
    try:
        response = _opener().open(request, timeout=patience.timeout_s)
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        with error:
            if error.code in _AGAIN:
                raise _StoppedError(f"HTTP {error.code} {error.reason}") from None
            raise UnavailableError(
                "the server refused", where=url, found=f"HTTP {error.code} {error.reason}", fix=_BY_HAND
            ) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        hopeless = isinstance(cause, (str, socket.gaierror, ConnectionRefusedError, ssl.SSLError))
        if (first and hopeless) or isinstance(error, ValueError) or request.type == "file":
            raise UnavailableError("no answer from there", where=url, found=_reason(error), fix=_BY_HAND) from None
        raise _StoppedError(_reason(error)) from None
    if response.status is None:
        response.code = 200  # a file: address has no status
    return response


def _opener() -> urllib.request.OpenerDirector:
    """The standard one without ftp: and data:, which a redirection could otherwise lead to."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.UnknownHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.FileHandler,
    ):
        opener.add_handler(handler())
    return opener


def _refuse_other_status(response: Any, url: str) -> None:
    if response.status not in {200, 206}:
        raise UnavailableError(
            "the server answered without the file",
            where=url,
            expected="HTTP 200",
            found=f"HTTP {response.status}; some sites answer programs so, and browsers with the file",
            fix=_BY_HAND,
        )


def _before_next(file: RemoteFile, attempt: int, patience: Patience, reason: str, kept: int) -> None:
    if attempt == patience.attempts:
        again = f"the same command goes on after {kept:,} bytes; or " if kept else ""
        raise UnavailableError(
            f"the transfer stopped {attempt} times", where=file.url, found=reason, fix=again + _BY_HAND
        ) from None
    seconds = patience.first_pause_s * 2 ** (attempt - 1)
    _log.warning(
        "attempt %d of %d stopped: %s; again in %g s, %s bytes kept",
        attempt,
        patience.attempts,
        reason,
        seconds,
        f"{kept:,}",
    )
    patience.pause(seconds)


def _check_scheme(url: str) -> None:
    scheme = urlsplit(url).scheme.lower()
    if scheme not in {"http", "https", "file"}:
        raise InputError("this address cannot be fetched", where=url, expected="http://, https:// or file://")


def _reason(error: BaseException) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
