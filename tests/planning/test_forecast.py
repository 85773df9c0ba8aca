"""Test the dry run: sizes of the input, seconds and memory of each stage, and warnings."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.data.inputs import DataInput
from largegnn.errors import InputError
from largegnn.planning import forecast as module
from largegnn.planning.forecast import (
    Forecast,
    estimate_memory_mb,
    estimate_seconds,
    forecast,
)
from largegnn.planning.plan import plan_for
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import tiny_task
from tests.planning.sized_tasks import sized_task

SPEED = 1e11


@pytest.fixture(autouse=True)
def steady_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_measure_speed", lambda device: SPEED)
    monkeypatch.setattr(module, "available_memory_mb", lambda: 100_000.0)


def make(folder: Path, *overrides: str) -> Forecast:
    return forecast(DataInput(folder=folder), resolve(Settings, PRESETS, overrides=["device=cpu", *overrides]))


def test_sizes_by_hand(toy_folder: Path) -> None:
    found = make(toy_folder, "division.parts=2", "landmarks.cap=8")
    assert (found.source_entities, found.target_entities, found.triples) == (5, 6, 11)
    assert (found.seeds, found.valid_links) == (2, 1)
    assert (found.subgraphs, found.cap, found.reason) == (2, 8, "both given")
    stages = ["load", "divide", "train", "integrate", "search", "match", "evaluate"]
    assert list(found.seconds) == list(found.memory_mb) == stages
    assert found.peak_memory_mb == max(found.memory_mb.values())
    assert found.rows() == [
        ("source entities", "5"),
        ("target entities", "6"),
        ("triples", "11"),
        ("seeds", "2"),
        ("valid links", "1"),
        ("subgraphs", "2"),
        ("cap", "8"),
    ]


def test_the_protocol_decides_what_a_seed_is(toy_folder: Path) -> None:
    found = make(toy_folder, "protocol.seeds_from=train+valid")
    assert (found.seeds, found.valid_links) == (3, 0)


def test_estimates_are_those_of_the_task(toy_folder: Path, toy_task: AlignmentTask) -> None:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", "division.parts=2", "landmarks.cap=8"])
    plan = plan_for(toy_task, settings.division, settings.landmarks, settings.device)
    found = make(toy_folder, "division.parts=2", "landmarks.cap=8")
    memory = estimate_memory_mb(toy_task, settings)
    assert found.memory_mb == {stage: round(mb) for stage, mb in memory.items()}
    times = estimate_seconds(toy_task, settings, plan)
    assert found.seconds == {stage: round(time, 1) for stage, time in times.items()}


def test_plain_values(toy_folder: Path) -> None:
    found = make(toy_folder)
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["peak_memory_mb"] == found.peak_memory_mb
    assert plain["memory_mb"] == dict(found.memory_mb)
    assert plain["warnings"] == list(found.warnings)
    assert plain["source_entities"] == 5


def test_too_few_seeds_give_a_warning(toy_folder: Path) -> None:
    (warning,) = make(toy_folder).warnings
    assert "2 seeds to train on" in warning


def test_too_little_memory_gives_a_warning(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_memory_mb", lambda: 500.0)
    found = make(toy_folder)
    worst = max(found.memory_mb, key=lambda stage: found.memory_mb[stage])
    assert found.warnings[1].startswith(f"the stage {worst} needs about {found.peak_memory_mb:,.0f} MB")
    assert "500 MB are free" in found.warnings[1]
    monkeypatch.setattr(module, "available_memory_mb", lambda: None)
    assert len(make(toy_folder).warnings) == 1, "unknown memory gives no warning"


def test_what_cannot_be_run_is_refused(toy_folder: Path) -> None:
    with pytest.raises(InputError, match="more parts than entities"):
        make(toy_folder, "division.parts=12")


MB = 1024 * 1024
STAGES = ["load", "divide", "train", "integrate", "search", "match", "evaluate"]


def memory_of(task: AlignmentTask, *overrides: str) -> dict[str, float]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    return estimate_memory_mb(task, settings)


def test_memory_by_hand() -> None:
    """2^20 entities of both sides with 4 numbers each, 2^20 triples, 8 neighbours, 1,024 test links.

    In MB: vectors 4 x 6 x 4 = 96, rows and the optimiser's state 2 x 4 x 4 = 32, the graph 500 while training and 125
    after it, the test links' scores 4, and 4 again for a chunk of them; 370 for a chunk of a larger search; the program
    260, with PyTorch 620. Integration holds the rows (16), the vectors twice, and 250 bytes a triple. Matching takes 60
    bytes for each of the 8 neighbours, 40 for a triple, and the vectors as long as they are few.
    """
    task = sized_task(MB // 2, num_triples=MB, num_test=1024)
    found = memory_of(task, "train.dim=4", "search.k=8", "match.k=5", "match.csls_k=5")
    resident = 620 + 32 + 96 + 125
    assert found == pytest.approx(
        {
            "load": 260 + 120,
            "divide": 260 + 150,
            "train": 620 + 32 + 96 + 500,
            "integrate": 620 + 16 + 192 + 250,
            "search": resident + 370,
            "match": 620 + 96 + 60 * 8 + 40,
            "evaluate": resident + 4 + 4,
        }
    )
    assert list(found) == STAGES


def test_memory_measured_on_a_real_pair() -> None:
    """EN_FR_15K_V1 on two cores: training 0.8 GB, search 1.1 GB, evaluation 1.3 GB."""
    found = memory_of(sized_task(15_000, num_triples=88_198, num_train=3_000, num_valid=1_500, num_test=10_500))
    for stage, measured in (("train", 800), ("search", 1_100), ("evaluate", 1_300)):
        assert measured / 1.3 < found[stage] < 1.3 * measured


def test_matching_ten_million_a_side_does_not_count_vectors_that_are_given_back() -> None:
    """The measured peak on two cores is 15.7 GB; vectors of the default settings would take 30 GB on disk."""
    found = memory_of(sized_task(10_000_000, num_triples=1_000), "search.k=12")["match"]
    assert 15_700 / 1.5 < found < 1.5 * 15_700


def test_more_of_anything_takes_no_less() -> None:
    least = memory_of(sized_task(1_000, num_triples=5_000))
    for more in (
        memory_of(sized_task(2_000, num_triples=5_000)),
        memory_of(sized_task(1_000, num_triples=50_000)),
        memory_of(sized_task(1_000, num_triples=5_000, num_test=500)),
        memory_of(sized_task(1_000, num_triples=5_000), "train.dim=256"),
        memory_of(sized_task(1_000, num_triples=5_000), "search.k=100"),
    ):
        assert all(more[stage] >= least[stage] for stage in STAGES)
        assert more != least


def test_scores_of_test_links_stay_within_the_bound_of_the_settings() -> None:
    """31,000 test links are 3.8 GB of scores, within the 4 GB allowed; 59,000 are not."""
    small, large = (memory_of(sized_task(60_000, num_test=number))["evaluate"] for number in (31_000, 59_000))
    assert small > 4 * 31_000**2 / MB
    assert large < small + 500


def test_without_test_links_nothing_is_evaluated() -> None:
    found = memory_of(sized_task(1_000, num_triples=5_000))
    assert found["evaluate"] < found["search"]


def test_a_search_keeps_the_bound_of_the_settings() -> None:
    task = sized_task(20_000)
    assert memory_of(task)["search"] - memory_of(task, "search.max_memory_gb=0.1")["search"] == pytest.approx(270)


def seconds_of(task: AlignmentTask, *overrides: str) -> dict[str, float]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    return estimate_seconds(task, settings, DivisionPlan(4, 1_000, "as the test says"))


def test_every_long_stage_has_seconds() -> None:
    seconds = seconds_of(tiny_task())
    assert list(seconds) == ["load", "divide", "train", "integrate", "search", "match", "evaluate"]
    assert all(value > 0 for value in seconds.values())


def test_rounds_train_search_and_match_again() -> None:
    once, more = seconds_of(tiny_task()), seconds_of(tiny_task(), "rounds.number=2", "rounds.epochs=25")
    for stage in ("train", "integrate"):
        assert more[stage] == pytest.approx(3 * once[stage])
    # Searches before the first round, after both rounds, and at the end.
    for stage in ("search", "match"):
        assert more[stage] == pytest.approx(4 * once[stage])
    assert more["evaluate"] == once["evaluate"]


def test_without_test_links_evaluation_takes_no_time() -> None:
    task = tiny_task()
    assert seconds_of(dataclasses.replace(task, test_links=task.test_links[:0]))["evaluate"] == 0


def test_an_exact_search_grows_with_the_square_and_an_approximate_one_does_not() -> None:
    small, twice = seconds_of(sized_task(20_000))["search"], seconds_of(sized_task(40_000))["search"]
    assert twice == pytest.approx(4 * small, rel=0.01)
    million, two = seconds_of(sized_task(1_000_000))["search"], seconds_of(sized_task(2_000_000))["search"]
    assert two == pytest.approx(2**1.5 * million, rel=0.01)
    exact = 4 * 1e12 * 384 / SPEED
    assert million < exact / 5
