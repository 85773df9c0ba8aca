"""Weights learnt from what is sure, a regression without negative weights, decoys, anchors, contributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from largegnn.artifacts import CandidateGraph, FloatArray, are_among
from largegnn.matching.anchors import find_anchors
from largegnn.matching.candidates import preferred
from largegnn.matching.confidence.decoys import Decoys, confidence_by_decoys, estimate_by_decoys
from largegnn.matching.confidence.logistic import fit_logistic
from largegnn.matching.evidence import Weighing, contributions
from largegnn.matching.evidence_weights import Floats, learn_weights, localised


def world(count: int = 400, linked: int = 300, each: int = 10) -> tuple[CandidateGraph, Floats, Floats]:
    """`each` candidates a source; the right one, where there is one, has a high `literal`; a second view is noise."""
    rng = np.random.default_rng(0)
    sources = np.repeat(np.arange(count), each)
    targets = (sources + np.tile(np.arange(each) * 37, count)) % count + count
    order = np.lexsort((targets, sources))
    sources, targets = sources[order], targets[order]
    right = (targets - count == sources) & (sources < linked)
    telling = np.clip(rng.normal(np.where(right, 0.8, 0.3), 0.08), 0, 1)
    noise = rng.random(len(sources))
    none = np.zeros(len(sources), dtype=np.float32)
    columns = {"agreement": none, "contradiction": none, "literal": telling.astype(np.float32)}
    return CandidateGraph(sources, targets, columns), np.stack([telling, noise], axis=1), right


@pytest.mark.parametrize("is_known", [True, False])
def test_noise_gets_no_weight(is_known: bool) -> None:
    graph, evidence, right = world()
    weights = learn_weights(graph, evidence, np.array([1.0, 1.0]), right.astype(bool) if is_known else None)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] > 0.95
    assert weights[1] >= 0


def test_too_little_to_learn_from_leaves_the_weights() -> None:
    graph, evidence, _ = world(count=20, linked=0)
    start = np.array([3.0, 1.0])
    few = np.zeros(len(graph), dtype=bool)
    few[:3] = True
    assert learn_weights(graph, evidence, start, few).tolist() == [0.75, 0.25]


def test_csls_of_the_candidates_against_a_loop() -> None:
    graph, evidence, _ = world(count=30, linked=30)
    scores = evidence[:, 0]
    found = localised(graph, scores, 3)
    for edge, (source, target) in enumerate(graph.pairs().tolist()):
        near = [
            np.sort(scores[ends == end])[::-1][:3].sum() / 3
            for ends, end in ((graph.sources, source), (graph.targets, target))
        ]
        assert found[edge] == pytest.approx(2 * scores[edge] - sum(near))


def test_the_regression_finds_the_line_and_no_negative_weight() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, 3))
    right = (rng.random(20_000) < special.expit(features @ [2.0, 0.5, -1.0] - 0.7)).astype(float)
    free = np.full(4, np.inf)
    found = fit_logistic(features, right, np.ones(20_000), np.zeros(4), free)
    assert found[2] == 0.0
    assert found[0] > found[1] > 0
    held = fit_logistic(features, right, np.ones(20_000), np.array([1.0, 1.0, 1.0, 0.0]), np.full(4, 1e-6))
    assert held == pytest.approx([1.0, 1.0, 1.0, 0.0], abs=1e-3)


def test_decoys_tell_how_many_are_wrong() -> None:
    """700 right pairs well above 300 wrong ones that score like decoys."""
    rng = np.random.default_rng(0)
    right, wrong = rng.normal(2, 0.3, 700), rng.normal(0, 0.3, 300)
    confidence = confidence_by_decoys(
        np.concatenate([right, wrong]), Decoys(rng.normal(0, 0.3, 1_000).astype(np.float32), 1_000)
    )
    assert confidence is not None
    assert confidence.sum() == pytest.approx(700, rel=0.1)
    assert confidence[:700].mean() > 0.95
    assert confidence[700:].mean() < 0.15
    assert confidence_by_decoys(right[:10], Decoys(wrong.astype(np.float32), 300)) is None


@pytest.mark.parametrize("each", [20, 27])
def test_what_the_decoys_expect_is_true(each: int) -> None:
    graph, _, right = world(count=1_000, linked=600, each=each)

    def score(graph: CandidateGraph) -> FloatArray:
        return localised(graph, graph.column("literal").astype(np.float64), 5).astype(np.float32)

    best = preferred(graph, score(graph), 1.0)[0]
    estimate = estimate_by_decoys(graph, score(graph), best, np.ones(len(best), dtype=bool), score)
    assert estimate is not None
    threshold = estimate.choose_threshold(np.ones(len(best), dtype=bool), 0.0, "f1")
    accepted = estimate.confidence >= threshold.threshold
    assert threshold.expected_precision == pytest.approx(right[best][accepted].mean(), abs=0.05)
    assert threshold.precision_low is not None
    assert threshold.precision_high is not None
    assert threshold.expected_precision is not None
    assert threshold.precision_low <= threshold.expected_precision <= threshold.precision_high
    asked = estimate.choose_threshold(np.ones(len(best), dtype=bool), 0.999, "f1")
    assert asked.num_pairs <= threshold.num_pairs


def test_anchors_are_right_and_contradict_nothing() -> None:
    graph, _, right = world()
    anchors, confidence = find_anchors(graph)
    links = graph.pairs(np.flatnonzero(right))
    assert len(anchors) > 200
    assert are_among(anchors, links).mean() > 0.97
    assert (np.diff(confidence) <= 0).all()
    spoken_against = np.zeros(len(graph))
    spoken_against[graph.find(anchors[:50])] = 5.0
    fewer, _ = find_anchors(graph.with_evidence(contradiction=spoken_against))
    assert not are_among(anchors[:50], fewer).any()
    nothing = np.empty(0, dtype=np.float32)
    columns = dict.fromkeys(("agreement", "contradiction", "literal"), nothing)
    assert find_anchors(CandidateGraph(np.empty(0), np.empty(0), columns))[0].shape == (0, 2)


def test_contributions_add_up_to_the_score() -> None:
    evidence = {"cosine": 0.8, "csls": 0.5, "support": 2.0}
    found = contributions(evidence, 1.1, Weighing("csls", {"support": 0.15}))
    assert found == pytest.approx({"cosine": 1.6, "support": 0.6, "rivals": -1.1})
    named = evidence | {
        "name": 0.9,
        "text": 0.5,
        "agreement": 3.0,
        "contradiction": 1.0,
        "literal": 0.74,
        "similarity": 0.7,
    }
    options = Weighing("csls", {"support": 0.15}, {"cosine": 0.5, "literal": 1.0}, {"name": 0.5, "text": 0.5}, 0.02)
    found = contributions(named, 1.0, options)
    parts = {"cosine": 0.8, "name": 0.45, "text": 0.25, "agreement": 0.06, "contradiction": -0.02, "support": 0.6}
    assert found == pytest.approx(parts | {"rivals": 1.0 - sum(parts.values())})
    assert "rivals" not in contributions(evidence, -3.0, Weighing("transport", {}))
