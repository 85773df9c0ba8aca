"""The warning before training: too few seeds, or too few links to calibrate by."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import SeedsFrom
from largegnn.planning.seeds import FEWEST_SEEDS, FEWEST_VALID_LINKS, seeds_warning
from tests.planning.sized_tasks import sized_task


@pytest.mark.parametrize(
    ("num_train", "num_valid", "seeds_from", "warning"),
    [
        (FEWEST_SEEDS, FEWEST_VALID_LINKS, "train", None),
        (FEWEST_SEEDS - 1, FEWEST_VALID_LINKS, "train", "49 seeds to train on"),
        (0, 1_000, "train", "there are no seeds"),
        (FEWEST_SEEDS, FEWEST_VALID_LINKS - 1, "train", "29 valid links that are no seeds"),
        (1_000, 0, "train", "0 valid links that are no seeds"),
        (5, 0, "train", "5 seeds to train on"),
        # Under the paper's protocol valid links are seeds, and none is left to calibrate by.
        (FEWEST_SEEDS - 20, 20, "train+valid", "0 valid links that are no seeds"),
        (FEWEST_SEEDS - 21, 20, "train+valid", "49 seeds to train on"),
        (1_000, 1_000, "train+valid", "0 valid links that are no seeds"),
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
    assert len(found.held_out()) < FEWEST_VALID_LINKS
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
