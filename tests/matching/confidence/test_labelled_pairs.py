from __future__ import annotations

import numpy as np
import pytest

from largegnn.matching.confidence.labelled_pairs import Weights, label_pairs, learn_evidence
from tests.matching.confidence.synthetic_pairs import synthetic_pairs


def test_judged_by_hand() -> None:
    """Valid links 0-10 and 1-11; a right pair, a pair wrong at both ends, one wrong at its target, one not touched."""
    pairs = np.array([(0, 10), (1, 10), (5, 11), (6, 16)])
    labelled = label_pairs(pairs, np.array([(0, 10), (1, 11)]))
    assert labelled.rows.tolist() == [0, 1, 2]
    assert labelled.is_correct.tolist() == [True, False, False]
    assert labelled.is_linked.tolist() == [[True, True], [True, True], [False, True]]
    assert labelled.num_right == 1
    assert labelled.num_linked_in_wrong == (1, 2)
    assert labelled.sample_weight.tolist() == [1.0, 1.0, 0.5]


def test_nothing_to_judge() -> None:
    nothing = np.empty((0, 2), dtype=np.int64)
    for pairs, valid in ((nothing, nothing), (np.array([(0, 1)]), nothing), (nothing, np.array([(0, 1)]))):
        labelled = label_pairs(pairs, valid)
        assert len(labelled.rows) == 0
        assert labelled.num_linked_in_wrong == (0, 0)


def test_weights_stay_near_the_default_weights_until_there_is_something_to_learn() -> None:
    """Nothing is thought of the features; one labelled pair changes nothing, some a little, many much."""
    sums = []
    for num_valid in (1, 20, 600):
        drawn = synthetic_pairs(all_linked=True, num_valid=num_valid)
        labelled = label_pairs(drawn.pairs[drawn.best], drawn.valid)
        found = learn_evidence(drawn.features[drawn.best], labelled, Weights(np.zeros(3), -1.0))
        assert found.weights.features.min() >= 0
        sums.append(found.weights.features.sum())
    assert sums[0] == 0
    assert sums[0] < sums[1] < sums[2]


def test_the_evidence_of_a_labelled_pair_is_learnt_from_others() -> None:
    """Features that say nothing: by its own weights a right pair seems to have more of them, by others' it does not."""
    rng = np.random.default_rng(0)
    flattered: list[float] = []
    honest: list[float] = []
    for seed in range(20):
        drawn = synthetic_pairs(all_linked=True, num_valid=60, seed=seed)
        noise = rng.normal(size=(int(drawn.best.sum()), 12))
        labelled = label_pairs(drawn.pairs[drawn.best], drawn.valid)
        found = learn_evidence(noise, labelled, Weights(np.zeros(12), 0.0))
        for evidence, gaps in ((found.all[labelled.rows], flattered), (found.labelled, honest)):
            gaps.append(evidence[labelled.is_correct].mean() - evidence[~labelled.is_correct].mean())
    assert np.mean(flattered) > 0.2
    # Those left out are right more seldom where those that taught were right more often.
    assert np.mean(honest) == pytest.approx(0.0, abs=0.12)
