"""LargeGNN: entity alignment of two large knowledge graphs by merging, partitioning and embedding.

    import largegnn
    result = largegnn.align("source.nt.gz", "target.nt.gz", "seeds.tsv")
    print(result.pairs)

The names below are loaded when first used: a machine that only trains needs neither polars nor pyoxigraph.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from largegnn.artifacts import AlignmentTask, MergedGraph, TaskNames
from largegnn.errors import ArtifactError, InputError, LargeGNNError, StorageError
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.api import align, divide, generate, inspect, load, open_run, update
    from largegnn.division.merge import merge
    from largegnn.result import AlignmentResult
    from largegnn.settings import DataSettings, Settings, WorldSettings

__all__ = [
    "AlignmentResult",
    "AlignmentTask",
    "ArtifactError",
    "DataSettings",
    "InputError",
    "LargeGNNError",
    "MergedGraph",
    "Settings",
    "StorageError",
    "TaskNames",
    "WorldSettings",
    "__version__",
    "align",
    "divide",
    "generate",
    "inspect",
    "load",
    "merge",
    "open_run",
    "update",
]

_HOMES = {
    "DataSettings": "largegnn.settings",
    "Settings": "largegnn.settings",
    "WorldSettings": "largegnn.settings",
    "AlignmentResult": "largegnn.result",
    "align": "largegnn.api",
    "divide": "largegnn.api",
    "generate": "largegnn.api",
    "inspect": "largegnn.api",
    "load": "largegnn.api",
    "merge": "largegnn.division.merge",
    "open_run": "largegnn.api",
    "update": "largegnn.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'largegnn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
