"""Start the command line, `largegnn COMMAND ...`.

Progress and log go to standard error, results to standard output and files.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command with the given arguments, or with those of the process."""
    from largegnn.machine.devices import set_short_spins

    set_short_spins()  # before PyTorch, Faiss and numba are loaded
    try:
        from largegnn.cli.app import main as run
    except KeyboardInterrupt:  # the import takes a moment, in which the user may interrupt it
        sys.exit(130)
    run(arguments)
