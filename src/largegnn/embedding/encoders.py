"""The encoders by name; each entry makes one for rows of the given dimension."""

from __future__ import annotations

from collections.abc import Callable

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.gcn import GCN

__all__ = ["ENCODERS"]

ENCODERS: dict[str, Callable[[int], DualAMN | GCN]] = {"dual_amn": DualAMN, "gcn": GCN}
