"""Many workers on few subgraphs give a warning with a fix."""

from __future__ import annotations

import pytest

from largegnn.cluster import training


@pytest.mark.parametrize(("workers", "subgraphs", "is_warned"), [(16, 32, True), (16, 128, False), (2, 5, False)])
def test_few_subgraphs_for_many_workers_are_warned_of(
    caplog: pytest.LogCaptureFixture, workers: int, subgraphs: int, is_warned: bool
) -> None:
    training._warn_of_staleness(workers, subgraphs)
    assert bool(caplog.records) == is_warned
    if is_warned:
        assert "16 workers share 32 subgraphs" in caplog.text
        assert "division.parts" in caplog.text
