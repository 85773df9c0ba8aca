"""Show the progress of long work: `progress` counts units of work, and `show_progress` displays the counts.

In: a description, a total and its unit, then the amounts done. Out: progress bars below the log on a terminal, lines in
the log otherwise. Nothing is shown before `show_progress` is called, so a library that uses this package stays silent.
The idea: work never waits for the display. `advance` adds to a number; a thread reads all numbers at regular intervals,
and shows work that has been open for at least one interval. Work may open nested work, which is shown below it, and
any thread may open work and count. Cost: an addition and a lock for each `advance`.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

__all__ = ["Work", "progress", "show_progress", "spell_rate", "spell_seconds"]

_log = logging.getLogger(__name__)
_BAR_WIDTH = 30
# Seconds between two refreshes; also how long work must have been open to be shown.
_BAR_INTERVAL, _LINE_INTERVAL = 0.25, 10.0


class Work:
    """A piece of work: description, total (None: unknown), amount done, depth of nesting."""

    def __init__(self, description: str, total: int | None, unit: str, done: int, depth: int) -> None:
        self.description = description
        self.total = total
        self.unit = unit
        self.depth = depth
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
        """Seconds since the work was opened."""
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Units per second since the work was opened."""
        return (self.done - self._done_before) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the remaining units at the present rate; None if unknown."""
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


class _Display:
    """The list of open work, and the thread that shows it after `start`."""

    def __init__(self) -> None:
        self.interval = _LINE_INTERVAL
        self._console: Console | None = None
        self._live: Live | None = None
        self._open: list[Work] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, console: Console) -> None:
        # `is_interactive` is false where the terminal cannot move its cursor (TERM=dumb).
        self._console = console if console.is_terminal and console.is_interactive else None
        self.interval = _LINE_INTERVAL if self._console is None else _BAR_INTERVAL
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()

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
            if not self._open and self._live is not None:
                self._live.stop()
                self._live = None

    def _run(self) -> None:
        while True:
            time.sleep(self.interval)
            with self._lock:
                shown = [work for work in self._open if work.seconds >= self.interval]
                if shown and self._console is not None:
                    self._draw(self._console, shown)
                elif shown:
                    _log.info("%s", "; ".join(map(str, shown)))

    def _draw(self, console: Console, shown: Sequence[Work]) -> None:
        """Draw one bar for each piece of work, with nested work below."""
        from rich.live import Live

        if self._live is None:
            # On a terminal, printed lines must appear above the bars; output to a file or a pipe is not redirected.
            to_terminal = sys.stdout.isatty()
            self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=to_terminal)
            self._live.start()
        self._live.update(_bars(shown), refresh=True)


_display = _Display()


def show_progress(console: Console) -> None:
    """Show open work from now on: as bars if the console is a terminal, else as lines in the log."""
    _display.start(console)


@contextlib.contextmanager
def progress(description: str, total: int | None = None, unit: str = "", *, done: int = 0) -> Iterator[Work]:
    """Open a piece of work, and close it at the end of the `with` block; an earlier run did `done` units of it."""
    work = _display.open(description, total, unit, done)
    try:
        yield work
    finally:
        _display.close(work)


def _bars(shown: Sequence[Work]) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    for _ in range(5):
        table.add_column(no_wrap=True)
    for work in shown:
        amount = f"{work.done:,}" if work.total is None else f"{work.done:,}/{work.total:,}"
        seconds_left = work.seconds_left
        table.add_row(
            "  " * work.depth + work.description,
            ProgressBar(work.total, work.done, width=_BAR_WIDTH, pulse=work.total is None),
            f"{amount} {work.unit}",
            spell_rate(work.rate, work.unit) if work.rate > 0 else "",
            "" if seconds_left is None else f"{spell_seconds(seconds_left)} left",
        )
    return table


def spell_rate(rate: float, unit: str) -> str:
    """Format a rate above 0 as units per second, or as seconds per unit if it is below 1."""
    if rate < 1:
        return f"{1 / rate:,.1f} s each"
    number = f"{rate:,.1f}" if rate < 100 else f"{rate:,.0f}"
    return f"{number} {unit}/s" if unit else f"{number}/s"


def spell_seconds(seconds: float) -> str:
    """Format a time as seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
