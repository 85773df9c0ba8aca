"""The stage `load`: files become a task, the names of its ids, and what its entities say of themselves."""

from __future__ import annotations

from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadSummary, load_pair
from largegnn.errors import InputError
from largegnn.settings import DataSettings

__all__ = ["Loaded", "load"]


@dataclass(frozen=True)
class Loaded:
    """Two graphs and their links as numbers, what the numbers are called, literals, and what was read and dropped."""

    task: AlignmentTask
    names: TaskNames
    literals: Literals
    outcome: LoadSummary


def load(given: DataInput | None, data: DataSettings, keep_literals: bool = False) -> Loaded:
    """Read the input files; without literals the task is that of the structure alone."""
    if given is None:
        raise InputError("the run has no stage load, and no input to make it from", fix="give the input again")
    pair = load_pair(given, data, keep_literals=keep_literals)
    return Loaded(pair.task, pair.names, pair.literals, pair.summary)
