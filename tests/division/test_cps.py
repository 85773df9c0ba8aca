from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.division.cps import _edges, _join_groups, block_of_entity, count_overlap, cps, sbp, stable_matching
from tests.division.random_tasks import make_task, tasks, unhurried


def test_stable_matching_by_hand() -> None:
    # Row 0 and row 1 both want column 1; it prefers row 1, so row 0 goes to its second wish.
    overlap = np.array([[2, 5, 0], [1, 9, 0], [4, 4, 0]])
    assert stable_matching(overlap).tolist() == [2, 1, 0]


@given(overlap=st.integers(1, 6).flatmap(lambda n: arrays(np.int64, (n, n), elements=st.integers(0, 4))))
def test_no_two_would_rather_have_each_other(overlap: IntArray) -> None:
    column_of_row = stable_matching(overlap).tolist()
    assert sorted(column_of_row) == list(range(len(overlap)))
    row_of_column = np.argsort(column_of_row).tolist()
    for row, column in permutations(range(len(overlap)), 2):
        row_would = overlap[row, column] > overlap[row, column_of_row[row]]
        column_would = overlap[row, column] > overlap[row_of_column[column], column]
        assert not (row_would and column_would)


def twin_pair() -> AlignmentTask:
    """Two graphs of two cliques each, the second graph a copy of the first; one link per entity, half of them seeds.

    source 0..5 (clique) 6..11 (clique), joined by 5-6      target = source + 12
    """
    edges = [(start + a, start + b) for start in (0, 6, 12, 18) for a in range(6) for b in range(a + 1, 6)]
    links = [(i, i + 12) for i in range(12)]
    return make_task(12, 12, [*edges, (5, 6), (17, 18)], links[::2], [], links[1::2])


def test_cps_finds_the_twins() -> None:
    task = twin_pair()
    block = block_of_entity(task, task.train_links, 2, seed=0)
    np.testing.assert_array_equal(block[:12], block[12:])
    assert len(set(block[:6].tolist())) == len(set(block[6:12].tolist())) == 1
    swapped = block_of_entity(task, task.train_links, 2, seed=0, target_leads=True)
    np.testing.assert_array_equal(swapped[:12], swapped[12:])


def test_triples_between_seeds_are_shared() -> None:
    task = make_task(3, 3, [(0, 1), (3, 4), (4, 5)], [(0, 3), (1, 4), (2, 5)])
    heads, tails = _edges(task, task.train_links, 0)
    assert sorted(zip(heads.tolist(), tails.tolist(), strict=True)) == [(0, 1), (0, 1), (1, 2)]
    heads, tails = _edges(task, task.train_links[:2], 1)
    assert sorted(zip(heads.tolist(), tails.tolist(), strict=True)) == [(3, 4), (3, 4), (4, 5)]


def test_groups_get_a_star_heavy_edges_and_no_edge_between_them() -> None:
    # Entities 0, 1, 2 form group 0, entities 3, 4 group 1, entity 5 is no seed.
    group = np.array([0, 0, 0, 1, 1, -1])
    heads, tails, weights = _join_groups(np.array([0, 2, 4]), np.array([1, 3, 5]), group)
    drawn = sorted(zip(heads.tolist(), tails.tolist(), weights.tolist(), strict=True))
    assert drawn == [(0, 1, 1000), (0, 1, 1000), (0, 2, 1000), (3, 4, 1000), (4, 5, 1)]


def test_overlap_counts_meetings() -> None:
    assert count_overlap(np.array([0, 0, 1]), np.array([1, 1, 0]), 2).tolist() == [[0, 2], [1, 0]]


@unhurried
@given(task=tasks(), data=st.data())
def test_cps_is_disjoint_and_loses_nobody(task: AlignmentTask, data: st.DataObject) -> None:
    num_parts = data.draw(st.integers(1, min(task.num_source_entities, task.num_target_entities)))
    partition = cps(task, task.train_links, num_parts, seed=1)
    assert sorted(partition.entities.tolist()) == list(range(task.num_entities))
    sides = [partition.part(index) < task.num_source_entities for index in range(num_parts)]
    assert all(side.any() and not side.all() for side in sides)


@unhurried
@given(task=tasks(), data=st.data())
def test_sbp_unites_each_block_with_one_of_the_other_direction(task: AlignmentTask, data: st.DataObject) -> None:
    num_parts = data.draw(st.integers(1, min(task.num_source_entities, task.num_target_entities)))
    seeds = task.train_links
    forward = block_of_entity(task, seeds, num_parts, seed=1)
    backward = block_of_entity(task, seeds, num_parts, seed=1, target_leads=True)
    partition = sbp(task, seeds, num_parts, seed=1)
    assert partition.num_uncovered == 0
    ends = set(seeds.ravel().tolist())
    for index in range(num_parts):
        first = set(np.flatnonzero(forward == index).tolist())
        seconds = [set(np.flatnonzero(backward == other).tolist()) for other in range(num_parts)]
        best = max(seconds, key=lambda second: len(first & second & ends))
        assert set(partition.part(index).tolist()) == first | best
