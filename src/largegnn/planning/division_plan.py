"""How many parts a task is divided into and how large they may grow, from the settings, the task and the device."""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.machine.devices import memory_budget
from largegnn.planning.sizes import plan_division
from largegnn.settings import DivisionSettings, LandmarkSettings

__all__ = ["plan_for"]


def plan_for(task: AlignmentTask, division: DivisionSettings, landmarks: LandmarkSettings, device: str) -> DivisionPlan:
    """How many parts and how large, from the settings and, where they say auto, from the task and the device."""
    parts, cap = division.parts, landmarks.cap if landmarks.enabled else "auto"
    if parts != "auto" or cap != "auto":
        known_parts, known_cap = (None if isinstance(value, str) else value for value in (parts, cap))
        return plan_division(task.num_entities, len(task.triples), known_parts, known_cap)
    budget = memory_budget(device)
    return plan_division(task.num_entities, len(task.triples), None, None, budget.mb, budget.owner)
