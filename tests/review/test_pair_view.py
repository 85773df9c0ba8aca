"""Test the picture of two neighbourhoods against values by hand."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.review.labels import Labels
from largegnn.review.neighbors import NeighborIndex
from largegnn.review.pair_view import draw_neighborhoods, targets_of_sources
from tests.review.small_alignment import B2, D2, B, D, toy_alignment


def test_the_targets_of_sources(toy_task: AlignmentTask) -> None:
    """Seeds a = A and c = C, accepted b = B and d = D."""
    assert targets_of_sources(toy_task, toy_alignment(), "train") == {0: 5, 1: 6, 2: 7, 3: 8}


def test_the_neighbours_of_one_entity(toy_task: AlignmentTask) -> None:
    index = NeighborIndex(toy_task)
    assert index.of(2) == {3: [(1, True)], 0: [(0, False)], 1: [(1, False)]}, "c: s to d, r from a, s from b"


def test_matched_neighbours_face_each_other(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    labels = Labels(toy_task, toy_names, Literals.empty())
    target_of_source = targets_of_sources(toy_task, toy_alignment(), "train")
    picture = draw_neighborhoods(NeighborIndex(toy_task), labels, target_of_source, D, D2)
    shown = [
        (row.is_matched, *(None if one is None else (one.label, one.relations) for one in (row.source, row.target)))
        for row in picture.rows
    ]
    assert shown == [(True, ("c", "^s"), ("C", "^q")), (False, ("e", "r"), ("E", "p"))]
    assert (picture.source, picture.target, picture.num_matched, picture.num_not_drawn) == ("d", "D", 1, (0, 0))


def test_a_hub_is_drawn_in_part(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    """Ten sources around a, of which at most seven are drawn with their targets."""
    star = AlignmentTask(
        12, 12, 1, 1,
        np.array([(0, 0, one) for one in range(1, 12)] + [(12, 1, one) for one in range(13, 24)]),
        np.array([(one, one + 12) for one in range(1, 11)]), np.empty((0, 2)), np.empty((0, 2)),
    )  # fmt: skip
    from largegnn.artifacts import StringTable

    names = TaskNames(StringTable.from_strings(map(str, range(24))), StringTable.from_strings("rs"))
    target_of_source = {one: one + 12 for one in range(1, 11)}
    picture = draw_neighborhoods(NeighborIndex(star), Labels(star, names, Literals.empty()), target_of_source, 0, 12)
    assert picture.num_matched == 10
    assert sum(row.is_matched for row in picture.rows) == 7
    assert picture.num_not_drawn == (3, 3), "eleven neighbours, seven matched and one other drawn"
    assert B2 > B
