"""Rows of entities that were not in the training, against means computed by hand."""

from __future__ import annotations

import numpy as np

from largegnn.embedding.new_rows import fill_rows, grow_relation_rows

# Known: 0, 1, 2. New: 3 beside 0 (twice, and back) and 1; 4 beside 3 only; 5 and 6 beside each other; 7 alone.
TRIPLES = np.array([(0, 0, 3), (0, 1, 3), (3, 0, 0), (1, 0, 3), (3, 1, 4), (4, 0, 4), (5, 0, 6), (0, 0, 2)])
KNOWN = np.array([True, True, True, False, False, False, False, False])
ROWS = np.zeros((8, 2), dtype=np.float32)
ROWS[:3] = [(4, 0), (0, 8), (100, 100)]


def test_half_the_mean_of_distinct_neighbours_wave_by_wave() -> None:
    found = fill_rows(ROWS, KNOWN, TRIPLES, passes=0)
    assert np.array_equal(found.rows[:3], ROWS[:3])
    assert found.rows[3].tolist() == [1, 2], "half of the mean (2, 4) of 0 and 1"
    assert found.rows[4].tolist() == [1, 2], "half of what 3 has; its loop is no neighbour"
    assert found.rows[5:].tolist() == [[0, 0]] * 3
    assert found.reached.tolist() == [True] * 5 + [False] * 3
    assert found.num_known.tolist() == [0, 0, 0, 2, 0, 0, 0, 0]


def test_passes_let_new_neighbours_speak() -> None:
    found = fill_rows(ROWS, KNOWN, TRIPLES, passes=1)
    assert np.allclose(found.rows[3], 0.5 * np.mean([(4, 0), (0, 8), (2, 4)], axis=0))
    many = fill_rows(ROWS, KNOWN, TRIPLES, passes=50)
    assert np.allclose(many.rows[3], many.rows[4], atol=1e-5), "4 has no neighbour but 3"
    assert np.allclose(many.rows[3], (1, 2), atol=1e-5), "and adds nothing of its own"


def test_nothing_new_and_no_triples() -> None:
    everyone = np.ones(8, dtype=bool)
    found = fill_rows(ROWS, everyone, TRIPLES)
    assert np.array_equal(found.rows, ROWS)
    assert found.reached.all()
    lost = fill_rows(ROWS, KNOWN, TRIPLES[:0])
    assert np.array_equal(lost.reached, KNOWN)
    assert not lost.num_known.any()


def test_the_rows_given_are_not_changed() -> None:
    before = ROWS.copy()
    fill_rows(ROWS, ~KNOWN, TRIPLES)
    assert np.array_equal(ROWS, before)


def test_relation_rows_move_in_both_directions() -> None:
    """Two relations, forward 1 and 2, inverse 3 and 4; a new one comes between them."""
    rows = np.array([[1], [2], [3], [4]], dtype=np.float32)
    assert grow_relation_rows(rows, np.array([0, 2]), 3).ravel().tolist() == [1, 0, 2, 3, 0, 4]
