"""The command line: `largegnn COMMAND ...`. Progress goes to standard error, results to standard output and files."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command."""
    from largegnn.machine.devices import set_short_spins

    set_short_spins()  # before PyTorch, Faiss and numba are loaded
    try:
        from largegnn.cli.app import main as run
    except KeyboardInterrupt:  # it takes a moment, in which somebody may think again
        sys.exit(130)
    run(arguments)
