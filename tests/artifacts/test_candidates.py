"""Test candidate graphs against dictionaries of edges: adding evidence, finding edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, IntArray
from largegnn.errors import ArtifactError

Edge = tuple[int, int]
EDGES = st.sets(st.tuples(st.integers(0, 4), st.integers(5, 9) | st.just(2**31 - 1)), max_size=12)


def rows(edges: object) -> IntArray:
    return np.array(edges, dtype=np.int32).reshape(-1, 2)


def make(edges: dict[Edge, tuple[float, float]]) -> CandidateGraph:
    """A graph with the columns `cosine` and `name`."""
    ends, values = rows(sorted(edges)), np.array([edges[edge] for edge in sorted(edges)], dtype=np.float32)
    cosines, names = values.reshape(-1, 2).T
    return CandidateGraph(ends[:, 0], ends[:, 1], {"cosine": cosines, "name": names})


def edges_of(graph: CandidateGraph) -> dict[Edge, dict[str, float]]:
    """Every edge with its evidence; the edges must be ascending."""
    found = [(int(source), int(target)) for source, target in graph.pairs()]
    assert found == sorted(set(found))
    return {
        edge: {name: float(values[number]) for name, values in graph.evidence.items()}
        for number, edge in enumerate(found)
    }


@pytest.fixture
def graph() -> CandidateGraph:
    """0 - 5 (.5, 1), 0 - 7 (.25, 2), 3 - 5 (.75, 3)."""
    return make({(0, 5): (0.5, 1), (0, 7): (0.25, 2), (3, 5): (0.75, 3)})


def test_a_graph_by_hand(graph: CandidateGraph) -> None:
    assert len(graph) == 3
    assert graph.pairs().tolist() == [[0, 5], [0, 7], [3, 5]]
    assert graph.pairs(np.array([2, 0])).tolist() == [[3, 5], [0, 5]]
    assert graph.pairs(slice(1, None)).tolist() == [[0, 7], [3, 5]]
    assert graph.column("name").tolist() == [1, 2, 3]
    assert graph.find(rows([(3, 5), (0, 6), (0, 5), (9, 9)])).tolist() == [2, -1, 0, -1]
    assert graph.columns_but(("cosine", "an unknown column")) == ("name",)
    assert graph.sources.dtype == graph.targets.dtype == np.int32


def test_a_graph_is_read_only(graph: CandidateGraph) -> None:
    with pytest.raises(ValueError, match="read-only"):
        graph.column("cosine")[0] = 1
    with pytest.raises(TypeError):
        graph.evidence["cosine"] = np.zeros(3, dtype=np.float32)  # type: ignore[index]


def test_invalid_columns_are_refused(graph: CandidateGraph) -> None:
    with pytest.raises(ArtifactError, match="targets has shape"):
        CandidateGraph(np.array([0, 1]), np.array([5]))
    with pytest.raises(ArtifactError, match="the evidence name has shape"):
        graph.with_evidence(name=np.zeros(2, dtype=np.float32))
    with pytest.raises(ArtifactError, match="no channel gave the evidence 'csls'; available: cosine, name"):
        graph.column("csls")
    with pytest.raises(ArtifactError, match="available: none"):
        CandidateGraph(np.empty(0), np.empty(0)).column("cosine")


def test_evidence_is_added_or_replaced_and_the_graph_stays(graph: CandidateGraph) -> None:
    more = graph.with_evidence(csls=np.array([7.0, 8.0, 9.0]), name=np.zeros(3, dtype=np.float32))
    assert list(more.evidence) == ["cosine", "name", "csls"], "in the order it was given"
    assert more.column("csls").tolist() == [7, 8, 9]
    assert more.column("csls").dtype == np.float32
    assert more.column("name").tolist() == [0, 0, 0]
    assert more.column("cosine").tolist() == graph.column("cosine").tolist()
    assert more.pairs().tolist() == graph.pairs().tolist()
    assert list(graph.evidence) == ["cosine", "name"]
    assert graph.column("name").tolist() == [1, 2, 3]


@given(edges=EDGES, wanted=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9) | st.just(2**31 - 1)), max_size=9))
def test_edges_are_found_as_in_a_list(edges: set[Edge], wanted: list[Edge]) -> None:
    ends = rows(sorted(edges))
    graph = CandidateGraph(ends[:, 0], ends[:, 1])
    expected = [sorted(edges).index(pair) if pair in edges else -1 for pair in wanted]
    assert graph.find(rows(wanted)).tolist() == expected
    assert graph.pairs().tolist() == [list(edge) for edge in sorted(edges)]
