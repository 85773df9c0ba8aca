"""Random small candidate graphs for the property tests of this folder."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray

SOURCES, TARGETS = range(6), range(6, 12)
# Eighths are exact in float32, and few: there are many ties.
EIGHTHS = st.integers(-8, 8).map(lambda number: number / 8)


@st.composite
def scored_graphs(
    draw: st.DrawFn, max_edges: int = 14, max_side: int = 6, numbers: st.SearchStrategy[float] = EIGHTHS
) -> tuple[CandidateGraph, FloatArray]:
    """Up to six sources and six targets, any edges between them, and a score for each."""
    edge = st.tuples(st.sampled_from(SOURCES[:max_side]), st.sampled_from(TARGETS[:max_side]))
    edges = sorted(draw(st.sets(edge, max_size=max_edges)))
    ends = np.array(edges, dtype=np.int32).reshape(-1, 2)
    scores = np.array([draw(numbers) for _ in edges], dtype=np.float32)
    return CandidateGraph(ends[:, 0], ends[:, 1], {"cosine": np.clip(scores, -1, 1)}), scores


def edges_of(graph: CandidateGraph, chosen: IntArray | None = None) -> list[tuple[int, int]]:
    """The edges, or some of them, as tuples."""
    edges = range(len(graph)) if chosen is None else chosen.tolist()
    return [(int(graph.sources[edge]), int(graph.targets[edge])) for edge in edges]
