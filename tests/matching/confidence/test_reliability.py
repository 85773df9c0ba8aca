from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn.artifacts import ReliabilityRow
from largegnn.matching.confidence.labelled_pairs import LabelledPairs
from largegnn.matching.confidence.reliability import reliability, reliability_by_labels
from tests.matching.confidence.synthetic_pairs import synthetic_pairs


def check(row: ReliabilityRow, expected: tuple[float | None, ...]) -> None:
    """Compare with low, high, pairs, confidence, right, labelled."""
    assert dataclasses.astuple(row) == pytest.approx(expected)


def test_a_table_by_hand() -> None:
    table = reliability(np.array([0.0, 0.15, 0.05, 1.0, 0.95]), np.array([False, True, True, True, True]))
    assert len(table) == 10
    check(table[0], (0.0, 0.1, 2, 0.025, 0.5, 2))
    check(table[1], (0.1, 0.2, 1, 0.15, 1.0, 1))
    check(table[9], (0.9, 1.0, 2, 0.975, 1.0, 2))
    check(table[5], (0.5, 0.6, 0, None, None, 0))


def test_the_judged_speak_for_all() -> None:
    """Of six pairs from .9 on, a right one and two wrong ones are labelled, one of these at both ends.

    With two linked ends to a wrong pair the wrong ones count 1/2 and 1, so 1 in 2.5 is right; with one linked end they
    count 1 and 2, so it is 1 in 4.
    """
    confidence = np.array([0.95] * 6 + [0.05])
    labelled = LabelledPairs(
        rows=np.array([0, 1, 2]),
        is_correct=np.array([True, False, False]),
        is_linked=np.array([(True, True), (True, False), (True, True)]),
        folds=np.zeros(3, dtype=np.int64),
    )
    for ends_per_wrong, share in ((2.0, 1 / 2.5), (1.0, 1 / 4)):
        table = reliability_by_labels(confidence, np.full(3, 0.95), labelled, ends_per_wrong)
        check(table[9], (0.9, 1.0, 6, 0.95, share, 3))
        check(table[0], (0.0, 0.1, 1, 0.05, None, 0))


@pytest.mark.parametrize("all_linked", [True, False])
def test_the_rows_add_up_and_keep_what_they_say(all_linked: bool) -> None:
    drawn = synthetic_pairs(all_linked=all_linked, num_valid=1_500, num_side=8_000)
    calibration, table = drawn.calibrated()
    assert table is not None
    assert sum(row.pairs for row in table) == drawn.best.sum()
    assert sum(row.judged for row in table) == calibration.num_judged
    full = [row for row in table if row.judged > 60]
    assert len(full) >= 3
    for row in full:
        assert row.confidence is not None
        assert row.low <= row.confidence <= row.high
        assert row.right == pytest.approx(row.confidence, abs=0.15)
