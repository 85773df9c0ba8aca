from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts.plain import from_plain, to_plain
from largegnn.errors import ArtifactError
from largegnn.matching.confidence.calibration import MIN_VALID_LINKS, Calibration, calibrate, uncalibrated
from largegnn.matching.confidence.thresholds import choose_threshold
from tests.matching.confidence.synthetic_pairs import DEFAULT_WEIGHTS, SyntheticPairs, synthetic_pairs


def expected_and_true(drawn: SyntheticPairs) -> tuple[float, float, float, float]:
    """Expected precision of the accepted first choices, its interval, and the truth."""
    calibration, _ = drawn.calibrated()
    features, best, true = (
        drawn.features[drawn.best],
        drawn.best[drawn.best],
        drawn.true[drawn.best],
    )
    threshold = choose_threshold(calibration, features, best)
    accepted = calibration.rate(features, best) >= threshold.threshold
    assert accepted.sum() == threshold.num_pairs
    assert threshold.expected_precision is not None
    assert threshold.precision_low is not None
    assert threshold.precision_high is not None
    assert 0 <= threshold.precision_low <= threshold.expected_precision <= threshold.precision_high <= 1
    return threshold.expected_precision, threshold.precision_low, threshold.precision_high, float(true[accepted].mean())


@pytest.mark.parametrize(("num_valid", "closeness"), [(40, 0.09), (300, 0.04)])
@pytest.mark.parametrize("all_linked", [True, False])
def test_the_interval_holds_the_truth_nine_times_in_ten(all_linked: bool, num_valid: int, closeness: float) -> None:
    """Of 12 worlds at most 3 may miss, and more than that do so once in forty times; the mean error is small."""
    found = np.linspace(0.15, 0.8, 12)
    worlds = [
        synthetic_pairs(all_linked=all_linked, num_valid=num_valid, found=share, seed=seed)
        for seed, share in enumerate(found)
    ]
    results = [expected_and_true(drawn) for drawn in worlds]
    missed = sum(not low <= true <= high for _, low, high, true in results)
    assert missed <= 3
    errors = np.array([expected - true for expected, _, _, true in results])
    assert np.abs(errors).mean() < closeness
    assert abs(errors.mean()) < closeness


@pytest.mark.parametrize("all_linked", [True, False])
def test_what_partial_gold_would_say(all_linked: bool) -> None:
    """The share that is right of the accepted pairs with an end in a link."""
    errors = []
    for seed in range(4):
        drawn = synthetic_pairs(all_linked=all_linked, num_valid=300, found=0.4, seed=seed)
        calibration, _ = drawn.calibrated()
        pairs, true = drawn.pairs[drawn.best], drawn.true[drawn.best]
        threshold = choose_threshold(calibration, drawn.features[drawn.best], drawn.best[drawn.best])
        accepted = calibration.rate(drawn.features, drawn.best)[drawn.best] >= threshold.threshold
        touching = accepted & np.isin(pairs, drawn.links).any(axis=1)
        assert threshold.expected_precision is not None
        assert threshold.expected_partial is not None
        assert threshold.expected_partial >= threshold.expected_precision
        errors.append(threshold.expected_partial - true[touching].mean())
    assert np.abs(errors).mean() < 0.05


def test_more_valid_links_narrow_the_interval() -> None:
    widths = []
    for num_valid in (40, 160, 640):
        _, low, high, _ = expected_and_true(synthetic_pairs(all_linked=True, num_valid=num_valid, found=0.5))
        widths.append(high - low)
    assert widths[0] > 1.3 * widths[1] > 1.5 * widths[2]


def test_a_graph_against_its_own_copy() -> None:
    """Nearly all pairs are right, and all entities have a counterpart: expected within .05 of the truth."""
    drawn = synthetic_pairs(all_linked=True, num_valid=100, found=0.9, overlap=0.5, seed=3)
    expected, low, high, true = expected_and_true(drawn)
    assert true > 0.9
    assert expected == pytest.approx(true, abs=0.05)
    assert low <= true <= high


