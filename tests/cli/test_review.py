"""`largegnn review` and `serve`: the commands, from the start of the server to a kill and back."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from largegnn.data.decisions import Decision
from largegnn.review.decisions import DecisionLog
from tests.cli.small_runs import call

pytest.importorskip("fastapi")


class Server:
    """A server in a process of its own."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "largegnn", *map(str, arguments), "--port", "0"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://(127\.0\.0\.1):(\d+)(/\S*)", line)
        assert found is not None, self.process.communicate()[1]
        self.url, self.port = found[0], int(found[2])
        self.token = urllib.parse.parse_qs(urllib.parse.urlsplit(self.url).query).get("token", [""])[0]

    def ask(self, path: str, **form: str) -> tuple[int, str]:
        data = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        request.add_header("authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def stop(self, number: int = signal.SIGINT) -> str:
        self.process.send_signal(number)
        return self.process.communicate(timeout=20)[1]


@pytest.fixture
def server(copy: Path) -> Iterator[Server]:
    started = Server("review", copy)
    yield started
    if started.process.poll() is None:
        started.stop()


def test_a_thousand_requests_at_once_then_a_decision_then_a_kill(server: Server, copy: Path) -> None:
    request = f"GET /static/style.css HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"

    def ask(_: int) -> bytes:
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(request.encode())
            return connection.recv(12)

    with ThreadPoolExecutor(200) as pool:
        answers = list(pool.map(ask, range(1000)))
    assert {answer[9:12] for answer in answers} <= {b"200", b"503"}, "served or refused"
    row = re.search(r'data-shown="(\d+)"', server.ask("/")[1])
    assert row is not None, "and it is still there"
    assert server.ask("/decide", row=row[1], decision="accept", reviewer="ann")[0] == 200
    assert "Traceback" not in server.stop(signal.SIGKILL)
    assert len(DecisionLog(copy / "decisions.jsonl").decisions()) == 1
    again = Server("review", copy)
    assert "1 decided of" in again.ask("/")[1]
    assert "Traceback" not in again.stop()


def raw(port: int, head: str, body: bytes = b"") -> bytes:
    """The first line of the answer to bytes as they are: no client sees to it that they make sense."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be refused before all of it is sent
            connection.sendall(head.replace("\n", "\r\n").encode() + body)
        return connection.makefile("rb").readline()


def test_refusals_of_a_real_server(server: Server, copy: Path) -> None:
    host, token = "Host: 127.0.0.1\n", f"Authorization: Bearer {server.token}\n"
    form = b"row=0&decision=accept&reviewer=eve"
    size = f"Content-Length: {len(form)}\n"
    large = 10_000_000
    for expected, head, body in (
        (b"403", f"GET / HTTP/1.1\n{host}\n", b""),
        (b"403", f"POST /decide HTTP/1.1\n{host}{size}\n", form),
        (b"403", f"POST /decide HTTP/1.1\n{host}{token}Origin: http://evil.example\n{size}\n", form),
        (b"403", f"GET / HTTP/1.1\nHost: evil.example\n{token}\n", b""),
        (b"404", f"GET /static/../../../../etc/passwd HTTP/1.1\n{host}{token}\n", b""),
        (b"404", f"GET /static/%2e%2e%2f%2e%2e%2fsession.py HTTP/1.1\n{host}{token}\n", b""),
        (b"413", f"POST /decide HTTP/1.1\n{host}{token}Content-Length: {large}\n\n", b"x" * large),
        (b"400", "NONSENSE\n\n", b""),
    ):
        assert raw(server.port, head, body).split()[1:2] == [expected], head
    assert server.ask("/")[0] == 200, "and it is still there"
    assert "Traceback" not in server.stop()
    assert not (copy / "decisions.jsonl").exists()


def test_decisions_as_files_without_a_server(copy: Path, tmp_path: Path) -> None:
    pair = (copy / "alignment.tsv").read_text(encoding="utf-8").splitlines()[1].split("\t")[:2]
    log = tmp_path / "mine.jsonl"
    DecisionLog(log).add(Decision(pair[0], pair[1], "reject", "ann"))
    call("review", copy, "--decisions", log, "--export", tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text().splitlines()[1].split("\t")[:4] == [*pair, "reject", "ann"]
    call("review", copy, "--decisions", log, "--export", tmp_path / "out.sssom.tsv")
    assert "\tNot\t" in (tmp_path / "out.sssom.tsv").read_text()


def test_a_port_that_is_taken_is_told(copy: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = call("review", copy, "--port", str(taken.getsockname()[1]), expect=2)
    assert "cannot listen at this address" in ended.stderr


def test_serve(finished: Path) -> None:
    pairs = [line.split("\t") for line in (finished / "alignment.tsv").read_text(encoding="utf-8").splitlines()]
    source, target = pairs[1][:2]
    confidence = float(pairs[1][pairs[0].index("confidence")])
    server = Server("serve", finished)
    assert json.loads(server.ask("/")[1])["versions"] == ["0.2"]
    answer = json.loads(server.ask("/", queries=json.dumps({"q": {"query": source}}))[1])["q"]["result"]
    first = next(one for one in answer if one["id"] == target)
    assert (first["match"], first["score"]) == (True, pytest.approx(100 * confidence, abs=1e-3))
    assert {"cosine", "csls", "support"} <= {one["id"] for one in first["features"]}
    explained = json.loads(server.ask(f"/align?entity={urllib.parse.quote(source, safe='')}&side=source")[1])
    assert (explained["counterpart"], explained["confidence"]) == (target, pytest.approx(confidence, abs=1e-5))
    assert explained["explanation"]["candidates"]
    assert server.ask("/align?entity=unknown")[0] == 400
    assert "Traceback" not in server.stop()
    assert "is not one of 'source', 'target'" in call("serve", finished, "--side", "left", expect=2).stderr
