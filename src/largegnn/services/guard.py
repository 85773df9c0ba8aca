"""Guard a web application: check the host, the token, the origin and the size of each request.

In: requests. Out: the answer of the application, or a refusal in a line of plain text; never a traceback.
- The host must be a host that the server was started for, which prevents DNS rebinding.
- If there is a token, a request must have it: as a cookie, which the first visit sets, or as `Authorization: Bearer`.
- A request that may change something must come from a page of the application itself (`Origin`).
- The length of a body must be declared and at most a limit; uvicorn refuses bodies that are longer than declared.
- Every answer forbids scripts, frames and requests of other servers.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from fastapi import FastAPI, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from largegnn.errors import InputError, LargeGNNError

__all__ = ["COOKIE", "PAGE_POLICY", "guarded_application", "is_loopback", "read_form"]

_log = logging.getLogger(__name__)
COOKIE = "largegnn_token"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def is_loopback(host: str) -> bool:
    """Whether a host name stands for this machine alone."""
    return host in ("localhost", "::1") or host.startswith("127.")


def guarded_application(
    *,
    hosts: Iterable[str],
    max_bytes: int,
    token: str | None = None,
    policy: str = PAGE_POLICY,
    loopback_may_read: bool = False,
) -> FastAPI:
    """Make an application behind these rules; `hosts` are the host names it accepts (`*`: any host name).

    With `loopback_may_read`, pages of other servers on this machine may read its answers.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    rules = _Rules(frozenset(hosts), max_bytes, token, loopback_may_read)

    @app.middleware("http")
    async def guard(request: Request, application: Callable[[Request], Awaitable[Response]]) -> Response:
        try:
            answer = rules.refusal(request) or rules.first_visit(request) or await application(request)
        except LargeGNNError as error:
            answer = _text(400 if isinstance(error, InputError) else 500, str(error))
        except Exception as error:  # noqa: BLE001 - no traceback reaches the client
            _log.error("%s %s failed: %s: %s", request.method, request.url.path, type(error).__name__, error)
            answer = _text(500, "internal error; nothing was saved")
        answer.headers.update(rules.headers(policy, request.headers.get("origin", "")))
        return answer

    return app


async def read_form(request: Request) -> dict[str, str]:
    """Read the fields of a form; of repeated fields, the first value counts."""
    body = (await request.body()).decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(body, keep_blank_values=True, max_num_fields=100).items()}


@dataclass(frozen=True)
class _Rules:
    """The rules of an application, and the answers that follow from them."""

    hosts: frozenset[str]
    max_bytes: int
    token: str | None
    loopback_may_read: bool

    def refusal(self, request: Request) -> Response | None:
        """The refusal of a request; None for a request that is allowed."""
        headers = request.headers
        is_safe = request.method in ("GET", "HEAD", "OPTIONS")
        if "*" not in self.hosts and _host_of(f"//{headers.get('host', '')}") not in self.hosts:
            return _text(403, "this host name is not allowed")
        if not is_safe and request.method != "POST":
            return _text(405, "this method is not allowed")
        origin = headers.get("origin")
        if not is_safe and origin is not None and not self._is_allowed_origin(origin, headers.get("host", "")):
            return _text(403, "requests from another page are refused")
        if "transfer-encoding" in headers:
            return _text(411, "the length of the body is not declared")
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.max_bytes:
            return _text(413, f"the body is larger than {self.max_bytes:,} bytes")
        if self.token is not None and not self._has_token(request, self.token):
            return _text(403, "the token is missing: open the address that the program printed")
        return None

    def first_visit(self, request: Request) -> Response | None:
        """Answer a visit with the token in the address: set the cookie, and redirect to the address without it."""
        if self.token is None or not _query_token(request):
            return None
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return answer

    def headers(self, policy: str, origin: str) -> dict[str, str]:
        """The headers of every answer to a page of this origin."""
        headers = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
            "cross-origin-opener-policy": "same-origin",
        }
        if not self.loopback_may_read:
            return headers | {"cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY"}
        if is_loopback(_host_of(origin)):
            headers |= {"access-control-allow-origin": origin, "vary": "origin"}
        return headers

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        return origin == f"http://{host}" or (self.loopback_may_read and is_loopback(_host_of(origin)))

    @staticmethod
    def _has_token(request: Request, token: str) -> bool:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        candidates = (request.cookies.get(COOKIE, ""), bearer, _query_token(request))
        return any(hmac.compare_digest(text.encode("utf-8", "replace"), token.encode("utf-8")) for text in candidates)


def _query_token(request: Request) -> str:
    is_first_page = request.url.path == "/" and request.method == "GET"
    return request.query_params.get("token", "") if is_first_page else ""


def _host_of(address: str) -> str:
    return urlsplit(address).hostname or ""


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(text + "\n", status)
