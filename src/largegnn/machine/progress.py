"""How far a long piece of work has come: whoever works counts, and a display that looks now and then shows it.

In: a description, how much there is to do and in which unit, then how much was done. Out: what the display makes of it:
a bar on a terminal (`terminal_progress`), a line in the log now and then (`LogDisplay`), nothing where none is set, as
in use as a library.
The idea: work never waits for a display. `advance` adds to a number; a thread of its own looks at all numbers a few
times a second while work is open, and shows what has been open for longer than a moment. Work may open further work,
which is shown below it, and any thread may open and count.
Cost: an addition and a lock a call of `advance`; the thread sleeps between its looks. Without a display there is none.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Protocol

__all__ = ["Display", "LogDisplay", "Work", "progress", "set_display", "spell_rate", "spell_seconds"]

_log = logging.getLogger(__name__)


class Work:
    """A piece of work: what it is, how much of it there is (None: unknown), how much is done, how deep it is nested."""

    def __init__(self, description: str, total: int | None, unit: str, done: int, depth: int) -> None:
        self.description, self.total, self.unit, self.depth = description, total, unit, depth
        self.done = self._done_before = done
        self.owner = threading.get_ident()
        self._started = time.monotonic()
        self._lock = threading.Lock()

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more units as done."""
        with self._lock:
            self.done += amount

    @property
    def seconds(self) -> float:
        """How long the work has been open."""
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Units a second since it was opened."""
        return (self.done - self._done_before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """What the rest takes at this rate; None where that cannot be told."""
        if self.total is None or self.done <= self._done_before:
            return None
        return max(self.total - self.done, 0) / self.rate

    def __str__(self) -> str:
        """The work in words: what, how much of how much, how fast, how long still."""
        amount = f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"
        parts = [f"{self.description}: {amount} {self.unit}".rstrip()]
        if self.done > self._done_before:
            parts.append(spell_rate(self.rate, self.unit))
        if self.seconds_left is not None:
            parts.append(f"about {spell_seconds(self.seconds_left)} left")
        return ", ".join(parts)


class Display(Protocol):
    """Where work is shown; both methods are called from one thread at a time."""

    interval: float
    """Seconds between two looks, and how long work must be open to be shown."""

    def show(self, open_work: Sequence[Work]) -> None:
        """Show the work that is open, outer before inner."""
        ...

    def clear(self) -> None:
        """Take away what is shown: no work is open any more."""
        ...


class LogDisplay:
    """Plain lines in the log, for output that is no terminal."""

    def __init__(self, interval: float = 10.0) -> None:
        self.interval = interval

    def show(self, open_work: Sequence[Work]) -> None:
        """Write one line for all work that is open."""
        _log.info("%s", "; ".join(map(str, open_work)))

    def clear(self) -> None:
        """Lines stay."""


class _Board:
    """The work that is open, and the thread that shows it while there is any."""

    def __init__(self) -> None:
        self.display: Display | None = None
        self._open: list[Work] = []
        self._lock = threading.Lock()
        self._watch: tuple[threading.Thread, threading.Event] | None = None

    def open(self, description: str, total: int | None, unit: str, done: int) -> Work:
        owner = threading.get_ident()
        with self._lock:
            depth = sum(work.owner == owner for work in self._open)
            work = Work(description, total, unit, done, depth)
            self._open.append(work)
            if self._watch is None and self.display is not None:
                is_over = threading.Event()
                thread = threading.Thread(target=self._look, args=(self.display, is_over), name="progress", daemon=True)
                self._watch = thread, is_over
                thread.start()
        return work

    def close(self, work: Work) -> None:
        with self._lock:
            self._open.remove(work)
            watch = self._watch
            if self._open or watch is None:
                return
            self._watch = None
            # Within the lock, so that the next thread does not begin before this one has taken its lines away.
            watch[1].set()
            watch[0].join()

    def _look(self, display: Display, is_over: threading.Event) -> None:
        """Show what is open until nothing is."""
        while not is_over.wait(display.interval):
            # A copy, without the lock: whoever closes the last work holds it while waiting for this thread.
            open_work = [work for work in tuple(self._open) if work.seconds >= display.interval]
            if open_work:
                display.show(open_work)
        display.clear()


_board = _Board()


def set_display(display: Display | None) -> None:
    """Show work that is opened from now on here; None shows nothing."""
    _board.display = display


@contextlib.contextmanager
def progress(description: str, total: int | None = None, unit: str = "", *, done: int = 0) -> Iterator[Work]:
    """Open a piece of work; call `advance` on what comes back. `done` units were done before, by an earlier run."""
    work = _board.open(description, total, unit, done)
    try:
        yield work
    finally:
        _board.close(work)


def spell_rate(rate: float, unit: str) -> str:
    """Units a second, or seconds a unit where that is the larger number; `rate` is above 0."""
    if rate < 1:
        return f"{1 / rate:,.1f} s each"
    number = f"{rate:,.1f}" if rate < 100 else f"{rate:,.0f}"
    return f"{number} {unit}/s" if unit else f"{number}/s"


def spell_seconds(seconds: float) -> str:
    """A time to wait in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
