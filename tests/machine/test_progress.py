from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from rich.console import Console
from rich.logging import RichHandler

from largegnn.machine import progress as module
from largegnn.machine.progress import Work, progress, show_progress, spell_rate, spell_seconds

Shown = list[tuple[str, int, int]]


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[module._Display]:
    """A display of its own, which refreshes often."""
    fresh = module._Display()
    for name, value in (("_display", fresh), ("_BAR_INTERVAL", 0.005), ("_LINE_INTERVAL", 0.005)):
        monkeypatch.setattr(module, name, value)
    yield fresh
    fresh.interval = 3_600  # its thread ends with the process


@pytest.fixture
def shown(display: module._Display, monkeypatch: pytest.MonkeyPatch) -> list[Shown]:
    """The list of drawings: description, depth and amount of each piece of work."""
    drawn: list[Shown] = []

    def draw(_: Console, works: Sequence[Work]) -> None:
        drawn.append([(work.description, work.depth, work.done) for work in works])

    monkeypatch.setattr(display, "_draw", draw)
    show_progress(terminal()[0])
    return drawn


def wait_for(shown: list[Shown], *descriptions: str) -> Shown:
    """The drawing in which exactly these pieces of work are open."""
    shown.clear()
    until = time.monotonic() + 10
    while time.monotonic() < until:
        for works in reversed(shown):
            if tuple(description for description, _, _ in works) == descriptions:
                return works
        time.sleep(0.002)
    raise AssertionError(f"{descriptions} never shown")


def test_by_default_nothing_is_shown_and_no_thread_is_started(display: module._Display) -> None:
    before = threading.active_count()
    with progress("train", 3, "epochs") as work:
        work.advance()
        assert threading.active_count() <= before
    assert work.done == 1


def test_work_inside_work_is_shown_below_it(shown: list[Shown]) -> None:
    with progress("train", 3, "epochs", done=1) as outer:
        outer.advance()
        with progress("epoch", 10, "steps") as inner:
            inner.advance(4)
            assert wait_for(shown, "train", "epoch") == [("train", 0, 2), ("epoch", 1, 4)]
        assert wait_for(shown, "train") == [("train", 0, 2)]
    num_shown = len(shown)
    time.sleep(0.02)
    assert len(shown) == num_shown
    with progress("search"):
        wait_for(shown, "search")


def test_short_work_is_not_shown(display: module._Display, shown: list[Shown]) -> None:
    display.interval = 0.2
    for _ in range(3):
        with progress("blink", 1) as work:
            work.advance()
    assert shown == []


def test_many_threads_advance_common_work_and_open_their_own(shown: list[Shown]) -> None:
    def count(work: Work) -> None:
        with progress("own") as own:
            for _ in range(2_000):
                work.advance()
                own.advance()

    with progress("shared", 8_000) as work:
        threads = [threading.Thread(target=count, args=(work,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert work.done == 8_000
    # The work of a thread is not nested in the work of another thread.
    assert {depth for works in shown for _, depth, _ in works} <= {0}


def test_work_that_fails_is_closed(display: module._Display) -> None:
    with pytest.raises(ZeroDivisionError), progress("train"):
        raise ZeroDivisionError
    assert display._open == []


def test_rate_and_time_left() -> None:
    with progress("search", 1_000, "rows", done=100) as work:
        assert (work.rate, work.seconds_left) == (0.0, None)
        assert str(work) == "search: 100 of 1,000 rows"
        work.advance(300)
        work._started -= 100
        assert work.rate == pytest.approx(3.0, rel=1e-3)
        assert work.seconds_left == pytest.approx(200.0, rel=1e-3)
        assert str(work) == "search: 400 of 1,000 rows, 3.0 rows/s, about 3 min left"
        work.advance(700)
        assert work.seconds_left == 0.0
    with progress("read") as work:
        work.advance(5)
        work._started -= 1
        assert str(work).startswith("read: 5, ")
        assert work.seconds_left is None


def test_words_for_rates_and_times() -> None:
    assert [spell_seconds(seconds) for seconds in (0.4, 89, 95, 5_000, 7_200)] == [
        "0 s",
        "89 s",
        "2 min",
        "83 min",
        "2.0 h",
    ]
    assert [spell_rate(rate, "steps") for rate in (0.1, 3.25, 12_345.6)] == [
        "10.0 s each",
        "3.2 steps/s",
        "12,346 steps/s",
    ]
    assert spell_rate(2, "") == "2.0/s"


def test_plain_lines_where_there_is_no_terminal(display: module._Display, caplog: pytest.LogCaptureFixture) -> None:
    show_progress(Console(file=io.StringIO()))
    with caplog.at_level(logging.INFO), progress("train", 3, "epochs"), progress("epoch", 9, "steps"):
        until = time.monotonic() + 10
        while len(caplog.messages) < 2 and time.monotonic() < until:
            time.sleep(0.002)
    assert "train: 0 of 3 epochs; epoch: 0 of 9 steps" in caplog.messages


def terminal() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, force_terminal=True, force_interactive=True, width=120), written


def _shown(text: str) -> set[str]:
    return {part for part in ("3/10 epochs", "7 steps") if part in text}


def test_lines_of_the_log_appear_between_live_bars(display: module._Display) -> None:
    console, written = terminal()
    handler = RichHandler(console=console, show_path=False)
    logger = logging.getLogger("largegnn.test_progress")
    logger.addHandler(handler)
    show_progress(console)
    try:
        with progress("train", 10, "epochs") as outer, progress("epoch", None, "steps") as inner:
            outer.advance(3)
            inner.advance(7)
            until = time.monotonic() + 10
            while not {"3/10 epochs", "7 steps"} <= _shown(written.getvalue()) and time.monotonic() < until:
                time.sleep(0.002)
            logger.warning("a line of the log")
    finally:
        logger.removeHandler(handler)
    text = written.getvalue()
    assert "3/10 epochs" in text
    assert "  epoch" in text
    assert "7 steps" in text
    # The line has no bar in it, and the cursor that the bars hid is shown again.
    assert any(line.rstrip().endswith("a line of the log") for line in text.splitlines())
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l") > 0
