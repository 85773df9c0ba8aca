"""The command line: `largegnn COMMAND ...`. Progress goes to standard error, results to standard output and files."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command."""
    from largegnn.cli.app import main as run

    run(arguments)
