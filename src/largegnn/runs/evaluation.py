"""A finished run, measured: what `evaluate` and `compare` read."""

from __future__ import annotations

from pathlib import Path

from largegnn.errors import InputError
from largegnn.runs.pipeline import resume_input, run_pipeline
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore

__all__ = ["evaluated_run"]


def evaluated_run(folder: Path) -> Run:
    """A run whose evaluation is made if it is not there yet.

    What was measured is only read: a folder may be looked at while it cannot be written, and without its input.
    """
    given, settings = resume_input(folder)
    run = Run(settings, RunStore(folder), given)
    done = run.finished()
    if "match" not in done:
        raise InputError(
            "the run has no pairs to measure yet",
            where=str(folder),
            found=f"stages up to {done[-1]}" if done else "no stage",
            fix=f"finish it: largegnn align --resume --out {folder}",
        )
    return run if "evaluate" in done else run_pipeline(folder, given, settings, first="evaluate")
