"""The estimate of `--dry-run`: what it is made of, not how right it is."""

from __future__ import annotations

import dataclasses

import pytest

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.planning import seconds as timing
from largegnn.planning.seconds import estimate_seconds, longest_search_seconds
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import tiny_task
from tests.planning.sized_tasks import sized_task

SPEED = 1e11


def estimate(task: AlignmentTask, *overrides: str) -> dict[str, float]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    return estimate_seconds(task, settings, DivisionPlan(4, 1_000, "as the test says"))


@pytest.fixture(autouse=True)
def steady_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_speed", lambda device: SPEED)


def test_every_long_stage_has_seconds() -> None:
    seconds = estimate(tiny_task())
    assert list(seconds) == ["load", "divide", "train", "integrate", "search", "match", "evaluate"]
    assert all(value > 0 for value in seconds.values())


def test_rounds_train_search_and_match_again() -> None:
    once, more = estimate(tiny_task()), estimate(tiny_task(), "rounds.number=2", "rounds.epochs=25")
    for stage in ("train", "integrate"):
        assert more[stage] == pytest.approx(3 * once[stage])
    # Before the first round, after each of the two, and in the end.
    for stage in ("search", "match"):
        assert more[stage] == pytest.approx(4 * once[stage])
    assert more["evaluate"] == once["evaluate"]


def test_without_test_links_nothing_is_evaluated() -> None:
    task = tiny_task()
    assert estimate(dataclasses.replace(task, test_links=task.test_links[:0]))["evaluate"] == 0


def test_an_exact_search_grows_with_the_square_and_an_approximate_one_does_not() -> None:
    small, twice = estimate(sized_task(20_000))["search"], estimate(sized_task(40_000))["search"]
    assert twice == pytest.approx(4 * small, rel=0.01)
    million, two = estimate(sized_task(1_000_000))["search"], estimate(sized_task(2_000_000))["search"]
    assert two == pytest.approx(2**1.5 * million, rel=0.01)
    exact = 4 * 1e12 * 384 / SPEED
    assert million < exact / 5


def test_an_approximate_search_may_become_exact_unless_that_takes_hours() -> None:
    """100,000 a side less one seed: 4 x 99,999^2 x 384 operations at nine tenths of the speed."""
    settings = resolve(Settings, PRESETS, overrides=["device=cpu"])
    exact = 4 * 99_999**2 * 384 / (0.9 * SPEED)
    assert longest_search_seconds(sized_task(100_000), settings) is None, "small enough to be exact at once"
    at_300k = longest_search_seconds(sized_task(300_000), settings)
    assert at_300k == pytest.approx(9 * exact, rel=0.01)
    assert longest_search_seconds(sized_task(1_000_000), settings) is None, "never handed over"
    exactly = resolve(Settings, PRESETS, overrides=["device=cpu", "search.method=torch"])
    assert longest_search_seconds(sized_task(300_000), exactly) is None
