"""Show the progress of long work: `progress` counts it, and a display shows the counts.

In: a description, a total and its unit, then how much was done. Out: a bar on a terminal (`terminal_progress`), lines
in the log (`LogDisplay`), or nothing where no display is set, as when the package is used as a library.
The idea: work does not wait for a display. `advance` adds to a number; a thread reads all numbers a few times a second,
and shows work that has been open for longer than a moment. Work may open further work, which is shown below it, and any
thread may open work and count. Cost: an addition and a lock for each `advance`; without a display there is no thread.
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
    """A piece of work: its description, total (None: unknown), what is done of it, and how deep it is nested."""

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
        """Seconds for the rest at this rate; None where that is unknown."""
        if self.total is None or self.done <= self._done_before:
            return None
        return max(self.total - self.done, 0) / self.rate

    def __str__(self) -> str:
        """A line for the log: description, amount, rate, time left."""
        amount = f"{self.done:,}" if self.total is None else f"{self.done:,} of {self.total:,}"
        parts = [f"{self.description}: {amount} {self.unit}".rstrip()]
        if self.done > self._done_before:
            parts.append(spell_rate(self.rate, self.unit))
        if self.seconds_left is not None:
            parts.append(f"about {spell_seconds(self.seconds_left)} left")
        return ", ".join(parts)


class Display(Protocol):
    """Shows work; its methods are called by one thread at a time."""

    interval: float
    """Seconds between two refreshes, and how long work must be open to be shown."""

    def show(self, open_work: Sequence[Work]) -> None:
        """Show the work that is open, outer before inner."""
        ...

    def clear(self) -> None:
        """Remove what is shown: no work is open any more."""
        ...


class LogDisplay:
    """Plain lines in the log, for output that is not a terminal."""

    def __init__(self, interval: float = 10.0) -> None:
        self.interval = interval

    def show(self, open_work: Sequence[Work]) -> None:
        """Write one line for all work that is open."""
        _log.info("%s", "; ".join(map(str, open_work)))

    def clear(self) -> None:
        """Lines of a log stay."""


class _Board:
    """The work that is open, and the thread that shows it."""

    def __init__(self) -> None:
        self.display: Display | None = None
        self._open: list[Work] = []
        self._lock = threading.Lock()

    def set_display(self, display: Display | None) -> None:
        self.display = display
        if display is not None:
            threading.Thread(target=self._refresh, args=(display,), name="progress", daemon=True).start()

    def open(self, description: str, total: int | None, unit: str, done: int) -> Work:
        owner = threading.get_ident()
        with self._lock:
            depth = sum(work.owner == owner for work in self._open)
            work = Work(description, total, unit, done, depth)
            self._open.append(work)
        return work

    def close(self, work: Work) -> None:
        with self._lock:
            self._open.remove(work)
            if not self._open and self.display is not None:
                self.display.clear()

    def _refresh(self, display: Display) -> None:
        """Show what is open now and then, as long as this is the display."""
        while self.display is display:
            with self._lock:
                open_work = [work for work in self._open if work.seconds >= display.interval]
                if open_work:
                    display.show(open_work)
            time.sleep(display.interval)


_board = _Board()


def set_display(display: Display | None) -> None:
    """Show open work here from now on; None shows nothing."""
    _board.set_display(display)


@contextlib.contextmanager
def progress(description: str, total: int | None = None, unit: str = "", *, done: int = 0) -> Iterator[Work]:
    """Open a piece of work, whose `advance` counts; `done` units were done before, by an earlier run."""
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
    """A waiting time as text."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
