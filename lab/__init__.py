"""Measure LargeGNN: the paper's systems and tables, benchmarks, records and the page of results. Not installed.

Call it from the root of the repository: `python -m lab --help`. The package `largegnn` never imports it.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONFIGS", "MEASUREMENTS", "RESULTS", "ROOT"]

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "lab" / "configs"
RESULTS = ROOT / "lab" / "results"
MEASUREMENTS = ROOT / "lab" / "measurements"
