from __future__ import annotations

import numpy as np
import pytest

from largegnn.matching.confidence.link_count import estimate_links
from tests.matching.confidence.synthetic_pairs import synthetic_pairs


@pytest.mark.parametrize("num_valid", [50, 250, 900])
def test_known_links_like_all_entities_say_that_all_have_a_counterpart(num_valid: int) -> None:
    shares = []
    for seed in range(6):
        links = synthetic_pairs(all_linked=True, num_valid=num_valid, seed=seed).count_links()
        assert links.values[-1] == 3_900  # all but the hundred seeds
        shares.append(links.weights[-1])
    assert np.mean(shares) > 0.5


@pytest.mark.parametrize("num_valid", [50, 250, 900])
def test_known_links_of_well_known_entities_say_that_others_have_none(num_valid: int) -> None:
    ratios = []
    for seed in range(6):
        drawn = synthetic_pairs(all_linked=False, num_valid=num_valid, seed=seed)
        assert drawn.num_links < 2_100
        ratios.append(drawn.count_links().mean / drawn.num_links)
    assert 0.75 < np.mean(ratios) < 1.35
    assert np.std(ratios) < 0.3


def test_it_is_a_distribution() -> None:
    links = synthetic_pairs(all_linked=False, num_valid=80).count_links()
    assert links.weights.sum() == pytest.approx(1.0)
    assert links.weights.min() >= 0
    assert (np.diff(links.values) >= 0).all()
    assert links.values[0] >= 81  # the valid links and one more
    assert links.values[0] < links.mean < links.values[-1]


def test_the_smaller_graph_bounds_the_links() -> None:
    """Ten sources, a thousand targets: ten links at most, seven of them no seeds."""
    degrees = np.concatenate([np.full(10, 4), np.arange(1_000) % 7 + 1])
    known = np.stack([np.arange(5), 10 + np.arange(5) * 100], axis=1)
    links = estimate_links(degrees, 10, known, num_seeds=3, num_free=(7, 997))
    assert links.values.max() == 7
    assert links.values.min() >= 3


def test_nothing_known_and_nothing_there() -> None:
    nothing = np.empty((0, 2), dtype=np.int64)
    links = estimate_links(np.arange(40), 20, nothing, 0, (20, 20))
    assert links.weights.sum() == pytest.approx(1.0)
    assert links.mean > 10
    assert estimate_links(np.arange(0), 0, nothing, 0, (0, 0)).mean == 0
