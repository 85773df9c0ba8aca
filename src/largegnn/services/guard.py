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
import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from largegnn.errors import InputError, LargeGNNError

__all__ = ["COOKIE", "PAGE_POLICY", "Guard", "TooLargeError", "answer_errors", "is_loopback"]

_log = logging.getLogger(__name__)
COOKIE = "largegnn_token"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SAFE = ("GET", "HEAD", "OPTIONS")


class TooLargeError(Exception):
    """A body that is longer than allowed."""


def is_loopback(host: str) -> bool:
    """Whether a host name stands for this machine alone."""
    return host in ("localhost", "::1") or host.startswith("127.")


def answer_errors(app: FastAPI) -> None:
    """Make an application answer its failures in a line of text."""
    for kind in (LargeGNNError, TooLargeError, Exception):
        app.add_exception_handler(kind, lambda request, error: _failure(error))


def _failure(error: Exception) -> Response:
    """The answer to a failure."""
    if isinstance(error, TooLargeError):
        return _text(413, "the body is too large")
    if isinstance(error, LargeGNNError):
        return _text(400 if isinstance(error, InputError) else 500, str(error))
    return _text(500, "internal error; nothing was saved")


class Guard:
    """An application behind these rules; `hosts` are the names it accepts (`*`: any).

    With `loopback_may_read`, pages of other servers of this machine may read its answers.
    """

    def __init__(
        self,
        application: ASGIApp,
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
        if scope["type"] != "http":
            return
        request, has_started = Request(scope), False
        headers = self._answer_headers(request.headers.get("origin", ""))

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                MutableHeaders(scope=message).update(headers)
            await send(message)

        try:
            answer = self._refusal(request) or self._entry(request) or self._application
            await answer(scope, self._limited(receive), send_with_headers)
        except Exception as error:  # noqa: BLE001 - no traceback reaches the client
            if not isinstance(error, LargeGNNError | TooLargeError):
                _log.error("%s %s failed: %s: %s", scope["method"], scope["path"], type(error).__name__, error)
            if not has_started:
                await _failure(error)(scope, receive, send_with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """The refusal of a request; None for a request that is allowed."""
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        if host not in self._hosts and "*" not in self._hosts:
            return _text(403, "this host name is not allowed")
        if request.method not in (*_SAFE, "POST"):
            return _text(405, "this method is not allowed")
        origin = request.headers.get("origin")
        if request.method not in _SAFE and origin is not None and not self._is_own(origin, request):
            return _text(403, "requests from another page are refused")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most_bytes:
            return _text(413, f"the body is larger than {self._most_bytes:,} bytes")
        if self._token is not None and not self._has_token(request):
            return _text(403, "the token is missing: open the address that the program printed")
        return None

    def _is_own(self, origin: str, request: Request) -> bool:
        if origin == f"http://{request.headers.get('host', '')}":
            return True
        return self._loopback_may_read and is_loopback(urlsplit(origin).hostname or "")

    def _has_token(self, request: Request) -> bool:
        given = (
            request.cookies.get(COOKIE, ""),
            request.headers.get("authorization", "").removeprefix("Bearer "),
            self._query_token(request),
        )
        token = (self._token or "").encode("utf-8")
        return any(hmac.compare_digest(one.encode("utf-8", "replace"), token) for one in given)

    def _query_token(self, request: Request) -> str:
        is_first_page = request.url.path == "/" and request.method == "GET"
        return request.query_params.get("token", "") if is_first_page else ""

    def _entry(self, request: Request) -> Response | None:
        """The answer to the first visit: it sets the cookie and removes the token from the address."""
        if self._token is None or not self._query_token(request):
            return None
        entry = RedirectResponse("/", 303)
        entry.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
        return entry

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

    def _answer_headers(self, origin: str) -> dict[str, str]:
        found = {
            "content-security-policy": self._policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
        }
        if not self._loopback_may_read:
            return found | {"cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY"}
        if is_loopback(urlsplit(origin).hostname or ""):
            found |= {"access-control-allow-origin": origin, "vary": "origin"}
        return found


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status)
