from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.errors import InputError
from largegnn.machine import devices
from largegnn.machine.devices import memory_budget
from largegnn.planning.sizes import estimate_size, plan_division


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
    with pytest.raises(InputError, match="no GPU"):
        memory_budget("cuda")
    monkeypatch.setattr(devices, "machine_memory_mb", lambda: None)
    assert memory_budget("auto").mb is None
