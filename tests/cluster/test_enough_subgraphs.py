"""Many workers on few subgraphs: said once, with what to do."""

from __future__ import annotations

import pytest

from largegnn.cluster import visits


@pytest.mark.parametrize(("workers", "subgraphs", "is_said"), [(16, 32, True), (16, 128, False), (2, 5, False)])
def test_few_subgraphs_for_many_workers_are_said(
    caplog: pytest.LogCaptureFixture, workers: int, subgraphs: int, is_said: bool
) -> None:
    visits._warn_of_staleness(workers, subgraphs)
    assert bool(caplog.records) == is_said
    if is_said:
        assert "16 workers share 32 subgraphs" in caplog.text
        assert "division.parts" in caplog.text
