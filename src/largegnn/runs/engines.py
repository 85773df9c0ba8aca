"""Engines: where a stage's work is done. Ours does it in this process.

An engine takes a stage and its arguments and returns what the stage's function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from largegnn.stages import Stage

__all__ = ["Engine", "run_here"]

Engine = Callable[[Stage, Mapping[str, object]], object]


def run_here(stage: Stage, arguments: Mapping[str, object]) -> object:
    """Call the stage's function."""
    return stage.function(**arguments)
