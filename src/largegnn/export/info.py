"""What an exported file says about where it comes from, and what an exporter is.

In: what the caller knows of the run. Out: the same, in one value every exporter takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

__all__ = ["TOOL", "ExportInfo", "Exporter"]

TOOL = "LargeGNN"


@dataclass(frozen=True)
class ExportInfo:
    """Where an alignment comes from: the tool, the run, the two graphs, and how pairs were judged."""

    tool_version: str
    title: str
    """What the run is called: its id, or the name of its folder."""
    source_name: str
    target_name: str
    protocol: str
    """Which links training saw and what was aligned, in words."""
    decoding: str
    threshold: float | None
    """What a pair's score had to reach; None where every decoded pair was accepted."""
    created: date

    @property
    def description(self) -> str:
        """All of it in one line."""
        bar = "no threshold" if self.threshold is None else f"threshold {self.threshold:g}"
        return (
            f"Entities of {self.source_name} aligned with entities of {self.target_name}; "
            f"protocol: {self.protocol}; decoding: {self.decoding}, {bar}"
        )


# Takes a table as `alignment_table` makes it, a path and what is known of the run; returns the rows written.
Exporter = Callable[[pl.DataFrame, Path, ExportInfo], int]
