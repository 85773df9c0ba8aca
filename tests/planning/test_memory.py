"""The memory of a run beforehand: what each stage's estimate is made of."""

from __future__ import annotations

import pytest

from largegnn.artifacts import AlignmentTask, DivisionPlan
from largegnn.planning.memory import estimate_memory_mb
from largegnn.settings import PRESETS, Settings, resolve
from tests.planning.sized_tasks import sized_task

MB = 1024 * 1024
STAGES = ["load", "divide", "train", "integrate", "search", "match", "evaluate"]


def estimate(task: AlignmentTask, *overrides: str) -> dict[str, float]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    return estimate_memory_mb(task, settings, DivisionPlan(4, 1_000, "as the test says"))


def test_by_hand() -> None:
    """2^20 entities of both sides with 4 numbers each, 2^20 triples, 8 neighbours, 1,024 test links.

    In MB: vectors 4 x 6 x 4 = 96, rows and the optimiser's state 2 x 4 x 4 = 32, the graph 500 while training and 125
    after it, the test links' matrix 4, and 4 for all of it in one chunk of a search; 370 for a chunk of a search that
    needs several; the program 260, with PyTorch 620. Integration holds the rows (16), the vectors and their chunks,
    which are twice as large and within a sixteenth of 4 GB, and 250 bytes a triple. Matching takes 80 bytes for each of
    the 8 neighbours, 40 for a triple, and the vectors as long as they are few.
    """
    task = sized_task(MB // 2, num_triples=MB, num_test=1024)
    found = estimate(task, "train.dim=4", "search.k=8", "match.k=5", "match.csls_k=5")
    resident = 620 + 32 + 96 + 125
    assert found == pytest.approx(
        {
            "load": 260 + 120,
            "divide": 260 + 150,
            "train": 620 + 32 + 96 + 500,
            "integrate": 620 + 16 + 96 + 192 + 250,
            "search": resident + 370,
            "match": 620 + 96 + 60 * 8 + 40,
            "evaluate": resident + 4 + 4,
        }
    )
    assert list(found) == STAGES


def test_what_was_seen_on_a_real_pair() -> None:
    """EN_FR_15K_V1 on two cores: training 0.8 GB, search 1.1 GB, evaluation 1.3 GB."""
    found = estimate(sized_task(15_000, num_triples=88_198, num_train=3_000, num_valid=1_500, num_test=10_500))
    for stage, seen in (("train", 800), ("search", 1_100), ("evaluate", 1_300)):
        assert seen / 1.3 < found[stage] < 1.3 * seen


def test_matching_ten_million_a_side_does_not_count_vectors_that_are_given_back() -> None:
    """Seen on two cores: 15.7 GB at most; vectors as they are by default would take 30 GB on disk."""
    found = estimate(sized_task(10_000_000, num_triples=1_000), "search.k=12")["match"]
    assert 15_700 / 1.5 < found < 1.5 * 15_700


def test_more_of_anything_takes_no_less() -> None:
    least = estimate(sized_task(1_000, num_triples=5_000))
    for more in (
        estimate(sized_task(2_000, num_triples=5_000)),
        estimate(sized_task(1_000, num_triples=50_000)),
        estimate(sized_task(1_000, num_triples=5_000, num_test=500)),
        estimate(sized_task(1_000, num_triples=5_000), "train.dim=256"),
        estimate(sized_task(1_000, num_triples=5_000), "search.k=100"),
    ):
        assert all(more[stage] >= least[stage] for stage in STAGES)
        assert more != least


def test_all_scores_at_once_count_where_they_are_held_at_once() -> None:
    """31,000 test links are 3.8 GB of scores, within the 4 GB allowed; 32,000 are not, and are ranked piece by piece.

    Their vectors are then copied: both ends twice, 4 x 4 x 384 bytes a link.
    """
    small, large, larger = (
        estimate(sized_task(60_000, num_test=number))["evaluate"] for number in (31_000, 32_000, 59_000)
    )
    assert small > 4 * 31_000**2 / MB
    assert large < small - 3_000
    assert larger - large == pytest.approx(27_000 * 4 * 4 * 384 / MB)


def test_without_test_links_nothing_is_evaluated() -> None:
    found = estimate(sized_task(1_000, num_triples=5_000))
    assert found["evaluate"] < found["search"]


def test_a_search_keeps_the_bound_of_the_settings() -> None:
    task = sized_task(20_000)
    assert estimate(task)["search"] - estimate(task, "search.max_memory_gb=0.1")["search"] == pytest.approx(270)
