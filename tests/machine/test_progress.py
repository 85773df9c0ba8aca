from __future__ import annotations

import io
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from rich.console import Console
from rich.live import Live
from rich.logging import RichHandler

from largegnn.machine.progress import LogDisplay, Work, progress, set_display, spell_rate, spell_seconds
from largegnn.machine.terminal_progress import LiveDisplay, install_terminal_progress


class Witness:
    """A display that notes what it is shown."""

    interval = 0.005

    def __init__(self) -> None:
        self.seen: list[list[tuple[str, int, int]]] = []
        self.num_cleared = 0

    def show(self, open_work: Sequence[Work]) -> None:
        self.seen.append([(work.description, work.depth, work.done) for work in open_work])

    def clear(self) -> None:
        self.num_cleared += 1

    def wait_for(self, *descriptions: str) -> list[tuple[str, int, int]]:
        """What was shown when exactly these were open."""
        until = time.monotonic() + 10
        while time.monotonic() < until:
            for shown in reversed(self.seen):
                if tuple(description for description, _, _ in shown) == descriptions:
                    return shown
            time.sleep(0.002)
        raise AssertionError(f"{descriptions} never shown")


@pytest.fixture
def witness() -> Witness:
    display = Witness()
    set_display(display)
    return display


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """No display before, which a command run in this process may have left, and none afterwards."""
    set_display(None)
    yield
    set_display(None)


def test_by_default_nothing_is_shown_and_no_thread_is_started() -> None:
    before = threading.active_count()
    with progress("train", 3, "epochs") as work:
        work.advance()
        assert threading.active_count() <= before
    assert work.done == 1


def test_work_inside_work_is_shown_below_it(witness: Witness) -> None:
    with progress("train", 3, "epochs", done=1) as outer:
        outer.advance()
        with progress("epoch", 10, "steps") as inner:
            inner.advance(4)
            witness.seen.clear()
            assert witness.wait_for("train", "epoch") == [("train", 0, 2), ("epoch", 1, 4)]
        assert witness.wait_for("train") == [("train", 0, 2)]
        assert witness.num_cleared == 0
    assert witness.num_cleared == 1
    num_shown = len(witness.seen)
    time.sleep(4 * witness.interval)
    assert len(witness.seen) == num_shown
    with progress("search"):
        witness.wait_for("search")
    assert witness.num_cleared == 2


def test_what_takes_but_a_moment_is_not_shown(witness: Witness) -> None:
    witness.interval = 0.2
    for _ in range(3):
        with progress("blink", 1) as work:
            work.advance()
    assert witness.seen == []


def test_many_threads_count_into_one_number_and_open_their_own(witness: Witness) -> None:
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
    # Work of another thread is not inside ours.
    assert {depth for shown in witness.seen for _, depth, _ in shown} <= {0}


def test_work_that_fails_is_closed(witness: Witness) -> None:
    def fail() -> None:
        with progress("train"):
            witness.wait_for("train")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert witness.num_cleared == 1


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


def test_plain_lines_where_there_is_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    set_display(LogDisplay(interval=0.005))
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


def test_live_bars_leave_the_log_whole() -> None:
    console, written = terminal()
    handler = RichHandler(console=console, show_path=False)
    logger = logging.getLogger("largegnn.test_progress")
    logger.addHandler(handler)
    set_display(LiveDisplay(console, interval=0.005))
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
    # The line stands alone, and the cursor that the bars hid is back.
    assert any(line.rstrip().endswith("a line of the log") for line in text.splitlines())
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l") > 0


def test_a_console_that_is_taken_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.errors import LiveError

    def refuse(self: Live, refresh: bool = False) -> None:
        raise LiveError("taken")

    monkeypatch.setattr(Live, "start", refuse)
    display = LiveDisplay(terminal()[0])
    with progress("train", 1) as work:
        display.show([work])
    display.clear()


def test_bars_on_a_terminal_and_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[object] = []
    monkeypatch.setattr("largegnn.machine.terminal_progress.set_display", installed.append)
    install_terminal_progress(terminal()[0])
    install_terminal_progress(Console(file=io.StringIO()))
    assert [type(display) for display in installed] == [LiveDisplay, LogDisplay]


def test_without_rich_there_are_lines() -> None:
    program = """
import sys
sys.modules["rich"] = None
from largegnn.machine import progress, terminal_progress
terminal_progress.install_terminal_progress()
assert isinstance(progress._board.display, progress.LogDisplay)
with progress.progress("train", 1, "epochs") as work:
    work.advance()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


def test_rich_is_imported_when_it_is_used() -> None:
    program = (
        "import sys, largegnn.machine.progress, largegnn.machine.terminal_progress; assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
