"""Keep shards of the entity table, and the dense weights all visits share, while many visit at the same time.

In: rows taken by a visit, rows given back by it. Out: a table to which every visit has added its change.
The idea: a shard owns a range of entities. A visit takes a copy of rows and state and gives back the changed ones. Rows
that no other visit gave back meanwhile are replaced, so that visits one after another have the result of one process.
Rows that others changed (landmarks, which several subgraphs contain) get the visit's change added to theirs; the mean
squares of their gradients become the mean of both, which can be neither negative nor zero. A shard keeps what a visit
took until it is given back: a visit that is lost is made again, and one that is given back twice counts once. Dense
weights get the change too, but that of a visit overtaken by v >= 4 others counts 4 / (1 + v), since many steps that do
not know of each other overshoot. The mean squares of their gradients are those of the last visit.
Needs numpy alone, so that a process which only keeps rows starts quickly and stays small. Cost: O(k d) for k rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import FloatArray, IntArray

__all__ = ["DenseCenter", "DenseState", "RowState", "TableShard", "shard_bounds"]

_FULL_CHANGES = 4  # of dense weights: changes of so many visits at the same time count in full


@dataclass(frozen=True, eq=False)
class RowState:
    """Rows (k, d) of entities and the mean squares of their gradients (k, d)."""

    rows: FloatArray
    squares: FloatArray

    @property
    def num_bytes(self) -> int:
        """Bytes to send."""
        return self.rows.nbytes + self.squares.nbytes


@dataclass(frozen=True, eq=False)
class DenseState:
    """Relation rows and encoder weights, each flat, one after another, and the mean squares of their gradients."""

    values: FloatArray
    squares: FloatArray

    @property
    def num_bytes(self) -> int:
        """Bytes to send."""
        return self.values.nbytes + self.squares.nbytes


def shard_bounds(num_entities: int, num_shards: int) -> IntArray:
    """Where each shard's range of entities begins, and the last ends, (num_shards + 1,)."""
    return np.linspace(0, num_entities, num_shards + 1).astype(np.int64)


class TableShard:
    """Rows and state of the entities from `first` on, with visits under way."""

    def __init__(self, first: int, num_rows: int, dim: int) -> None:
        self._first = first
        self._rows = np.zeros((num_rows, dim), dtype=np.float32)
        self._squares = np.zeros((num_rows, dim), dtype=np.float32)
        self._changed = np.zeros(num_rows, dtype=np.int64)  # by the count of visits given back
        self._clock = 0
        self._out: dict[int, tuple[IntArray, RowState, int]] = {}

    def process(self) -> int:
        """The id of the process it is in; an answer shows that it is alive."""
        return os.getpid()

    def fill(self, start: int, state: RowState) -> None:
        """Set the rows from entity `start` on; visits under way are forgotten."""
        here = slice(start - self._first, start - self._first + len(state.rows))
        self._rows[here], self._squares[here] = state.rows, state.squares
        self._out.clear()

    def read(self, start: int, stop: int) -> RowState:
        """The rows and state of the entities from `start` to `stop`."""
        here = slice(start - self._first, stop - self._first)
        return RowState(self._rows[here].copy(), self._squares[here].copy())

    def take(self, visit: int, entities: IntArray, others: IntArray) -> tuple[RowState, FloatArray]:
        """Rows and state of `entities` (k,) for a visit, to be given back, and the rows of `others` (c,)."""
        at = entities - self._first
        taken = RowState(self._rows[at], self._squares[at])
        self._out[visit] = at, taken, self._clock
        return taken, self._rows[others - self._first]

    def give(self, visit: int, made: RowState) -> int:
        """Add the change of a visit to its rows; how many others had changed. An unknown visit changes nothing."""
        if visit not in self._out:
            return 0
        at, taken, clock = self._out.pop(visit)
        self._clock += 1
        touched = self._changed[at] > clock
        shared, alone = at[touched], at[~touched]
        self._rows[alone], self._squares[alone] = made.rows[~touched], made.squares[~touched]
        self._rows[shared] += made.rows[touched] - taken.rows[touched]
        self._squares[shared] = (self._squares[shared] + made.squares[touched]) / 2
        self._changed[at] = self._clock
        return len(shared)

    def drop(self, visit: int) -> None:
        """Forget a visit that is lost."""
        self._out.pop(visit, None)


class DenseCenter:
    """The relation rows and encoder weights that all visits share."""

    def __init__(self, state: DenseState) -> None:
        self.state = state
        self._version = 0

    def take(self) -> tuple[int, DenseState]:
        """The present weights, and the version they are of."""
        return self._version, self.state

    def give(self, version: int, taken: DenseState, made: DenseState) -> None:
        """Replace the weights by those of a visit; if others were given back meanwhile, add a share of its change."""
        if version == self._version:
            self.state = made
        else:
            # Between the sum, which overshoots, and the mean, which learns less (docs/notebook.md has both).
            share = min(1.0, _FULL_CHANGES / (1 + self._version - version))
            self.state = DenseState(self.state.values + share * (made.values - taken.values), made.squares)
        self._version += 1