def test_every_tenth_of_the_confidence_keeps_what_it_says() -> None:
    drawn = synthetic_pairs(all_linked=True, num_valid=2_000, num_side=12_000, found=0.5)
    calibration, _ = drawn.calibrated()
    confidence = calibration.rate(drawn.features, drawn.best)
    tenth = np.minimum((confidence * 10).astype(int), 9)
    for best in (True, False):
        for number in range(10):
            inside = (tenth == number) & (drawn.best == best)
            if inside.sum() > 400:
                assert confidence[inside].mean() == pytest.approx(drawn.true[inside].mean(), abs=0.08)


FEATURES = st.tuples(st.floats(-20, 20), st.floats(0, 20), st.floats(0, 1))
MANY = synthetic_pairs(all_linked=False, num_valid=400).calibrated()[0]
FEW = synthetic_pairs(all_linked=False, num_valid=MIN_VALID_LINKS).calibrated()[0]


@given(features=FEATURES, which=st.integers(0, 2), more=st.floats(0, 9), is_best=st.booleans())
def test_more_evidence_never_lowers_a_confidence(
    features: tuple[float, float, float], which: int, more: float, is_best: bool
) -> None:
    rows = np.array([features, features])
    rows[1, which] += more
    best = np.array([is_best, is_best])
    for calibration in (MANY, FEW, uncalibrated((1.0, 2.0, 0.5), -1.0, 100.0)):
        assert min(calibration.weights) >= 0
        low, high = calibration.rate(rows, best)
        assert 0 <= low <= high <= 1


def test_the_same_pair_has_the_same_confidence_among_others() -> None:
    """A threshold is compared with confidences that were reckoned among other pairs."""
    drawn = synthetic_pairs(all_linked=True, num_valid=100)
    together = MANY.rate(drawn.features, drawn.best)
    for part in (slice(0, 7), slice(3, 1_000), slice(100, 101)):
        np.testing.assert_array_equal(MANY.rate(drawn.features[part], drawn.best[part]), together[part])


def test_what_it_rests_on_is_said() -> None:
    drawn = synthetic_pairs(all_linked=False, num_valid=150)
    calibration, _ = drawn.calibrated()
    first = drawn.pairs[drawn.best]
    touched = np.isin(first, drawn.valid).any(axis=1)
    assert calibration.is_calibrated
    assert calibration.measure == "confidence"
    assert calibration.num_valid == 150
    assert calibration.num_judged == touched.sum()
    assert calibration.num_right == (drawn.true[drawn.best] & touched).sum()
    assert calibration.num_links_low < drawn.num_links < calibration.num_links_high
    assert calibration.num_links == pytest.approx(drawn.num_links, rel=0.3)


def test_other_candidates_are_believed_less() -> None:
    drawn = synthetic_pairs(all_linked=True, num_valid=1_500)
    calibration, _ = drawn.calibrated()
    confidence = calibration.rate(drawn.features, drawn.best)
    for best in (True, False):
        inside = drawn.best == best
        assert confidence[inside].mean() == pytest.approx(drawn.true[inside].mean(), abs=0.06)


def test_few_valid_links_give_a_score_and_no_confidence() -> None:
    for num_valid, calibrated in ((0, False), (MIN_VALID_LINKS - 1, False), (MIN_VALID_LINKS, True)):
        drawn = synthetic_pairs(all_linked=True, num_valid=num_valid)
        calibration, reliability = drawn.calibrated()
        assert calibration.is_calibrated is calibrated
        assert calibration.num_valid == num_valid
        assert (reliability is None) is not calibrated
        assert calibration.measure == ("confidence" if calibrated else "score")


def test_no_confidence_near_one_from_few_valid_links() -> None:
    """Even if all of the few labelled pairs are right, nothing is beyond doubt."""
    drawn = synthetic_pairs(all_linked=True, num_valid=MIN_VALID_LINKS, found=0.95, overlap=0.3)
    calibration, _ = drawn.calibrated()
    assert calibration.rate(drawn.features, drawn.best).max() < 0.98


