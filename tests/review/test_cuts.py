"""Test the outcome of other thresholds against values by hand, and at the threshold of the run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn.matching.confidence.calibration import uncalibrated
from largegnn.matching.confidence.thresholds import Threshold
from largegnn.matching.match import MatchOutcome
from largegnn.review.cuts import selected_pairs, threshold_cuts, wilson_interval
from tests.review.small_alignment import B2, D2, B, D, toy_alignment


def outcome(threshold: float, num_accepted: int, expected: float | None = None) -> MatchOutcome:
    calibration = dataclasses.replace(uncalibrated((1.0,), 0.0, 4.0), is_calibrated=expected is not None)
    chosen = Threshold(threshold, num_accepted, expected_precision=expected, expected_recall=expected)
    return MatchOutcome(6, num_accepted, ("cosine",), chosen, calibration, None, {})


def test_wilson_by_the_book() -> None:
    """8 of 10 with z = 1.6449: (0.8 + z²/20 ± z √(0.016 + z²/400)) / (1 + z²/10)."""
    low, high = wilson_interval(8, 10)
    assert (low, high) == pytest.approx((0.5408, 0.9314), abs=1e-4)
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(5, 5)[1] == 1.0
    assert wilson_interval(0, 5)[0] == 0.0


def test_what_the_selection_chose() -> None:
    alignment = toy_alignment()
    assert selected_pairs(alignment, "mutual_top1", 5).tolist() == [True, False, True, False, False, False]
    assert selected_pairs(alignment, "mutual_knn", 2).tolist() == [True, False, True, True, True, True]
    assert selected_pairs(alignment, "one_to_one", 5).tolist() == alignment.accepted.tolist()


def test_by_hand() -> None:
    """b = B has .99 and is a valid link; d = D has .8 and touches no valid link."""
    alignment = toy_alignment()
    selected = selected_pairs(alignment, "mutual_top1", 5)
    valid = np.array([(B, B2)])
    cuts = threshold_cuts(alignment, outcome(0.5, 2, 0.895), selected, valid)
    by_threshold = {round(cut.threshold, 2): cut for cut in cuts}
    assert [by_threshold[step].pairs for step in (0.0, 0.5, 0.8, 0.81, 0.99, 1.0)] == [2, 2, 2, 1, 1, 0]
    assert by_threshold[0.81].expected_precision == pytest.approx(0.99)
    assert by_threshold[0.81].expected_recall == pytest.approx(0.99 / 4)
    assert (by_threshold[0.6].judged, by_threshold[0.6].right, by_threshold[0.6].recall) == (1, 1, 1.0)
    assert by_threshold[1.0].expected_precision is None
    assert [cut.threshold for cut in cuts] == sorted(cut.threshold for cut in cuts)


def test_the_threshold_in_use_has_the_numbers_of_the_run() -> None:
    cuts = threshold_cuts(
        toy_alignment(),
        outcome(0.7777, 2, 0.123),
        selected_pairs(toy_alignment(), "mutual_top1", 5),
        np.empty((0, 2), dtype=np.int32),
    )
    run_cut = next(cut for cut in cuts if cut.threshold == 0.7777)
    assert (run_cut.pairs, run_cut.judged, run_cut.recall) == (2, 0, None)
    assert (run_cut.expected_precision, run_cut.expected_recall) == (0.123, 0.123)


def test_nothing_is_expected_where_nothing_is_calibrated() -> None:
    cuts = threshold_cuts(toy_alignment(), outcome(0.7, 2), np.zeros(6, dtype=bool), np.array([(D, D2)]))
    assert all(cut.expected_precision is None and cut.expected_recall is None for cut in cuts)
    assert [cut.pairs for cut in cuts if cut.threshold != 0.7] == [0] * 100
