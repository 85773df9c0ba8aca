"""Test matched neighbours of a pair against values by hand, and against a loop over all triples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, RelationAlignment
from largegnn.review.neighbors import Hop, MatchedNeighbors, NeighborIndex, matched_neighbors, relation_likelihoods
from tests.matching.slow_support import Edge, SlowRelations, Way, make_task, speaks_slowly, ways_slowly

UNKNOWN = RelationAlignment.empty()
CHAIN = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (4, 2, 5), (5, 2, 6), (6, 2, 7)]


def explain(
    task: AlignmentTask, matched: list[Edge], source: int, target: int, relations: RelationAlignment = UNKNOWN
) -> tuple[MatchedNeighbors, ...]:
    def targets_of(source: int) -> list[int]:
        return [right for left, right in matched if left == source]

    return matched_neighbors(NeighborIndex(task), relation_likelihoods(relations), targets_of, source, target)


def neighbors_of(found: tuple[MatchedNeighbors, ...]) -> list[Edge]:
    return [(pair.source, pair.target) for pair in found]


def test_matched_neighbours_of_a_pair() -> None:
    """For (1, 5) the neighbours 0, 2 and 4, 6; what a relation reaches twice weighs less."""
    task = make_task(4, 4, [*CHAIN, (3, 1, 2), (7, 3, 6)], [(0, 4)])
    matched = [(2, 6), (3, 7), (0, 4), (2, 7)]
    assert neighbors_of(explain(task, matched, 1, 5)) == [(0, 4), (2, 6)]
    assert neighbors_of(explain(task, matched, 2, 6)) == [(3, 7)]
    assert neighbors_of(explain(task, matched, 1, 7)) == [(2, 6)]
    assert explain(task, [], 1, 5) == ()
    # Two entities reach 2 by relation 0, so that (2, 6) is worth less than (3, 7) although its id is smaller.
    shared = make_task(4, 4, [(1, 0, 2), (3, 0, 2), (1, 1, 3), (5, 2, 6), (5, 3, 7)], [])
    assert neighbors_of(explain(shared, [(2, 6), (3, 7)], 1, 5)) == [(3, 7), (2, 6)]


def test_the_relations_that_join_them() -> None:
    """Source: 0 --r--> 1, 0 --s--> 1, 1 --r--> 0. Target: 2 --p--> 3, 3 --q--> 2."""
    task = make_task(2, 2, [(0, 0, 1), (0, 1, 1), (1, 0, 0), (2, 2, 3), (3, 3, 2)], [])
    (found,) = explain(task, [(1, 3)], 0, 2)
    assert found.source_hops == (Hop(0, True), Hop(1, True), Hop(0, False))
    assert found.target_hops == (Hop(2, True), Hop(3, False))
    assert found.weight == pytest.approx(0.1), "nothing is known of the relations"
    (back,) = explain(task, [(0, 2)], 1, 3)
    assert back.source_hops == (Hop(0, True), Hop(0, False), Hop(1, False))
    assert back.target_hops == (Hop(3, True), Hop(2, False))


def test_an_entity_is_no_neighbour_of_its_own() -> None:
    """Both have a triple to themselves: a pair is no evidence for itself."""
    task = make_task(2, 2, [(0, 0, 0), (0, 0, 1), (2, 2, 2), (2, 2, 3)], [])
    assert explain(task, [(0, 2)], 0, 2) == ()
    assert neighbors_of(explain(task, [(0, 2), (1, 3)], 0, 2)) == [(1, 3)]
    assert neighbors_of(explain(task, [(0, 2)], 1, 3)) == [(0, 2)]
    assert NeighborIndex(task).of(0) == {1: [Hop(0, True)]}


def test_a_counterpart_of_several() -> None:
    task = make_task(3, 3, [(0, 0, 1), (0, 1, 2), (3, 2, 4), (3, 3, 5)], [])
    found = explain(task, [(1, 4), (1, 5), (2, 5)], 0, 3)
    assert neighbors_of(found) == [(1, 4), (1, 5), (2, 5)], "of equal weight, by id"


def test_entities_without_triples() -> None:
    index = NeighborIndex(make_task(4, 4, CHAIN, []))
    assert (index.of(7), index.of(3)) == ({6: [Hop(2, False)]}, {2: [Hop(0, False)]})
    lonely = NeighborIndex(make_task(3, 3, [(0, 0, 1)], []))
    assert lonely.of(2) == lonely.of(5) == {}
    empty = NeighborIndex(make_task(2, 2, [], []))
    assert empty.of(0) == empty.of(3) == {}
    assert empty.weights(0) == {}
    assert matched_neighbors(empty, {}, lambda one: [3], 0, 2) == ()


def aligned(scores: dict[tuple[int, int, bool], float]) -> RelationAlignment:
    """Aligned relations with these scores."""
    keys = list(scores)
    numbers = np.array(list(scores.values()), dtype=np.float32)
    return RelationAlignment(
        np.array([key[:2] for key in keys]).reshape(-1, 2), np.array([key[2] for key in keys], dtype=bool),
        numbers, numbers, numbers, np.ones(len(keys)), np.full((len(keys), 3, 4), -1),
    )  # fmt: skip


class Given(SlowRelations):
    """Relations whose likelihood is given: a tenth where it is not."""

    def __init__(self, scores: dict[tuple[int, int, bool], float]) -> None:
        self.scores = scores

    def likelihood(self, near: Way, far: Way) -> float:
        return self.scores.get((near[0], far[0], near[1] != far[1]), 0.1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[AlignmentTask, list[Edge], Edge, dict[tuple[int, int, bool], float]]:
    """Five entities a side, any triples, self-loops and parallel ones too, matched pairs, one to explain, relations."""
    source, target = st.integers(0, 4), st.integers(5, 9)
    triples = draw(st.lists(st.tuples(source, st.integers(0, 1), source), max_size=14)) + draw(
        st.lists(st.tuples(target, st.integers(2, 3), target), max_size=14)
    )
    matched = draw(st.sets(st.tuples(source, target), max_size=8))
    keys = st.tuples(st.integers(0, 1), st.integers(2, 3), st.booleans())
    scores = draw(st.dictionaries(keys, st.sampled_from([0.25, 0.5, 0.75])))
    return make_task(5, 5, triples, []), sorted(matched), draw(st.tuples(source, target)), scores


@given(case=cases())
def test_matched_neighbours_are_their_definition(
    case: tuple[AlignmentTask, list[Edge], Edge, dict[tuple[int, int, bool], float]],
) -> None:
    task, matched, (source, target), scores = case
    expected = {
        pair: speaks_slowly(task, Given(scores), (source, target), pair)
        for pair in matched
        if ways_slowly(task, source, pair[0]) and ways_slowly(task, target, pair[1])
    }
    found = explain(task, matched, source, target, aligned(scores))
    assert sorted(neighbors_of(found)) == sorted(expected)
    order = [(-pair.weight, pair.source, pair.target) for pair in found]
    assert order == sorted(order), "strongest first"
    for pair in found:
        assert pair.weight == pytest.approx(expected[pair.source, pair.target])
        for hops, end, neighbor in (
            (pair.source_hops, source, pair.source),
            (pair.target_hops, target, pair.target),
        ):
            assert len(set(hops)) == len(hops)
            assert set(hops) == ways_slowly(task, end, neighbor)
