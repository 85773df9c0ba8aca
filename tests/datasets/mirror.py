"""Run a local server in place of a mirror: it serves files, or fails as a script says."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

__all__ = ["BODY", "Mirror", "mirror"]

BODY = bytes(range(256)) * 1200  # 307,200 bytes


class Mirror(ThreadingHTTPServer):
    """Serves `bodies` by path; `script` says what to do with the next requests, instead of behaving.

    A number is a status without a body; ("drop", n) sends n bytes of the answer and hangs up, ("hold", n) sends n bytes
    and waits until `released`; a function may change the mirror before it answers as usual.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: dict[str, bytes] = {"/file.zip": BODY}
        self.script: list[int | tuple[str, int] | Callable[[Mirror], None]] = []
        self.ranges = self.tags = self.lengths = True
        self.kind = "application/zip"
        self.released = threading.Event()
        self.asked: list[tuple[str | None, str | None]] = []

    def url(self, path: str = "/file.zip") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class _Handler(BaseHTTPRequestHandler):
    server: Mirror

    def do_GET(self) -> None:
        mirror = self.server
        mirror.asked.append((self.headers.get("Range"), self.headers.get("If-Range")))
        step = mirror.script.pop(0) if mirror.script else None
        if callable(step):
            step(mirror)
        body = mirror.bodies.get(self.path.split("?")[0])
        if isinstance(step, int) or body is None:
            self.send_response(step if isinstance(step, int) else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        tag = f'"{hashlib.md5(body).hexdigest()}"'
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(wanted[1]) if wanted and mirror.ranges and self.headers.get("If-Range", tag) == tag else 0
        if start and start >= len(body):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", mirror.kind)
        if mirror.lengths:
            self.send_header("Content-Length", str(len(body) - start))
        if mirror.tags:
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        self.wfile.write(body[start : start + step[1]] if isinstance(step, tuple) else body[start:])
        if isinstance(step, tuple) and step[0] == "hold":
            self.wfile.flush()
            mirror.released.wait(60)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "*")
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.released.set()
    server.shutdown()
    thread.join()
    server.server_close()
