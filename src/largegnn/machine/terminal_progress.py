"""Show progress on a terminal: one live bar for each piece of open work, below the lines of the log.

In: the console that the log writes to, so that its lines appear above the bars. Bars disappear when the work is done.
Where standard error is not a terminal, or rich is missing, there are plain lines in the log instead.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from largegnn.machine.progress import LogDisplay, Work, set_display, spell_rate, spell_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

__all__ = ["LiveDisplay", "install_terminal_progress"]

_BAR_WIDTH = 30


def install_terminal_progress(console: Console | None = None) -> None:
    """Show progress from now on: live bars where `console` (standard error by default) is a terminal, else lines."""
    try:
        from rich.console import Console
    except ImportError:
        set_display(LogDisplay())
        return
    console = Console(stderr=True) if console is None else console
    # `is_interactive` is false where the terminal cannot move its cursor (TERM=dumb).
    set_display(LiveDisplay(console) if console.is_terminal and console.is_interactive else LogDisplay())


class LiveDisplay:
    """Bars that are drawn again a few times a second."""

    def __init__(self, console: Console, interval: float = 0.25) -> None:
        self.interval = interval
        self._console = console
        self._live: Live | None = None

    def show(self, open_work: Sequence[Work]) -> None:
        """Draw one bar for each piece of work, outer above inner."""
        from rich.errors import LiveError
        from rich.live import Live

        if self._live is None:
            # On a terminal, printed lines appear above the bars; a file or a pipe stays as it is.
            to_terminal = sys.stdout.isatty()
            live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=to_terminal)
            try:
                live.start()
            except LiveError:  # other bars are drawn on this console
                return
            self._live = live
        self._live.update(_table(open_work), refresh=True)

    def clear(self) -> None:
        """Remove the bars."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _table(open_work: Sequence[Work]) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 1))
    for _ in range(5):
        table.add_column(no_wrap=True)
    for work in open_work:
        amount = f"{work.done:,}" if work.total is None else f"{work.done:,}/{work.total:,}"
        left = work.seconds_left
        table.add_row(
            "  " * work.depth + work.description,
            ProgressBar(work.total, work.done, width=_BAR_WIDTH, pulse=work.total is None),
            f"{amount} {work.unit}",
            spell_rate(work.rate, work.unit) if work.rate > 0 else "",
            "" if left is None else f"{spell_seconds(left)} left",
        )
    return table
