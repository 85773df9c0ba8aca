"""LargeGNN: entity alignment of two large knowledge graphs by merging, partitioning and embedding.

    import largegnn
    result = largegnn.align("source.nt.gz", "target.nt.gz", "seeds.tsv")
    print(result.pairs)

The names below are loaded when first used: a machine that only trains needs neither polars nor pyoxigraph.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from largegnn.errors import ArtifactError, InputError, LargeGNNError, StorageError
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.api import (
        align,
        compare,
        divide,
        download,
        evaluate,
        generate,
        inspect,
        load,
        match,
        open_run,
        search,
        train,
        update,
    )
    from largegnn.artifacts import AlignmentTask, MergedGraph, TaskNames
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
    "compare",
    "divide",
    "download",
    "evaluate",
    "generate",
    "inspect",
    "load",
    "match",
    "merge",
    "open_run",
    "search",
    "train",
    "update",
]

_HOMES = {
    "AlignmentResult": "largegnn.result",
    "AlignmentTask": "largegnn.artifacts",
    "DataSettings": "largegnn.settings",
    "MergedGraph": "largegnn.artifacts",
    "Settings": "largegnn.settings",
    "TaskNames": "largegnn.artifacts",
    "WorldSettings": "largegnn.settings",
    "merge": "largegnn.division.merge",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'largegnn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "largegnn.api")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
