"""The plan of a division, the epochs one serves, and the warning of too few seeds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import DivisionPlan, SeedsFrom
from largegnn.embedding.train import epochs_between_divisions
from largegnn.errors import InputError
from largegnn.machine import devices
from largegnn.machine.devices import memory_budget
from largegnn.matching.confidence.calibration import MIN_VALID_LINKS
from largegnn.planning.plan import (
    MIN_SEEDS,
    estimate_size,
    plan_division,
    plan_for,
    seeds_warning,
)
from largegnn.settings import DivisionSettings, LandmarkSettings, TrainSettings
from tests.planning.sized_tasks import sized_task

TASK = sized_task(15_000, num_triples=88_000)
ON, OFF = LandmarkSettings(), LandmarkSettings(enabled=False, cap=100)


def test_settings_are_kept() -> None:
    assert plan_for(TASK, DivisionSettings(parts=5), LandmarkSettings(cap=7_500), "cpu") == DivisionPlan(
        5, 7_500, "both given"
    )
    assert plan_for(TASK, DivisionSettings(parts=5), ON, "cpu").cap == 7_500
    assert plan_for(TASK, DivisionSettings(), LandmarkSettings(cap=7_500), "cpu").num_parts == 5


def test_without_landmarks_their_cap_says_nothing() -> None:
    assert plan_for(TASK, DivisionSettings(parts=5), OFF, "cpu") == plan_division(30_000, 88_000, 5, None)
    with pytest.raises(InputError, match="cannot hold"):
        plan_for(TASK, DivisionSettings(parts=5), LandmarkSettings(cap=100), "cpu")


def test_auto_follows_task_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "machine_memory_mb", lambda: 16_000.0)
    plan = plan_for(TASK, DivisionSettings(), ON, "cpu")
    assert (plan.num_parts, plan.cap) == (5, 7_500)
    assert "well within 50% of the machine's 16,000 MB" in plan.reason
    monkeypatch.setattr(devices, "machine_memory_mb", lambda: 200.0)
    tight = plan_for(TASK, DivisionSettings(), ON, "cpu")
    assert tight.cap < plan.cap
    assert "lowered to fit" in tight.reason


def test_what_is_given_is_kept() -> None:
    plan = plan_division(30_000, 88_000, 5, 7_500)
    assert (plan.num_parts, plan.cap) == (5, 7_500)


def test_half_given_the_other_half_follows() -> None:
    assert plan_division(30_000, 88_000, 5, None).cap == 7_500
    assert plan_division(30_000, 88_000, None, 7_500).num_parts == 5
    assert plan_division(30_000, 88_000, 1, None).cap == 30_000
    assert plan_division(30_000, 88_000, None, 40_000).num_parts == 1


def test_nothing_given_follows_size_and_memory() -> None:
    plan = plan_division(30_000, 88_000, None, None, 12_000, "half of it")
    assert (plan.num_parts, plan.cap) == (5, 7_500)
    assert "well within half of it" in plan.reason
    tight = plan_division(2_400_000, 12_000_000, None, None, 3_000, "a small GPU")
    assert "lowered to fit a small GPU" in tight.reason
    assert tight.num_parts > estimate_size(2_400_000, 12_000_000).num_parts


@given(st.integers(1, 10**7), st.integers(1, 200), st.integers(1, 10**6))
def test_a_plan_always_holds_everything(entities: int, parts: int, cap: int) -> None:
    for given_parts, given_cap in ((parts, cap), (parts, None), (None, cap), (None, None)):
        try:
            plan = plan_division(entities, 3 * entities, given_parts, given_cap)
        except InputError:
            assert given_parts is not None
            assert given_parts > entities or (given_cap is not None and given_cap * given_parts < entities)
        else:
            assert plan.num_parts * plan.cap >= entities
            assert plan.num_parts <= max(entities, parts)


def test_what_cannot_work_is_refused_with_what_would() -> None:
    with pytest.raises(InputError, match=r"3 parts of at most 7,500 entities cannot hold 30,000") as error:
        plan_division(30_000, 88_000, 3, 7_500)
    assert error.value.expected == "landmarks.cap of at least 10,300 or division.parts of at least 5"
    assert plan_division(30_000, 88_000, 3, 10_300)
    assert plan_division(30_000, 88_000, 5, 7_500)
    with pytest.raises(InputError, match="more parts than entities"):
        plan_division(10, 20, 11, None)


def test_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_gpu_memory_mb", lambda: 10_000.0)
    assert memory_budget("auto").mb == memory_budget("cuda").mb == 8_000
    monkeypatch.setattr(devices, "machine_memory_mb", lambda: 16_000.0)
    assert memory_budget("cpu").mb == 8_000
    monkeypatch.setattr(devices, "_gpu_memory_mb", lambda: None)
    assert memory_budget("auto").owner == "50% of the machine's 16,000 MB"
    with pytest.raises(InputError, match="no usable GPU"):
        memory_budget("cuda")
    monkeypatch.setattr(devices, "machine_memory_mb", lambda: None)
    assert memory_budget("auto").mb is None


@pytest.mark.parametrize(
    ("entities", "triples", "low", "high"),
    [(30_000, 88_000, 5, 5), (236_685, 783_241, 9, 14), (2_388_139, 12_419_375, 25, 45), (50, 100, 1, 1)],
)
def test_sizes_follow_the_paper(entities: int, triples: int, low: int, high: int) -> None:
    size = estimate_size(entities, triples)
    assert low <= size.num_parts <= high
    assert size.num_parts * size.cap >= entities


def test_less_memory_means_smaller_subgraphs() -> None:
    roomy, tight = estimate_size(2_388_139, 12_419_375, 64_000), estimate_size(2_388_139, 12_419_375, 3_000)
    assert not roomy.limited_by_memory
    assert tight.limited_by_memory
    assert tight.cap < roomy.cap
    assert tight.num_parts > roomy.num_parts
    assert tight.training_mb <= 3_000


def test_a_processor_is_slower_than_the_divisions() -> None:
    assert epochs_between_divisions(TrainSettings(repartition_every=2), 10**8, 10**4, on_gpu=False) == 2
    assert epochs_between_divisions(TrainSettings(repartition_every=0), 10**5, 10**4, on_gpu=True) == 0


def test_divisions_take_no_longer_than_what_they_serve() -> None:
    train = TrainSettings(epochs=24, batch_size=500, repartition_every=2)
    # 100,000 triples: 0.8 s a division, of which 30 s hold 37: as the setting says.
    assert epochs_between_divisions(train, 100_000, 5_000, on_gpu=True) == 2
    # A million: 8 s, 3 of them in 30 s: four divisions with the first, six epochs each.
    assert epochs_between_divisions(train, 1_000_000, 5_000, on_gpu=True) == 6
    # 5 million: 40 s. 24 epochs of 500 steps, 5 ms each, are 60 s: one more division.
    assert epochs_between_divisions(train, 5_000_000, 250_000, on_gpu=True) == 12
    # 10 million: 80 s, too long.
    assert epochs_between_divisions(train, 10_000_000, 250_000, on_gpu=True) == 0


@pytest.mark.parametrize(
    ("num_train", "num_valid", "seeds_from", "warning"),
    [
        (MIN_SEEDS, MIN_VALID_LINKS, "train", None),
        (MIN_SEEDS - 1, MIN_VALID_LINKS, "train", "49 seeds to train on"),
        (0, 1_000, "train", "there are no seeds"),
        (MIN_SEEDS, MIN_VALID_LINKS - 1, "train", "29 valid links that are not seeds"),
        (1_000, 0, "train", "0 valid links that are not seeds"),
        (5, 0, "train", "5 seeds to train on"),
        # Under the paper's protocol valid links are seeds, and none is left to calibrate by.
        (MIN_SEEDS - 20, 20, "train+valid", "0 valid links that are not seeds"),
        (MIN_SEEDS - 21, 20, "train+valid", "49 seeds to train on"),
        (1_000, 1_000, "train+valid", "0 valid links that are not seeds"),
    ],
)
def test_what_is_warned_of(num_train: int, num_valid: int, seeds_from: SeedsFrom, warning: str | None) -> None:
    found = seeds_warning(sized_task(3_000, num_train=num_train, num_valid=num_valid, num_test=500), seeds_from)
    if warning is None:
        assert found is None
    else:
        assert found is not None
        assert warning in found


def test_anchors_need_no_valid_links() -> None:
    found = sized_task(3_000).with_anchors(np.stack([np.arange(100), np.arange(3_000, 3_100)], axis=1))
    assert len(found.held_out()) < MIN_VALID_LINKS
    assert seeds_warning(found) is None


def test_the_warning_says_what_to_expect_and_what_to_do() -> None:
    few = seeds_warning(sized_task(100, num_train=5))
    assert few is not None
    assert "most pairs will be wrong" in few
    assert "Give more seeds" in few
    uncalibrated = seeds_warning(sized_task(1_000, num_train=100))
    assert uncalibrated is not None
    assert "not calibrated" in uncalibrated
    assert "more valid links" in uncalibrated
