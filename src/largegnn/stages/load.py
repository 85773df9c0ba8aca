"""The stage `load`: files become a task and the names of its ids."""

from __future__ import annotations

from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadSummary, load_pair
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["Loaded", "load"]


@dataclass(frozen=True)
class Loaded:
    """Two graphs and their links as numbers, what the numbers are called, and what was read and dropped."""

    task: AlignmentTask
    names: TaskNames
    outcome: LoadSummary


def load(given: DataInput | None, data: DataSettings) -> Loaded:
    """Read the input files."""
    if given is None:
        raise InputError("the run has no stage load, and no input to make it from", fix="give the input again")
    pair = load_pair(given, data)
    return Loaded(pair.task, pair.names, pair.summary)
