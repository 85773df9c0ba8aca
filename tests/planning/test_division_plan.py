"""The plan of a division: what the settings say, and what follows where they say auto."""

from __future__ import annotations

import pytest

from largegnn.artifacts import DivisionPlan
from largegnn.errors import InputError
from largegnn.machine import devices
from largegnn.planning.division_plan import plan_for
from largegnn.planning.sizes import plan_division
from largegnn.settings import DivisionSettings, LandmarkSettings
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
