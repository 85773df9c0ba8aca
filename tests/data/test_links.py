from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from largegnn.data.links import num_held_out, split_links


@pytest.mark.parametrize(
    ("num_seeds", "share", "expected"),
    [
        (100, 0.0, 0),
        (100, 0.25, 25),
        (0, "auto", 0),
        (5, "auto", 0),
        (89, "auto", 9),  # a third would be 29, too few for calibration
        (90, "auto", 30),
        (100, "auto", 33),
        (300, "auto", 100),
        (750, "auto", 250),
        (1_000, "auto", 250),
        (2_500, "auto", 250),
        (10_000, "auto", 1_000),
    ],
)
def test_how_many_seeds_are_held_out(num_seeds: int, share: float | Literal["auto"], expected: int) -> None:
    assert num_held_out(num_seeds, share) == expected
    links = np.stack([np.arange(num_seeds), num_seeds + np.arange(num_seeds)], axis=1)
    kept, held = split_links(links, share)
    assert len(held) == expected
    np.testing.assert_array_equal(np.sort(np.concatenate([kept, held])[:, 0]), links[:, 0])


def test_more_seeds_never_mean_fewer_to_train_on_from_ninety_on() -> None:
    kept = [number - num_held_out(number, "auto") for number in range(90, 4_000)]
    assert (np.diff(kept) >= 0).all()
