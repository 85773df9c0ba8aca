from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.errors import ArtifactError
from largegnn.matching.confidence import (
    Calibration,
    Threshold,
    best_f1,
    calibrate,
    cross_checked,
    highest_recall,
    reliability,
    uncalibrated,
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class World:
    """The first choice of each of 20,000 sources, and what is known of it.

    A share of the sources have a counterpart; of these some find it and the others choose wrongly, as the sources
    without one must. Right pairs have more of each feature than wrong ones, with much overlap. A tenth of the links
    are valid links; a wrong pair is noticed if either of its ends is in one of them.
    """

    features: Array
    true: Array
    right: Array
    known: Array
    best: Array
    halves: Array  # (p, 2) which half a pair with a valid end belongs to
    num_links: int
    num_valid: tuple[int, int]

    @property
    def num_free(self) -> tuple[int, int]:
        return len(self.true), len(self.true)


def make_world(linked: float, found: float = 0.6, num_pairs: int = 20_000, seed: int = 0) -> World:
    rng = np.random.default_rng(seed)
    has_link = rng.random(num_pairs) < linked
    true = has_link & (rng.random(num_pairs) < found)
    features = np.stack(
        [
            rng.normal(np.where(true, 1.2, 0.0), 1.0),
            rng.exponential(np.where(true, 0.5, 0.2)),
            np.where(true, rng.random(num_pairs) < 0.6, rng.random(num_pairs) < 0.15).astype(float),
        ],
        axis=1,
    )
    valid_source = has_link & (rng.random(num_pairs) < 0.1)
    # The target chosen wrongly belongs to a valid link by chance; a right one does with its source.
    num_links = int(has_link.sum())
    by_target = ~true & (rng.random(num_pairs) < 0.1 * linked)
    half = rng.integers(0, 2, num_pairs)
    known = valid_source | by_target
    sizes = [int((valid_source & (half == index)).sum()) for index in (0, 1)]
    return World(
        features=features,
        true=true,
        right=true & valid_source,
        known=known,
        best=np.ones(num_pairs, dtype=bool),
        halves=np.stack([known & (half == index) for index in (0, 1)], axis=1),
        num_links=num_links,
        num_valid=(sizes[0], sizes[1]),
    )


def learn(world: World) -> Calibration:
    found = calibrate(world.features, world.right, world.known, world.best, sum(world.num_valid), world.num_free)
    assert found is not None
    return found


def promised_and_true(world: World) -> list[tuple[float, float]]:
    """Expected precision and true precision where F1 is best, and at two precisions asked for."""
    calibration = learn(world)
    confidence = calibration.confidence(world.features, world.best)
    result = []
    for threshold in (
        best_f1(confidence, calibration.num_links),
        highest_recall(confidence, calibration.num_links, 0.7),
        highest_recall(confidence, calibration.num_links, 0.85),
    ):
        assert threshold is not None
        assert threshold.expected_precision is not None
        out = confidence >= threshold.confidence
        assert out.sum() == threshold.num_pairs
        result.append((threshold.expected_precision, float(world.true[out].mean())))
    return result


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("linked", [0.4, 0.8, 1.0])
def test_what_is_promised_is_what_comes(linked: float, seed: int) -> None:
    world = make_world(linked, num_pairs=100_000, seed=seed)
    assert learn(world).is_calibrated
    assert learn(world).num_links == pytest.approx(world.num_links, rel=0.15)
    for promised, true in promised_and_true(world):
        assert promised == pytest.approx(true, abs=0.05)


@pytest.mark.parametrize("linked", [0.25, 0.4, 0.8])
def test_little_is_known_but_not_skewed(linked: float) -> None:
    """With 800 valid links a promise is off by .05 or so (one standard error), now to this side, now to that."""
    worlds = [make_world(linked, seed=seed) for seed in range(8)]
    errors = np.array([[promised - true for promised, true in promised_and_true(world)] for world in worlds])
    assert np.abs(errors.mean(axis=0)).max() < 0.04
    assert np.abs(errors).max() < 0.15
    ratios = np.array([learn(world).num_links / world.num_links for world in worlds])
    assert abs(ratios.mean() - 1) < 0.08
    assert np.abs(ratios - 1).max() < 0.3


@pytest.mark.parametrize("linked", [0.4, 1.0])
def test_the_cut_is_nearly_as_good_as_one_that_knows_the_truth(linked: float) -> None:
    world = make_world(linked, num_pairs=100_000)
    confidence = learn(world).confidence(world.features, world.best)
    order = np.argsort(-confidence, kind="stable")
    f1 = 2 * np.cumsum(world.true[order]) / (np.arange(1, len(order) + 1) + world.num_links)
    threshold = best_f1(confidence, learn(world).num_links)
    assert f1[threshold.num_pairs - 1] > f1.max() - 0.01


FEATURES = st.tuples(st.floats(-5, 5), st.floats(0, 5), st.floats(0, 1))


@given(features=FEATURES, which=st.integers(0, 2), more=st.floats(0, 5), is_best=st.booleans())
def test_more_evidence_never_lowers_a_confidence(
    features: tuple[float, float, float], which: int, more: float, is_best: bool
) -> None:
    rows = np.array([features, features])
    rows[1, which] += more
    best = np.array([is_best, is_best])
    for calibration in (CALIBRATION, uncalibrated((1.0, 2.0, 0.5), -1.0, 100.0)):
        assert min(calibration.weights) >= 0
        low, high = calibration.confidence(rows, best)
        assert 0 <= low <= high <= 1


def mixed_world() -> World:
    """Half of the pairs are no first choice, and seldom right."""
    world = make_world(0.5, num_pairs=4_000)
    best = np.random.default_rng(1).random(4_000) < 0.5
    true = world.true & (best | (np.arange(4_000) % 5 == 0))
    right = world.right & true
    return World(world.features, true, right, world.known, best, world.halves, world.num_links, world.num_valid)


CALIBRATION = learn(mixed_world())


def test_a_first_choice_is_believed_more() -> None:
    world = mixed_world()
    best, other = (CALIBRATION.confidence(world.features, np.full(4_000, choice)) for choice in (True, False))
    assert best.mean() > 2 * other.mean()
    assert CALIBRATION.num_right == int((world.right & world.best).sum())


def test_a_feature_that_speaks_against_is_left_out() -> None:
    world = make_world(0.5, num_pairs=4_000)
    turned = World(-world.features, *[getattr(world, name) for name in list(World.__dataclass_fields__)[1:]])
    assert max(learn(turned).weights) == 0


def test_too_little_is_known() -> None:
    world = make_world(0.5, num_pairs=4_000)
    for number, expected in ((9, True), (10, False)):
        right = np.zeros(4_000, dtype=bool)
        right[np.flatnonzero(world.right)[:number]] = True
        found = calibrate(world.features, right, world.known, world.best, 100, world.num_free)
        assert (found is None) is expected
    nothing = np.empty(0, dtype=bool)
    assert calibrate(np.empty((0, 3)), nothing, nothing, nothing, 0, (0, 0)) is None
    with pytest.raises(ArtifactError, match="same pairs"):
        calibrate(world.features, world.right[:-1], world.known, world.best, 100, world.num_free)


def test_the_stand_in_orders_pairs_and_knows_it_is_one() -> None:
    stand_in = uncalibrated((1.0, 2.0), -1.0, 50.0)
    assert not stand_in.is_calibrated
    found = stand_in.confidence(np.array([(1.0, 0.0), (0.0, 1.0), (0.0, 1.0)]), np.array([True, True, False]))
    assert found.tolist() == pytest.approx([0.5, 1 / (1 + np.exp(-1)), 0.5 / (1 + np.exp(-1))])


# Tenths, hence many ties.
CONFIDENCES = st.lists(st.integers(0, 10).map(lambda number: number / 10), max_size=20)


def cuts(confidence: list[float]) -> list[list[float]]:
    """What may be put out: everything from some confidence on."""
    return [[value for value in confidence if value >= lowest] for lowest in sorted(set(confidence))]


def check_expectations(threshold: Threshold, output: list[float], num_links: float) -> None:
    assert threshold.confidence == min(output)
    assert threshold.num_pairs == len(output)
    assert threshold.expected_precision == pytest.approx(sum(output) / len(output))
    assert threshold.expected_recall == pytest.approx(min(sum(output) / num_links, 1.0))
    assert threshold.expected_f1 == pytest.approx(2 * sum(output) / (len(output) + num_links))


@given(confidence=CONFIDENCES, num_links=st.integers(1, 30))
def test_the_best_f1_of_all_cuts(confidence: list[float], num_links: int) -> None:
    threshold = best_f1(np.array(confidence), num_links)
    if not confidence:
        assert threshold == Threshold(1.0, 0, None, 0.0, 0.0)
        return
    check_expectations(threshold, [value for value in confidence if value >= threshold.confidence], num_links)
    best = max(2 * sum(output) / (len(output) + num_links) for output in cuts(confidence))
    assert threshold.expected_f1 == pytest.approx(best)


@given(
    confidence=CONFIDENCES, num_links=st.integers(1, 30), precision=st.integers(1, 20).map(lambda number: number / 20)
)
def test_the_most_pairs_that_keep_a_precision(confidence: list[float], num_links: int, precision: float) -> None:
    threshold = highest_recall(np.array(confidence), num_links, precision)
    reaching = [output for output in cuts(confidence) if sum(output) / len(output) >= precision - 1e-9]
    if not reaching:
        assert threshold is None
        return
    assert threshold is not None
    check_expectations(threshold, max(reaching, key=len), num_links)


def test_pairs_of_one_confidence_go_together_and_are_counted() -> None:
    """At .8 the first pair of .5 would fit, (1 + 1 + .5) / 3, but its twin goes with it: .75."""
    confidence = np.array([0.5, 1.0, 0.5, 1.0])
    assert highest_recall(confidence, 4, 0.8) == Threshold(1.0, 2, 1.0, 0.5, 2 * 2 / 6)
    assert highest_recall(confidence, 4, 0.75) == Threshold(0.5, 4, 0.75, 0.75, 2 * 3 / 8)


def test_a_reliability_table_by_hand() -> None:
    table = reliability(np.array([0.0, 0.15, 0.05, 1.0, 0.95]), np.array([0.0, 1.0, 1.0, 3.0, 1.0]))
    assert len(table) == 10
    assert table[0] == {"from": 0.0, "to": 0.1, "pairs": 2, "confidence": pytest.approx(0.025), "right": 0.5}
    assert table[1]["pairs"] == 1
    assert table[9] == {"from": 0.9, "to": 1.0, "pairs": 2, "confidence": pytest.approx(0.975), "right": 1.0}
    assert table[5] == {"from": 0.5, "to": 0.6, "pairs": 0, "confidence": None, "right": None}


def test_each_half_is_judged_by_the_other() -> None:
    world = make_world(0.5)
    right = world.halves & world.right[:, None]
    table = cross_checked(world.features, right, world.halves, world.best, world.num_valid, world.num_free)
    assert table is not None
    # All pairs twice, but for what each teacher knew.
    assert sum(row["pairs"] for row in table) == 2 * len(world.true) - int(right.sum())
    full = [row for row in table if row["pairs"] > 1_000]
    assert len(full) >= 4
    for row in full:
        assert row["from"] <= row["confidence"] <= row["to"]
        assert row["right"] == pytest.approx(row["confidence"], abs=0.12)
    few = right.copy()
    few[np.flatnonzero(right[:, 0])[9:], 0] = False
    assert cross_checked(world.features, few, world.halves, world.best, world.num_valid, world.num_free) is None