def test_every_valid_link_found_and_no_wrong_pair() -> None:
    """All links are found and nothing else is paired: nothing is left to be wrong."""
    drawn = synthetic_pairs(all_linked=True, num_valid=200, found=1.0)
    keep = drawn.true
    calibration, _ = calibrate(
        drawn.pairs[keep],
        drawn.features[keep],
        np.ones(int(keep.sum()), dtype=bool),
        drawn.valid,
        drawn.count_links(),
        drawn.num_free,
        DEFAULT_WEIGHTS,
    )
    assert calibration.num_right == calibration.num_valid
    threshold = choose_threshold(calibration, drawn.features[keep], drawn.best[keep], cut="none")
    assert threshold.expected_precision is not None
    assert threshold.expected_precision > 0.97
    assert threshold.precision_high == 1.0


def test_no_valid_link_found_means_little_is_expected() -> None:
    drawn = synthetic_pairs(all_linked=True, num_valid=300)
    valid = drawn.valid[~np.isin(drawn.valid[:, 0], drawn.pairs[drawn.true][:, 0])]
    links, default = drawn.count_links(), DEFAULT_WEIGHTS
    calibration, _ = calibrate(drawn.pairs, drawn.features, drawn.best, valid, links, drawn.num_free, default)
    assert calibration.num_right == 0
    threshold = choose_threshold(calibration, drawn.features[drawn.best], drawn.best[drawn.best], cut="none")
    assert threshold.expected_precision is not None
    assert threshold.expected_precision < 0.1


def test_no_pairs_at_all() -> None:
    nothing = np.empty((0, 2), dtype=np.int64)
    drawn = synthetic_pairs(all_linked=True, num_valid=100)
    links = drawn.count_links()
    calibration, reliability = calibrate(
        nothing, np.empty((0, 3)), np.empty(0, dtype=bool), drawn.valid, links, drawn.num_free, DEFAULT_WEIGHTS
    )
    assert not calibration.is_calibrated
    assert reliability is None
    assert calibration.rate(np.empty((0, 3)), np.empty(0, dtype=bool)).shape == (0,)


def test_what_does_not_fit_together_is_refused() -> None:
    drawn = synthetic_pairs(all_linked=True, num_valid=100)
    links, features = drawn.count_links(), drawn.features
    for wrong in (features[:-1], features[:, :2], features[:, 0]):
        with pytest.raises(ArtifactError, match="fit together"):
            calibrate(drawn.pairs, wrong, drawn.best, drawn.valid, links, drawn.num_free, DEFAULT_WEIGHTS)


def test_the_score_orders_pairs_and_says_what_it_is() -> None:
    score = uncalibrated((1.0, 2.0), -1.0, 50.0)
    assert score.measure == "score"
    found = score.rate(np.array([(1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]), np.array([True, True, False]))
    assert found.tolist() == pytest.approx([0.5, 1 / (1 + np.exp(-1)), 0.5 / (1 + np.exp(-1))])


def test_it_is_written_and_read_as_plain_values() -> None:
    again = from_plain(Calibration, to_plain(FEW))
    assert again == FEW
    drawn = synthetic_pairs(all_linked=False, num_valid=60)
    np.testing.assert_array_equal(again.rate(drawn.features, drawn.best), FEW.rate(drawn.features, drawn.best))


def test_a_feature_that_says_nothing_or_the_opposite_does_no_harm() -> None:
    drawn = synthetic_pairs(all_linked=True, num_valid=400)
    rng = np.random.default_rng(1)
    more = np.column_stack([drawn.features, rng.normal(size=len(drawn.pairs)), -drawn.features[:, 0]])
    default = ((*DEFAULT_WEIGHTS[0], 0.0, 0.0), DEFAULT_WEIGHTS[1])
    calibration, _ = calibrate(
        drawn.pairs,
        more,
        drawn.best,
        drawn.valid,
        drawn.count_links(),
        drawn.num_free,
        default,
    )
    assert calibration.weights[4] == pytest.approx(0.0, abs=0.05)
    confidence = calibration.rate(more, drawn.best)[drawn.best]
    assert confidence.mean() == pytest.approx(drawn.true[drawn.best].mean(), abs=0.06)
