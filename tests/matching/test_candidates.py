from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, FloatArray, Neighbors
from largegnn.errors import ArtifactError
from largegnn.machine import pieces
from largegnn.matching import candidates
from largegnn.matching.candidates import csls, edge_ranks, margins, preferred
from largegnn.matching.union import build_candidates
from tests.matching.random_candidates import EIGHTHS, SOURCES, TARGETS, edges_of, scored_graphs

NOTHING = -np.inf


@pytest.fixture
def both() -> tuple[Neighbors, Neighbors]:
    """Sources 0, 1, 2 and targets 10, 11, 12; the two nearest of each, cosines in tenths:

    0: 10 (9), 11 (5)     10: 0 (9), 2 (8)
    1: 11 (7)             11: 1 (7), 0 (5)
    2: 10 (8), 12 (2)     12: 1 (3), 2 (2)      1 and 12 were found by 12 alone
    """
    from_source = Neighbors(
        np.array([0, 1, 2]),
        np.array([[10, 11], [11, -1], [10, 12]]),
        np.array([[0.9, 0.5], [0.7, NOTHING], [0.8, 0.2]]),
    )
    from_target = Neighbors(
        np.array([10, 11, 12]), np.array([[0, 2], [1, 0], [1, 2]]), np.array([[0.9, 0.8], [0.7, 0.5], [0.3, 0.2]])
    )
    return from_source, from_target


def test_candidates_by_hand(both: tuple[Neighbors, Neighbors]) -> None:
    graph = build_candidates(*both)
    assert edges_of(graph) == [(0, 10), (0, 11), (1, 11), (1, 12), (2, 10), (2, 12)]
    assert graph.column("cosine").tolist() == pytest.approx([0.9, 0.5, 0.7, 0.3, 0.8, 0.2])
    assert graph.find(np.array([(1, 12), (1, 10), (2, 12), (9, 99)])).tolist() == [3, -1, 5, -1]
    # Mean cosines with k = 2: 0: .7, 1: .7, 2: .5; 10: .85, 11: .6, 12: .25.
    expected = [1.8 - 1.55, 1.0 - 1.3, 1.4 - 1.3, 0.6 - 0.95, 1.6 - 1.35, 0.4 - 0.75]
    assert csls(graph, *both, k=2).tolist() == pytest.approx(expected, abs=1e-6)
    # With k = 1: 0: .9, 1: .7, 2: .8; 10: .9, 11: .7, 12: .3.
    expected = [0.0, 1.0 - 1.6, 0.0, 0.6 - 1.0, 1.6 - 1.7, 0.4 - 1.1]
    assert csls(graph, *both, k=1).tolist() == pytest.approx(expected, abs=1e-6)
    ranks = edge_ranks(graph, graph.column("cosine"))
    assert ranks.source.tolist() == [1, 2, 1, 2, 1, 2]
    assert ranks.target.tolist() == [1, 2, 1, 1, 2, 2]
    assert margins(graph.sources, graph.column("cosine"), 0.5).tolist() == pytest.approx(
        [0.4, -0.4, 0.4, -0.4, 0.6, -0.6]
    )
    assert margins(graph.targets, graph.column("cosine"), 0.5).tolist() == pytest.approx(
        [0.1, -0.2, 0.2, 0.1, -0.1, -0.1]
    )


def test_a_pair_found_twice_keeps_the_score_of_the_source() -> None:
    one = Neighbors(np.array([0]), np.array([[5]]), np.array([[0.75]]))
    other = Neighbors(np.array([5]), np.array([[0]]), np.array([[0.5]]))
    graph = build_candidates(one, other)
    assert edges_of(graph) == [(0, 5)]
    assert graph.column("cosine").tolist() == [0.75]


def test_a_search_that_names_an_entity_twice() -> None:
    one = Neighbors(np.array([0, 2]), np.array([[5, 5], [6, 5]]), np.array([[0.75, 0.5], [0.5, 0.25]]))
    other = Neighbors(np.array([5, 9]), np.array([[2, 2], [0, -1]]), np.array([[0.5, 0.5], [0.125, NOTHING]]))
    graph = build_candidates(one, other)
    assert edges_of(graph) == [(0, 5), (0, 9), (2, 5), (2, 6)]
    assert graph.column("cosine").tolist() == [0.75, 0.125, 0.25, 0.5]


def test_nothing_found() -> None:
    none = Neighbors(np.empty(0), np.empty((0, 3)), np.empty((0, 3), dtype=np.float32))
    graph = build_candidates(none, none)
    assert len(graph) == 0
    assert graph.find(np.array([(0, 5)])).tolist() == [-1]
    for result in (
        csls(graph, none, none),
        margins(graph.targets, graph.column("cosine"), 1.0),
        *edge_ranks(graph, graph.column("cosine")),
        *preferred(graph, graph.column("cosine"), 1.0),
    ):
        assert result.shape == (0,)


def test_what_makes_no_graph_is_refused(both: tuple[Neighbors, Neighbors]) -> None:
    with pytest.raises(ArtifactError, match="targets has shape"):
        CandidateGraph(np.array([0, 1]), np.array([5]), {"cosine": np.array([0.5, 0.5], dtype=np.float32)})
    with pytest.raises(ArtifactError, match="at least 1"):
        csls(build_candidates(*both), *both, k=0)


@st.composite
def searches(draw: st.DrawFn) -> tuple[Neighbors, Neighbors, npt.NDArray[Any]]:
    """What two searches over a matrix of cosines find; some entities are no queries and are not found."""
    cosines = np.array([[draw(EIGHTHS) for _ in TARGETS] for _ in SOURCES])
    k = draw(st.integers(1, 8))
    free = [sorted(draw(st.sets(st.sampled_from(side)))) for side in (SOURCES, TARGETS)]

    def search(queries: list[int], corpus: list[int], score: npt.NDArray[Any]) -> Neighbors:
        ids, scores = np.full((len(queries), k), -1), np.full((len(queries), k), NOTHING)
        for row, query in enumerate(queries):
            found = sorted(corpus, key=lambda other: (-score[query % 6, other % 6], other))[:k]
            ids[row, : len(found)] = found
            scores[row, : len(found)] = [score[query % 6, other % 6] for other in found]
        return Neighbors(np.array(queries), ids, scores)

    return search(free[0], free[1], cosines), search(free[1], free[0], cosines.T), cosines


@given(drawn=searches(), k=st.integers(1, 9))
def test_candidates_are_the_union_and_csls_is_its_formula(
    drawn: tuple[Neighbors, Neighbors, npt.NDArray[Any]], k: int
) -> None:
    from_source, from_target, cosines = drawn
    found: set[tuple[int, int]] = set()
    near: dict[int, list[float]] = {}
    for neighbors, is_source in ((from_source, True), (from_target, False)):
        for query, ids, scores in zip(
            neighbors.queries.tolist(), neighbors.ids.tolist(), neighbors.scores.tolist(), strict=True
        ):
            others = [other for other in ids if other >= 0]
            found |= {(query, other) if is_source else (other, query) for other in others}
            near[query] = [score for score in scores[:k] if score > -math.inf]
    graph = build_candidates(from_source, from_target)
    assert edges_of(graph) == sorted(found)
    assert graph.column("cosine").tolist() == [cosines[s, t - 6] for s, t in sorted(found)]
    expected = [
        2 * cosines[s, t - 6] - sum(near[s]) / len(near[s]) - sum(near[t]) / len(near[t]) for s, t in sorted(found)
    ]
    assert csls(graph, from_source, from_target, k).tolist() == pytest.approx(expected, abs=1e-6)


@given(drawn=scored_graphs())
def test_ranks_and_margins_are_their_definition(drawn: tuple[CandidateGraph, FloatArray]) -> None:
    graph, scores = drawn
    for ends, ranks in zip((graph.sources, graph.targets), edge_ranks(graph, scores), strict=True):
        found, gaps = ranks.tolist(), margins(ends, scores, 9.0).tolist()
        for edge in range(len(graph)):
            rivals = [other for other in range(len(graph)) if ends[other] == ends[edge] and other != edge]
            better = [r for r in rivals if scores[r] > scores[edge] or (scores[r] == scores[edge] and r < edge)]
            assert found[edge] == 1 + len(better)
            assert gaps[edge] == (scores[edge] - max(scores[r] for r in rivals) if rivals else 9.0)


@given(drawn=scored_graphs(), chosen=st.sets(st.integers(0, 13)))
def test_both_ends_at_once_and_some_edges_alone(drawn: tuple[CandidateGraph, FloatArray], chosen: set[int]) -> None:
    graph, scores = drawn
    ranks = edge_ranks(graph, scores)
    assert np.array_equal(edge_ranks(graph, -scores, scores).target, ranks.target)
    gaps = [margins(ends, scores, 9.0) for ends in (graph.sources, graph.targets)]
    edges, gap = preferred(graph, scores, 9.0)
    assert edges.tolist() == np.flatnonzero((ranks.source == 1) & (ranks.target == 1)).tolist()
    assert np.array_equal(gap, np.minimum(*gaps)[edges])
    some = np.array(sorted(edge for edge in chosen if edge < len(graph)), dtype=np.int64)
    assert np.array_equal(margins(graph.sources, scores, 9.0, some), gaps[0][some])


def test_of_equal_scores_the_earlier_comes_first_whatever_the_sign_of_zero() -> None:
    scores = np.array([-0.0, 0.0, -1.5, -0.0, 2.0, np.float32(1e-45)], dtype=np.float32)
    graph = CandidateGraph(np.zeros(6), np.arange(1, 7))
    assert edge_ranks(graph, scores).source.tolist() == [3, 4, 6, 5, 1, 2]
    ends = np.zeros(3, dtype=np.int32)
    assert margins(ends, np.zeros(3, dtype=np.float32), 1.0).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("most", [0, 3, 200])
def test_long_rows_are_ranked_like_short_ones(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hubs on both sides; rows of more than `most` edges count as long, and pieces are of single rows."""
    monkeypatch.setattr(candidates, "_MAX_COUNTED_ROW", most)
    monkeypatch.setattr(pieces, "_MIN_ROWS", 1)
    monkeypatch.setattr(candidates, "num_processors", lambda: 3)
    rng = np.random.default_rng(most)
    keys = np.unique(np.concatenate([rng.integers(0, 40, 600) * 50 + rng.zipf(1.3, 600) % 50, np.arange(50) + 7 * 50]))
    graph = CandidateGraph(keys // 50, 40 + keys % 50)
    scores = np.round(rng.standard_normal(len(graph)), 1).astype(np.float32)
    ranks = edge_ranks(graph, scores)
    for ends, found in zip((graph.sources, graph.targets), ranks, strict=True):
        order = np.lexsort((-scores, ends))  # stable: equal ones stay in order
        starts = np.searchsorted(ends[order], ends[order])
        assert np.array_equal(found[order], np.arange(len(ends)) - starts + 1)
