"""LargeGNN: entity alignment of two large knowledge graphs by merging, partitioning and embedding.

    import largegnn
    result = largegnn.align("source.nt.gz", "target.nt.gz", "seeds.tsv")
    print(result.pairs)

The steps of a run as functions on values are in `largegnn.api`. The names below are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from largegnn.errors import ArtifactError, HelperError, InputError, LargeGNNError, StorageError, TrainingError
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.api import align, compare, evaluate, generate, inspect, open_run, update
    from largegnn.result import AlignmentResult
    from largegnn.settings import Settings

__all__ = [
    "AlignmentResult",
    "ArtifactError",
    "HelperError",
    "InputError",
    "LargeGNNError",
    "Settings",
    "StorageError",
    "TrainingError",
    "__version__",
    "align",
    "compare",
    "evaluate",
    "generate",
    "inspect",
    "open_run",
    "update",
]

_HOMES = {"AlignmentResult": "largegnn.result", "Settings": "largegnn.settings"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'largegnn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "largegnn.api")), name)


def __dir__() -> list[str]:
    return sorted(__all__)
