"""Real sets are aligned as well as they were: cheap runs against recorded ones, see `lab/benchmarks/guards.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.benchmarks import guards
from lab.lines import read_lines

RECORDED = read_lines(guards.RECORDS)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", guards.GUARDS)
def test_a_real_set_is_aligned_as_well_as_it_was(name: str, real_data: Callable[[str], Path]) -> None:
    guard = guards.GUARDS[name]
    found = guard.measure(real_data(guard.names[0]), guards.settings_of(guard, random_seed=0))
    recorded = [row["value"] for row in RECORDED if row["guard"] == name]
    assert len(recorded) >= 3
    assert found >= guards.bound(recorded), f"{guard.figure}; recorded: {recorded}"


def test_the_bound_by_hand() -> None:
    assert guards.bound([0.5, 0.6, 0.7]) == pytest.approx(0.5 - 0.1)
    assert guards.bound([0.5, 0.5, 0.5]) == pytest.approx(0.5 - 0.005)
