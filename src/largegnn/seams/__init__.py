"""Where the program can be extended: tables of swappable parts, and what each part must be."""

from __future__ import annotations

from largegnn.seams.table import Table
from largegnn.seams.tables import TABLES

__all__ = ["TABLES", "Table"]
