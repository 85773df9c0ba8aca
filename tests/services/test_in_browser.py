"""Test the pages in a real browser: keyboard, hostile names, many pairs, roles for screen readers, widths."""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright.sync_api")

import uvicorn

from largegnn.artifacts import Alignment, AlignmentTask, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.matching.confidence.thresholds import Threshold
from largegnn.review.pages import ReportInputs
from largegnn.review.report_page import report_html
from largegnn.review.session import ReviewSession
from largegnn.run import RunSummary
from largegnn.services.review_app import review_application
from largegnn.services.server import listening
from tests.review.small_alignment import toy_summary
from tests.review.test_decisions import INFO

TOKEN = "the-token"
COUNT = 100_000
# The texts of elements that are wider than their place.
TRUNCATED = """[...document.querySelectorAll('.wide, figure, .picture, .neighbors, .evidence')]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 80))"""
HOSTILE = '"><img src=x onerror="document.title=1">'


@dataclasses.dataclass(frozen=True)
class World:
    """A hundred thousand pairs in two chains of entities; the names of the first few hold HTML."""

    task: AlignmentTask
    names: TaskNames
    alignment: Alignment
    summary: RunSummary

    def session(self, folder: Path) -> ReviewSession:
        file = folder / "decisions.jsonl"
        return ReviewSession(self.task, self.names, Literals.empty(), self.alignment, self.summary, file)


@pytest.fixture(scope="module")
def world() -> World:
    steps = np.arange(COUNT - 1)
    ones = np.zeros(COUNT - 1, dtype=np.int64)
    source = np.stack([steps, ones, steps + 1], axis=1)
    target = np.stack([steps + COUNT, ones + 1, steps + COUNT + 1], axis=1)
    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(COUNT, COUNT, 1, 1, np.concatenate([source, target]), none, none, none)
    names = [f"http://{side}.org/{HOSTILE if number < 50 else 'E'}{number}" for side in "st" for number in range(COUNT)]
    confidence = np.linspace(0.999, 0.0, COUNT, dtype=np.float32)
    first = np.ones(COUNT, dtype=np.int32)
    accepted = confidence >= 0.5
    alignment = Alignment(
        np.stack([np.arange(COUNT), COUNT + np.arange(COUNT)], axis=1), ("cosine",), confidence[None], confidence,
        confidence, first, first, confidence, accepted, np.tile(np.where(accepted, 0, 5), 2),
    )  # fmt: skip
    count = int(accepted.sum())
    match = toy_summary().match
    assert match is not None
    found = dataclasses.replace(match, num_accepted=count, threshold=Threshold(0.5, count, 0.75, 0.7, 0.8))
    task_names = TaskNames(StringTable.from_strings(names), StringTable.from_strings(["next", "next"]))
    return World(task, task_names, alignment, toy_summary(match=found))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start an installed Chromium, headless; these tests download nothing."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium here (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open pages of a width; the test fails if a page logs an error or sends a request to another server."""
    complaints: list[str] = []
    pages: list[Any] = []

    def open_one(address: str, width: int = 1280, scheme: str = "light") -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if is_complaint(message) else None)
        allowed = (address.split("/?")[0], "data:", "file:")
        page.on("request", lambda asked: None if asked.url.startswith(allowed) else complaints.append(asked.url))
        page.set_default_timeout(10_000)
        page.goto(address)
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.close()
    assert complaints == []


def is_complaint(message: Any) -> bool:
    """Whether a message is an error; refusals are expected, and htmx logs requests that a newer request replaced."""
    refused = (
        "400 (Bad Request)" in message.text or "responseError" in message.text or "Response Status" in message.text
    )
    replaced = message.text.startswith(("htmx:sendAbort", "htmx:afterRequest"))
    return message.type == "error" and not refused and not replaced


@pytest.fixture(scope="module")
def session(world: World, tmp_path_factory: pytest.TempPathFactory) -> ReviewSession:
    return world.session(tmp_path_factory.mktemp("review"))


