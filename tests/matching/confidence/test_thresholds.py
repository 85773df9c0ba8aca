from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.matching.confidence.calibration import Calibration, CurveRow, uncalibrated
from largegnn.matching.confidence.thresholds import Threshold, choose_threshold


def with_curves(rows: tuple[CurveRow, ...], knots: tuple[float, ...], num_links: float) -> Calibration:
    """A calibration by the only feature."""
    return Calibration(
        weights=(1.0,),
        offset=0.0,
        num_valid=100,
        num_judged=50,
        num_right=20,
        num_links=num_links,
        num_links_low=num_links,
        num_links_high=num_links,
        is_calibrated=True,
        wrong_touching=0.5,
        knots=knots,
        bend=(0.0,) * len(knots),
        curves=rows,
    )


def certain(num_links: float) -> Calibration:
    """A calibration whose confidence is the sigmoid of the only feature, beyond doubt; other pairs' is lower."""
    curve = CurveRow(ceiling=0.0, slope=1.0, offset=0.0, other_shift=-1.0, num_links=num_links)
    return with_curves((curve,) * 3, tuple(np.linspace(-12, 12, 2_001).tolist()), num_links)


def features_of(confidence: list[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    inside = np.clip(np.array(confidence, dtype=np.float64), 1e-4, 1 - 1e-4)
    return np.log(inside / (1 - inside)).reshape(-1, 1)


def cut(
    confidence: list[float], num_links: float, min_precision: float = 0.0, options: Literal["f1", "none"] = "f1"
) -> Threshold:
    best = np.ones(len(confidence), dtype=bool)
    features = features_of(confidence)
    return choose_threshold(certain(num_links), features, best, min_precision=min_precision, cut=options)


# Tenths, hence many ties.
CONFIDENCES = st.lists(st.integers(0, 10).map(lambda number: number / 10), min_size=1, max_size=20)


def sets(confidence: list[float]) -> list[list[float]]:
    """What may be accepted: everything from some confidence on."""
    return [[value for value in confidence if value >= lowest] for lowest in sorted(set(confidence))]


def check_expectations(threshold: Threshold, accepted: list[float], num_links: float) -> None:
    assert threshold.threshold == pytest.approx(min(accepted), abs=2e-4)
    assert threshold.num_pairs == len(accepted)
    assert threshold.expected_precision == pytest.approx(sum(accepted) / len(accepted), abs=2e-4)
    assert threshold.expected_recall == pytest.approx(min(sum(accepted) / num_links, 1.0), abs=2e-3)
    assert threshold.expected_f1 == pytest.approx(2 * sum(accepted) / (len(accepted) + num_links), abs=2e-3)
    assert threshold.precision_low is not None
    assert threshold.precision_high is not None
    assert threshold.precision_low <= sum(accepted) / len(accepted) + 2e-4
    assert threshold.precision_high >= sum(accepted) / len(accepted) - 2e-4


@given(confidence=CONFIDENCES, num_links=st.integers(1, 30))
def test_the_best_f1_of_all_cuts(confidence: list[float], num_links: int) -> None:
    threshold = cut(confidence, num_links)
    check_expectations(threshold, [value for value in confidence if value >= threshold.threshold - 3e-4], num_links)
    best = max(2 * sum(accepted) / (len(accepted) + num_links) for accepted in sets(confidence))
    assert threshold.expected_f1 == pytest.approx(best, abs=2e-3)
    assert threshold.is_reached
    assert threshold.chance is None


@given(confidence=CONFIDENCES, num_links=st.integers(1, 30), hundredths=st.integers(1, 99).filter(lambda n: n % 5 != 0))
def test_the_most_pairs_that_keep_a_precision(confidence: list[float], num_links: int, hundredths: int) -> None:
    precision = hundredths / 100 + 0.003  # no mean of tenths, so that rounding decides nothing
    threshold = cut(confidence, num_links, precision)
    reaching = [accepted for accepted in sets(confidence) if sum(accepted) / len(accepted) >= precision]
    assert threshold.is_reached == bool(reaching)
    best = [value for value in confidence if value == max(confidence)]
    check_expectations(threshold, max(reaching, key=len) if reaching else best, num_links)


def test_pairs_of_one_confidence_go_together() -> None:
    """At .8 the first pair of .5 would fit, (1 + 1 + .5) / 3, but its twin goes with it: .75."""
    assert cut([0.5, 1.0, 0.5, 1.0], 4, 0.8).num_pairs == 2
    assert cut([0.5, 1.0, 0.5, 1.0], 4, 0.745).num_pairs == 4


def test_the_surest_pairs_where_a_precision_is_out_of_reach() -> None:
    """.700 and .695 are as sure as each other; .60 is not."""
    threshold = cut([0.6, 0.7, 0.695, 0.2], 4, 0.9)
    assert not threshold.is_reached
    assert threshold.num_pairs == 2
    assert threshold.expected_precision == pytest.approx(0.6975, abs=1e-3)
    assert threshold.chance is not None
    assert 0 < threshold.chance < 0.5


def test_all_are_accepted_on_request() -> None:
    threshold = cut([0.9, 0.1, 0.2], 3, options="none")
    assert threshold.num_pairs == 3
    assert threshold.expected_precision == pytest.approx(0.4, abs=1e-3)


def test_how_sure_a_precision_is() -> None:
    """A thousand pairs of .9: .85 is nearly certain, .9 a coin's toss."""
    assert cut([0.9] * 1_000, 2_000, 0.85).chance == pytest.approx(1.0, abs=1e-3)
    assert cut([0.9] * 1_000, 2_000, 0.899).chance == pytest.approx(0.5, abs=0.1)


def test_partial_gold_does_not_see_pairs_that_touch_no_link() -> None:
    """Half of the wrong pairs: .6 right and .4 wrong, of which .2 are seen."""
    assert cut([0.6] * 10, 20, options="none").expected_partial == pytest.approx(0.6 / 0.8, abs=1e-3)


def test_other_pairs_count_by_their_own_curve() -> None:
    """The log-odds of a pair that is no first choice are one lower."""
    features, best = np.array([[0.0], [0.0]]), np.array([True, False])
    threshold = choose_threshold(certain(4), features, best, cut="none")
    assert threshold.expected_precision == pytest.approx((0.5 + 1 / (1 + np.e)) / 2, abs=1e-3)


def test_curves_that_differ_widen_the_interval() -> None:
    rows = tuple(CurveRow(0.0, 1.0, offset, -1.0, 50.0) for offset in np.linspace(-1, 1, 201).tolist())
    doubtful = with_curves(rows, (-9.0, 0.0, 9.0), 50.0)
    threshold = choose_threshold(doubtful, np.zeros((100_000, 1)), np.ones(100_000, dtype=bool))
    assert threshold.expected_precision == pytest.approx(0.5, abs=1e-3)
    assert threshold.precision_low == pytest.approx(1 / (1 + np.exp(0.9)), abs=0.005)
    assert threshold.precision_high == pytest.approx(1 / (1 + np.exp(-0.9)), abs=0.005)


def test_nothing_is_expected_without_calibration() -> None:
    """All are accepted; if a precision is asked for, those with the highest score."""
    score = uncalibrated((1.0,), 0.0, 100.0)
    features, best = np.array([[3.0], [0.0], [2.99], [-1.0]]), np.ones(4, dtype=bool)
    threshold = choose_threshold(score, features, best)
    assert threshold == Threshold(threshold.threshold, 4)
    asked = choose_threshold(score, features, best, min_precision=0.9)
    assert asked == Threshold(asked.threshold, 2, is_reached=False)
    assert asked.expected_precision is None


def test_no_pairs() -> None:
    nothing, none = np.empty((0, 1)), np.empty(0, dtype=bool)
    for calibration in (certain(5), uncalibrated((1.0,), 0.0, 5.0)):
        assert choose_threshold(calibration, nothing, none) == Threshold(1.0, 0)
        assert choose_threshold(calibration, nothing, none, min_precision=0.5) == Threshold(1.0, 0, is_reached=False)
