"""A file from a mirror to the disk, in as many attempts as the retry policy allows.

In: a `RemoteFile` and a folder. Out: the file under its name, or an error that says what to do.

The bytes go to `NAME.partial`; `NAME.partial.json` keeps the address, the length and the version the server gave
(ETag, Last-Modified). The next attempt, in this call or in a later one, resumes with Range and If-Range; a file that
changed meanwhile comes whole, and so does one from a server without ranges. Dropped connections, time-outs and 5xx
answers are tried again after growing pauses. Refusals are not: 404, 403, a web page instead of the file, the empty 202
of a bot guard. A body shorter than announced is never a whole file.
By hand, since pooch restarts an interrupted transfer at the first byte, and these files have gigabytes.
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

__all__ = ["RetryPolicy", "UnavailableError", "fetch", "read_small"]

_log = logging.getLogger(__name__)
_CHUNK = 1 << 20
_SMALL = 1 << 22
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_BY_HAND = "name another mirror with --mirror URL, or fetch the file by hand and give it with --from FILE"

Progress = Callable[[int, int | None], None]


class UnavailableError(InputError):
    """One mirror does not give the file; another one may."""


class _StoppedError(Exception):
    """An attempt that is worth repeating."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try; tests put their own `pause` in."""

    attempts: int = 5
    timeout_s: float = 60.0
    first_pause_s: float = 1.0
    pause: Callable[[float], None] = time.sleep


@dataclass
class _Partial:
    """An unfinished file and its origin: address, version, size."""

    file: RemoteFile
    path: Path
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def side(self) -> Path:
        return self.path.with_name(self.path.name + ".json")

    def resumable(self) -> int:
        """How many bytes may be kept: those of this address, if a change would be noticed."""
        self.origin = {}
        with contextlib.suppress(OSError, ValueError):
            origin = json.loads(self.side.read_bytes())
            if isinstance(origin, dict) and origin.get("url") == self.file.url:
                self.origin = origin
        guarded = self.origin.get("validator") or self.file.checksum
        return self.path.stat().st_size if self.origin and guarded and self.path.exists() else 0

    def remember(self, response: Any, total: int | None) -> None:
        tag = response.headers.get("ETag")
        # A weak tag promises equal meaning, not equal bytes: it cannot guard a resumed transfer.
        validator = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
        self.origin = {"url": self.file.url, "validator": validator, "size": total}
        self.side.write_text(json.dumps(self.origin), encoding="utf-8")

    def discard(self) -> None:
        for path in (self.path, self.side):
            path.unlink(missing_ok=True)


def fetch(file: RemoteFile, folder: Path, policy: RetryPolicy | None = None, progress: Progress | None = None) -> Path:
    """Bring a file into a folder, resuming what an earlier call left; `verify` says if it is the right one."""
    policy = policy or RetryPolicy()
    _check_scheme(file.url)
    part = _Partial(file, folder / f"{file.name}.partial")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, policy.attempts + 1):
            try:
                _attempt(part, policy, progress or (lambda done, total: None), first=attempt == 1)
                break
            except _StoppedError as stop:
                _before_next(file, attempt, policy, str(stop), part.resumable())
        part.path.replace(folder / file.name)
        part.side.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write {part.path}: {error.strerror or error}; what arrived is kept") from error
    return folder / file.name


def read_small(url: str, policy: RetryPolicy | None = None) -> bytes:
    """A short answer, such as a list of files, at once."""
    policy = policy or RetryPolicy()
    _check_scheme(url)
    for attempt in range(1, policy.attempts + 1):
        try:
            with _open(url, {"Accept": "application/json"}, policy, first=attempt == 1) as response:
                _refuse_other_status(response, url)
                try:
                    return bytes(response.read(_SMALL))
                except (OSError, http.client.HTTPException) as error:
                    raise _StoppedError(_reason(error)) from None
        except _StoppedError as stop:
            _before_next(RemoteFile("", url), attempt, policy, str(stop), 0)
    raise AssertionError("the last attempt raises")


def _attempt(part: _Partial, policy: RetryPolicy, progress: Progress, *, first: bool) -> None:
    """One request: the whole file, or the rest of it."""
    have = part.resumable()
    headers = {"Range": f"bytes={have}-"} if have else {}
    if have and part.origin.get("validator"):
        headers["If-Range"] = str(part.origin["validator"])
    if have and have == part.origin.get("size"):
        return
    with _open(part.file.url, headers, policy, first=first) as response:
        if response.status == 416:  # nothing left to send, yet the length does not agree: another file
            part.discard()
            raise _StoppedError("the file changed since it was begun")
        have, total = _position_in_file(part, response, have)
        if part.file.size is not None and total is not None and total != part.file.size:
            raise UnavailableError(
                "the mirror offers a file of another size",
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


def _position_in_file(part: _Partial, response: Any, have: int) -> tuple[int, int | None]:
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
    if match is None or int(match[1]) != have or total != part.origin.get("size"):
        part.discard()
        raise _StoppedError("the server sent another piece than asked for")
    return have, total


def _open(url: str, headers: dict[str, str], policy: RetryPolicy, *, first: bool) -> Any:
    """An answer with status 2xx or 416."""
    request = urllib.request.Request(url, headers={"User-Agent": f"largegnn/{__version__}", **headers})
    try:
        response = _opener().open(request, timeout=policy.timeout_s)
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
            raise UnavailableError(
                "the server does not answer", where=url, found=_reason(error), fix=_BY_HAND
            ) from None
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


def _before_next(file: RemoteFile, attempt: int, policy: RetryPolicy, reason: str, kept: int) -> None:
    if attempt == policy.attempts:
        again = f"run the same command to resume after {kept:,} bytes; or " if kept else ""
        raise UnavailableError(
            f"the transfer stopped {attempt} times", where=file.url, found=reason, fix=again + _BY_HAND
        ) from None
    seconds = policy.first_pause_s * 2 ** (attempt - 1)
    _log.warning(
        "attempt %d of %d stopped: %s; again in %g s, %s bytes kept",
        attempt,
        policy.attempts,
        reason,
        seconds,
        f"{kept:,}",
    )
    policy.pause(seconds)


def _check_scheme(url: str) -> None:
    scheme = urlsplit(url).scheme.lower()
    if scheme not in {"http", "https", "file"}:
        raise InputError("this address cannot be fetched", where=url, expected="http://, https:// or file://")


def _reason(error: BaseException) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__
