"""Test the review page without a browser: access, answers, and saved decisions."""

from __future__ import annotations

import re
import socket
import threading
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from largegnn.review.session import ReviewSession
from largegnn.services.review_app import review_application
from largegnn.services.server import listening
from tests.review.small_alignment import toy_alignment, toy_literals, toy_summary
from tests.review.test_decisions import INFO

TOKEN = "the-token"
HOSTILE = "<img src=x onerror=alert(1)>\"'&"


@pytest.fixture
def session(toy_task: AlignmentTask, tmp_path: Path) -> ReviewSession:
    names = TaskNames(
        StringTable.from_strings([f"{name}{HOSTILE}" for name in "abcdeABCDEF"]),
        StringTable.from_strings([HOSTILE] * 4),
    )
    file = tmp_path / "decisions.jsonl"
    return ReviewSession(toy_task, names, toy_literals(), toy_alignment(), toy_summary(), file)


@pytest.fixture
def stranger(session: ReviewSession) -> TestClient:
    """Make a client without the token; an exception in the server would be raised in the test."""
    return TestClient(review_application(session, INFO, token=TOKEN, hosts=("testserver",)))


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def test_the_first_visit_leaves_the_token_in_a_cookie(stranger: TestClient) -> None:
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert stranger.get("/").status_code == 200


def test_requests_without_the_token_are_refused(stranger: TestClient, session: ReviewSession) -> None:
    for path in (
        "/",
        "/worklist",
        "/pair/0",
        "/export/decisions.tsv",
        "/static/style.css",
        "/?token=guess",
        "/pair/0?token=" + TOKEN,
    ):
        assert stranger.get(path).status_code == 403, path
    assert stranger.post("/decide", data={"row": "0", "decision": "accept", "reviewer": "eve"}).status_code == 403
    assert stranger.get("/", headers={"cookie": "largegnn_token=guess; ;;="}).status_code == 403
    assert session.log.decisions() == []
    assert stranger.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_other_pages_and_other_names_of_the_host_are_refused(client: TestClient, session: ReviewSession) -> None:
    form = {"row": "0", "decision": "accept", "reviewer": "ann"}
    for origin in ("http://evil.example", "null", "https://testserver", "http://testserver.evil.example"):
        assert client.post("/decide", data=form, headers={"origin": origin}).status_code == 403
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    assert session.log.decisions() == []
    assert client.post("/decide", data=form, headers={"origin": "http://testserver"}).status_code == 200
    assert client.put("/decide", data=form).status_code == 405


def test_a_server_on_all_addresses_answers_to_any_name(session: ReviewSession) -> None:
    """The token still protects it: a page that uses DNS rebinding does not have the cookie."""
    client = TestClient(review_application(session, INFO, token=TOKEN, hosts=("*",)))
    assert client.get("/", headers={"host": "192.0.2.7:8765"}).status_code == 403
    named = {"host": "192.0.2.7:8765", "authorization": f"Bearer {TOKEN}"}
    assert client.get("/", headers=named).status_code == 200


def test_bodies_and_paths_have_limits(client: TestClient) -> None:
    assert client.post("/decide", content=b"x" * 10_000_000).status_code == 413
    endless = (b"x" * 10_000 for _ in range(1_000))
    assert client.post("/decide", content=endless).status_code == 411, "without a length"
    for path in (
        "/static/../session.py",
        "/static/..%2Fsession.py",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static/review.py",
        "/x",
    ):
        assert client.get(path).status_code == 404, path
    for path in ("/pair/99", "/pair/-1", "/pair/x", f"/pair/{10**30}"):
        assert client.get(path).status_code in (400, 422), path
    for query in ("low=nan", "low=x&high=-3", "page=99999999", "page=-1", "state=<b>", "order=", "query=" + "%00" * 50):
        assert client.get(f"/worklist?{query}").status_code == 200, query


def test_every_answer_forbids_scripts_and_frames_of_others(client: TestClient) -> None:
    for path in ("/", "/pair/0", "/static/htmx.min.js", "/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")


def test_names_are_harmless_everywhere(client: TestClient) -> None:
    for path in ("/", "/worklist?decided=all", "/pair/0"):
        text = client.get(path).text
        assert "<img" not in text, path
        assert "&lt;img src=x onerror" in text, path
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>", page) == [
        '<script src="/static/htmx.min.js" defer>',
        '<script src="/static/review.js" defer>',
    ]
    assert "onclick" not in page
    assert "style=" not in page


def test_decide_undo_and_export(client: TestClient, session: ReviewSession) -> None:
    form = {"row": "4", "decision": "reject", "reviewer": "ann", "order": "most confident"}
    answer = client.post("/decide", data=form)
    assert answer.headers["hx-trigger"] == "decided"
    assert "1 rejected" in answer.text
    assert 'data-shown="0"' in answer.text, "the next pair; after the last pair, the list starts again"
    assert [one.decision for one in session.log.decisions()] == ["reject"]
    table = client.get("/export/decisions.tsv")
    assert table.text.splitlines()[1].split("\t")[2:4] == ["reject", "ann"]
    assert "attachment" in table.headers["content-disposition"]
    assert "semapv:ManualMappingCuration" in client.get("/export/decisions.sssom.tsv").text
    assert 'data-shown="4"' in client.post("/undo", data={"reviewer": "ann"}).text
    assert session.log.decisions() == []
    nothing = client.post("/undo", data={"reviewer": "ann"})
    assert (nothing.status_code, nothing.text.splitlines()[0]) == (400, "you have no decision to undo")


def test_a_decision_needs_a_name_and_a_word(client: TestClient, session: ReviewSession) -> None:
    assert "your name" in client.post("/decide", data={"row": "0", "decision": "accept", "reviewer": " "}).text
    for form in (
        {"row": "0", "decision": "maybe"},
        {"row": "x", "decision": "accept"},
        {},
        {"row": "0", "instead": "3"},
    ):
        assert client.post("/decide", data={**form, "reviewer": "ann"}).status_code == 400
    assert session.log.decisions() == []


def test_two_reviewers_at_once_lose_nothing(client: TestClient, session: ReviewSession) -> None:
    def decide(name: str) -> None:
        for number in range(30):
            row = (0, 2, 4)[number % 3]
            form = {"row": str(row), "decision": ("accept", "reject")[number % 2], "reviewer": name}
            assert client.post("/decide", data=form).status_code == 200

    threads = [threading.Thread(target=decide, args=(name,)) for name in ("ann", "ben")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(session.log.decisions()) == 60


def test_a_failure_is_a_line_of_text(
    client: TestClient, session: ReviewSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "view", lambda row: 1 / 0)
    client = TestClient(client.app, raise_server_exceptions=True)
    answer = client.get("/pair/0", headers={"authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.text) == (500, "internal error; nothing was saved\n")


def test_answers_are_not_delayed() -> None:
    """asyncio sets TCP_NODELAY only if the protocol is given as TCP; without it, an answer may wait 40 ms."""
    with listening("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP
