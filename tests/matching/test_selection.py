from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.matching.selection import mutual_knn, mutual_top1, one_to_one
from tests.matching.random_candidates import edges_of, scored_graphs


def make(edges: dict[tuple[int, int], float]) -> tuple[CandidateGraph, FloatArray]:
    ends, scores = np.array(sorted(edges)), np.array([edges[edge] for edge in sorted(edges)], dtype=np.float32)
    return CandidateGraph(ends[:, 0], ends[:, 1], {"cosine": scores}), scores


def test_a_selection_by_hand() -> None:
    """Sources 0, 1, 2 all like 10 best, it likes 0 best; 1 has 11 as well, and 2 has nothing else."""
    graph, scores = make({(0, 10): 0.9, (1, 10): 0.8, (1, 11): 0.3, (2, 10): 0.7})
    assert edges_of(graph, mutual_top1(graph, scores)) == [(0, 10)]
    assert edges_of(graph, mutual_knn(graph, scores, 1)) == [(0, 10)]
    assert edges_of(graph, mutual_knn(graph, scores, 2)) == [(0, 10), (1, 10), (1, 11)]
    assert edges_of(graph, mutual_knn(graph, scores, 3)) == edges_of(graph)
    assert edges_of(graph, one_to_one(graph, scores)) == [(0, 10), (1, 11)]


def test_an_assignment_gives_way_so_that_more_are_paired() -> None:
    """The best pair (0, 10) would leave 1 alone."""
    graph, scores = make({(0, 10): 0.9, (0, 11): 0.1, (1, 10): 0.2})
    assert edges_of(graph, one_to_one(graph, scores)) == [(0, 11), (1, 10)]
    assert edges_of(graph, mutual_top1(graph, scores)) == [(0, 10)]


def test_an_assignment_looks_at_the_k_best_of_either_end() -> None:
    """With k = 1 the edge (0, 11) is there because 11 has nothing better; (1, 11) is no entity's best."""
    graph, scores = make({(0, 10): 0.9, (0, 11): 0.5, (1, 10): 0.8, (1, 11): 0.45})
    assert edges_of(graph, one_to_one(graph, scores, 1)) == [(0, 11), (1, 10)]
    assert edges_of(graph, one_to_one(graph, scores, 2)) == [(0, 10), (1, 11)]


@given(drawn=scored_graphs(max_edges=9, max_side=4))
def test_an_assignment_is_the_best_of_all(drawn: tuple[CandidateGraph, FloatArray]) -> None:
    graph, scores = drawn
    edges = edges_of(graph)
    best = (0, 0.0)
    for size in range(1, min(4, len(edges)) + 1):
        for chosen in itertools.combinations(range(len(edges)), size):
            sources, targets = zip(*(edges[edge] for edge in chosen), strict=True)
            if len(set(sources)) == len(set(targets)) == size:
                best = max(best, (size, float(scores[list(chosen)].sum())))
    found = one_to_one(graph, scores, 9)
    assert (len(found), float(scores[found].sum())) == pytest.approx(best)


@pytest.mark.parametrize("shift", [-1000.0, 1000.0])
@given(drawn=scored_graphs(numbers=st.integers(-50, 50).map(float)))
def test_an_assignment_knows_no_zero(shift: float, drawn: tuple[CandidateGraph, FloatArray]) -> None:
    """Logarithms of a transport plan lie far below zero; only differences count."""
    graph, scores = drawn
    found, moved = one_to_one(graph, scores), one_to_one(graph, scores + np.float32(shift))
    assert len(found) == len(moved)
    assert scores[found].sum() == scores[moved].sum()
