"""Guard a web application: check the host, the token, the origin and the size of each request.

In: requests. Out: the answer of the application, or a refusal in a line of plain text; never a traceback.
- The host must be one of those the server was started for, which stops DNS rebinding.
- With a token, a request must have it: as a cookie, which the first visit sets, or as `Authorization: Bearer`.
- A request that changes anything must come from the application's own page (`Origin`).
- A body has a limit, with or without a declared length.
- Every answer forbids foreign scripts, frames and requests.
"""

from __future__ import annotations

import hmac
import http.cookies
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from largegnn.errors import InputError, LargeGNNError

__all__ = ["COOKIE", "PAGE_POLICY", "Guard", "TooLargeError", "answer_errors", "is_loopback"]

_log = logging.getLogger(__name__)
COOKIE = "largegnn_token"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SAFE = ("GET", "HEAD", "OPTIONS")
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class TooLargeError(Exception):
    """A body that is longer than allowed."""


def is_loopback(host: str) -> bool:
    """Whether a host name stands for this machine alone."""
    return host in ("localhost", "::1") or host.startswith("127.")


def answer_errors(app: Any) -> None:
    """Make an application of Starlette or FastAPI answer its failures in a line of text."""
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse

    def refuse(request: Request, error: Exception) -> PlainTextResponse:
        status, text = _failure(error)
        return PlainTextResponse(text + "\n", status)

    for kind in (LargeGNNError, TooLargeError, Exception):
        app.add_exception_handler(kind, refuse)


def _failure(error: Exception) -> tuple[int, str]:
    """The status and text of the answer to a failure."""
    if isinstance(error, TooLargeError):
        return 413, "the body is too large"
    if isinstance(error, LargeGNNError):
        return 400 if isinstance(error, InputError) else 500, str(error)
    return 500, "internal error; nothing was saved"


class Guard:
    """An application behind these rules; `hosts` are the names it accepts (`*`: any).

    With `loopback_may_read`, pages of other servers of this machine may read its answers.
    """

    def __init__(
        self,
        application: Application,
        *,
        hosts: Iterable[str],
        most_bytes: int,
        token: str | None = None,
        policy: str = PAGE_POLICY,
        loopback_may_read: bool = False,
    ) -> None:
        self._application, self._hosts, self._token = application, frozenset(hosts), token
        self._most_bytes, self._policy, self._loopback_may_read = most_bytes, policy, loopback_may_read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = _Answer(send, self._answer_headers(headers))
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await answer.text(*refusal)
            return
        entry = self._entry(scope)
        if entry is not None:
            await answer.text(303, "", {"location": "/", "set-cookie": entry})
            return
        try:
            await self._application(scope, self._limited(receive), answer)
        except Exception as error:  # noqa: BLE001 - no traceback reaches the client
            if not isinstance(error, LargeGNNError | TooLargeError):
                _log.error("%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error)
            await answer.text(*_failure(error))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and text of a refusal; None for a request that is allowed."""
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if host not in self._hosts and "*" not in self._hosts:
            return 403, "this host name is not allowed"
        if scope["method"] not in (*_SAFE, "POST"):
            return 405, "this method is not allowed"
        origin = headers.get("origin")
        if scope["method"] not in _SAFE and origin is not None and not self._is_own(origin, headers):
            return 403, "requests from another page are refused"
        if headers.get("content-length", "0").isdigit() and int(headers.get("content-length", "0")) > self._most_bytes:
            return 413, f"the body is larger than {self._most_bytes:,} bytes"
        if self._token is not None and not self._has_token(scope, headers):
            return 403, "the token is missing: open the address that the program printed"
        return None

    def _is_own(self, origin: str, headers: dict[str, str]) -> bool:
        if origin == f"http://{headers.get('host', '')}":
            return True
        return self._loopback_may_read and is_loopback(urlsplit(origin).hostname or "")

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        jar: http.cookies.SimpleCookie = http.cookies.SimpleCookie()
        try:
            jar.load(headers.get("cookie", ""))
        except http.cookies.CookieError:
            return False
        given = [jar[COOKIE].value] if COOKIE in jar else []
        given.append(headers.get("authorization", "").removeprefix("Bearer "))
        given += self._query_token(scope)
        token = (self._token or "").encode("utf-8")
        return any(hmac.compare_digest(one.encode("utf-8", "replace"), token) for one in given)

    def _query_token(self, scope: Scope) -> list[str]:
        if scope["path"] != "/" or scope["method"] != "GET":
            return []
        return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])

    def _entry(self, scope: Scope) -> str | None:
        """The cookie to set on the first visit, after which the token leaves the address."""
        if self._token is None or not self._query_token(scope):
            return None
        return f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/"

    def _limited(self, receive: Receive) -> Receive:
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most_bytes:
                raise TooLargeError
            return message

        return limited

    def _answer_headers(self, headers: dict[str, str]) -> dict[str, str]:
        found = {
            "content-security-policy": self._policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
        }
        origin = headers.get("origin", "")
        if self._loopback_may_read:
            if is_loopback(urlsplit(origin).hostname or ""):
                found |= {"access-control-allow-origin": origin, "vary": "origin"}
        else:
            found |= {"cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY"}
        return found


class _Answer:
    """An answer with the headers of the guard; started at most once."""

    def __init__(self, send: Send, headers: dict[str, str]) -> None:
        self._send, self._headers, self._has_started = send, headers, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._has_started = True
            ours = [(name.encode(), value.encode("latin-1", "replace")) for name, value in self._headers.items()]
            message = {**message, "headers": [*message.get("headers", []), *ours]}
        await self._send(message)

    async def text(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        """Send a line of plain text, unless an answer has started."""
        if self._has_started:
            return
        body = (text + "\n").encode("utf-8") if text else b""
        own = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **(headers or {})}
        listed = [(name.encode(), value.encode("latin-1")) for name, value in own.items()]
        await self({"type": "http.response.start", "status": status, "headers": listed})
        await self({"type": "http.response.body", "body": body})