@pytest.fixture(scope="module")
def address(session: ReviewSession) -> Iterator[str]:
    application = review_application(session, INFO, token=TOKEN, hosts=("127.0.0.1",), reviewer="ann")
    with listening("127.0.0.1", 0) as bound:
        server = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/?token={TOKEN}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def report(world: World, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the report of this world."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    report_html(ReportInputs(world.task, world.names, world.alignment, world.summary), path)
    return path.as_uri()


def shown(page: Any) -> str:
    return str(page.locator("[data-shown]").get_attribute("data-shown"))


def press(page: Any, key: str) -> str:
    """Press a key and wait for another pair; returns its row."""
    before = shown(page)
    page.keyboard.press(key)
    page.wait_for_function("row => document.querySelector('[data-shown]').dataset.shown !== row", arg=before)
    return shown(page)


def test_by_keyboard_alone(open_page: Callable[..., Any], address: str, session: ReviewSession) -> None:
    page = open_page(address)
    assert "token" not in page.url
    first = shown(page)
    second = press(page, "a")
    third = press(page, "r")
    press(page, "u")
    assert press(page, "z") == third, "undone, and shown again"
    assert [one.decision for one in session.log.decisions()] == ["accept", "reject"]
    assert {first, second} == {str(session._row(one.source, one.target)) for one in session.log.decisions()}
    assert press(page, "j") != third
    assert page.locator("#worklist [aria-current]").get_attribute("data-row") == shown(page)
    page.keyboard.press("/")
    page.keyboard.type("s.org/E77")
    page.wait_for_function("() => document.querySelector('#worklist [role=status]').textContent.startsWith('1,111 ')")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") != "query"
    press(page, "z")
    press(page, "z")
    assert session.log.decisions() == []


def test_a_hundred_thousand_pairs_do_not_freeze_the_page(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address)
    assert page.locator("#worklist [data-row]").count() == 40, "a part of the pairs at a time"
    started = time.monotonic()
    page.select_option("select[name=state]", "accepted")
    page.fill("input[name=low]", "0.9")
    page.locator("input[name=low]").blur()
    page.wait_for_function("() => document.querySelector('#worklist [role=status]').textContent.startsWith('9,')")
    page.get_by_role("button", name="show more").click()
    page.wait_for_function("() => document.querySelectorAll('#worklist [data-row]').length === 80")
    assert time.monotonic() - started < 8


def test_a_name_with_html_in_it_is_a_name(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address)
    page.select_option("select[name=order]", "most confident")
    page.wait_for_function("() => document.querySelector('#worklist [data-row]').dataset.row === '0'")
    page.locator("#worklist [data-row]").first.click()
    page.wait_for_function("() => document.querySelector('[data-shown]').dataset.shown === '0'")
    assert page.locator("img").count() == 0
    assert "onerror=" in page.locator("#pair h2").inner_text()
    assert page.title() == f"Review: {INFO.title}".replace("\t", " ").strip()


def test_what_a_screen_reader_finds(open_page: Callable[..., Any], address: str) -> None:
    page = open_page(address)
    for role, name in (("button", "Accept"), ("button", "Undo"), ("textbox", "Reviewer"), ("combobox", "Order")):
        assert page.get_by_role(role, name=name).count() == 1, name
    assert page.get_by_role("main").count() == page.get_by_role("complementary").count() == 1
    assert page.get_by_role("img").first.get_attribute("aria-label").startswith("Neighbours of")
    page.fill("#reviewer", "")
    page.get_by_role("button", name="Accept").click()
    page.wait_for_function("() => document.querySelector('#error').textContent.includes('your name')")
    assert page.get_by_role("alert").count() == 1


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(open_page: Callable[..., Any], address: str, report: str, width: int, scheme: str) -> None:
    for place in (address, report):
        page = open_page(place, width, scheme)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "no scrolling sideways"
        assert page.evaluate(TRUNCATED) == [], "no table or picture is cut"
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") == (scheme == "light")


def test_the_slider_moves_the_numbers(open_page: Callable[..., Any], world: World, report: str) -> None:
    page = open_page(report)
    pairs = page.locator("#cut-pairs")
    match = world.summary.match
    assert match is not None
    assert pairs.inner_text() == f"{match.num_accepted:,}"
    place = page.locator(".marker").get_attribute("x1")
    page.locator("#threshold").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expected = int((world.alignment.confidence >= np.float32(0.6)).sum())
    assert pairs.inner_text() == f"{expected:,}"
    assert float(page.locator(".marker").get_attribute("x1")) > float(place)
    page.get_by_role("button", name="Back to the threshold").click()
    assert pairs.inner_text() == f"{match.num_accepted:,}"
