"""Parameters on their way between machines: rows of entities, and dense weights, each with its optimiser's state.

Needs numpy alone, so that a process which only keeps rows starts quickly and stays small.
"""

from __future__ import annotations

from dataclasses import dataclass

from largegnn.artifacts import FloatArray

__all__ = ["DenseState", "RowState"]


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
