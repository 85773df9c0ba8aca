"""The candidates of an alignment and the evidence for each: what channels give and decisions are made from.

A `CandidateGraph` is bipartite: one edge for each pair (source, target) that any channel proposed, with named columns
of evidence. Structure gives `cosine` and `csls`, rules give `support`; scoring, selection and confidence look at this
graph alone, and explanations show its columns.
Memory: 8 bytes an edge and 4 for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, frozen
from largegnn.artifacts.pairs import are_among, pair_keys
from largegnn.errors import ArtifactError

__all__ = ["CandidateGraph", "EdgeRanks"]


class EdgeRanks(NamedTuple):
    """The rank of each edge (e,) among those of its source, and among those of its target; 1 = best."""

    source: IntArray
    target: IntArray


@dataclass(frozen=True, eq=False)
class CandidateGraph:
    """Edges between sources and targets: entity ids (e,), ascending by source, then target; evidence (e,) by name."""

    sources: IntArray
    targets: IntArray
    evidence: Mapping[str, FloatArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", frozen(self.sources, np.int32, (None,), "sources"))
        object.__setattr__(self, "targets", frozen(self.targets, np.int32, (len(self.sources),), "targets"))
        columns = {
            name: frozen(values, np.float32, (len(self.sources),), f"the evidence {name}")
            for name, values in self.evidence.items()
        }
        object.__setattr__(self, "evidence", MappingProxyType(columns))

    def __len__(self) -> int:
        return len(self.sources)

    def column(self, name: str) -> FloatArray:
        """One column of evidence (e,)."""
        if name not in self.evidence:
            raise ArtifactError(f"no channel gave the evidence {name!r}; there is {', '.join(self.evidence) or 'none'}")
        return self.evidence[name]

    def with_evidence(self, **columns: npt.NDArray[np.floating[Any]]) -> CandidateGraph:
        """The same edges with more evidence; a column of the same name is replaced."""
        evidence: dict[str, Any] = {**self.evidence, **columns}
        return CandidateGraph(self.sources, self.targets, evidence)

    def without(self, pairs: IntArray) -> CandidateGraph:
        """The graph without the edges of these pairs (p, 2)."""
        if not len(pairs):
            return self
        gone = are_among(self.pairs(), pairs)
        if not gone.any():
            return self
        evidence = {name: values[~gone] for name, values in self.evidence.items()}
        return CandidateGraph(self.sources[~gone], self.targets[~gone], evidence)

    def pairs(self, edges: IntArray | slice = slice(None)) -> IntArray:
        """The pairs (m, 2) of these edges, of all by default."""
        return np.stack([self.sources[edges], self.targets[edges]], axis=1)

    def find(self, pairs: IntArray) -> IntArray:
        """The edge of each pair (p, 2), or -1, (p,)."""
        at, is_there = self.places(pair_keys(pairs))
        return np.where(is_there, at, -1)

    def places(self, wanted: IntArray, edges: slice = slice(None)) -> tuple[IntArray, Mask]:
        """Before which of these edges, from the first on, each key (p,) belongs; whether it is that edge's own."""
        keys = self.sources[edges].astype(np.int64)
        keys <<= 32
        keys |= self.targets[edges]
        at = np.searchsorted(keys, wanted)
        is_there: Mask = at < len(keys)
        is_there[is_there] = keys[at[is_there]] == wanted[is_there]
        return at, is_there

    def columns_but(self, left_out: Iterable[str]) -> tuple[str, ...]:
        """The names of the evidence, in the order it was given, but for some."""
        return tuple(name for name in self.evidence if name not in set(left_out))
