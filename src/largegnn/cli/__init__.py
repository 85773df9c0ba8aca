"""The command line: `largegnn COMMAND ...`. Progress goes to standard error, results to standard output and files."""

from __future__ import annotations

from largegnn.cli.app import main

__all__ = ["main"]
