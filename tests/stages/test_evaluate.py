"""The stage `evaluate`: figures worked out by hand, and the two ends of the scale."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from largegnn import evaluating
from largegnn.aligning import match, search
from largegnn.artifacts import Alignment, AlignmentTask, EntityEmbeddings
from largegnn.evaluating import evaluate
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import noisy_vectors, tiny_task

CPU = torch.device("cpu")
DECODINGS = ("cosine", "csls", "transport", "csls+support", "transport+support")


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return tiny_task()


def settings_of(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])


def judge(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, alignment: Alignment | None = None
) -> dict[str, Any]:
    near_targets, near_sources, _ = search(task, embeddings, settings, CPU, seed=0)
    if alignment is None:
        alignment, _ = match(task, embeddings, near_targets, near_sources, settings, CPU)
    return evaluate(task, embeddings, alignment, near_targets, near_sources, settings, CPU)


def all_measures(report: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {decoding: report["ideal"][decoding]["mean"] for decoding in report["ideal"]}


@pytest.fixture
def angled() -> EntityEmbeddings:
    """The toy pair's free entities by their angle: b 0, d 40, e 90; B 0, D 45, E 60, F 88 degrees; the seeds at 200.

    Ideal: d is nearest to D, e to E (F is no candidate); D is nearest to d, but E is nearer to d (20) than to e (30).
    Real: b - B are each other's nearest, which is a valid link; d - D, right; e - F, wrong, as E is further from e.
    """
    angles = np.radians([200, 0, 200, 40, 90, 200, 0, 200, 45, 60, 88])
    return EntityEmbeddings(np.stack([np.cos(angles), np.sin(angles)], axis=1), np.ones(11, dtype=bool))


@pytest.fixture
def decided() -> Alignment:
    """b - B, d - D and e - F are put out, e - E is a second choice that is not."""
    numbers = np.array([0.95, 0.92, 0.3, 0.9], dtype=np.float32)
    return Alignment(
        pairs=np.array([(1, 6), (3, 8), (4, 9), (4, 10)]),
        cosines=numbers,
        scores=numbers,
        margins=numbers,
        source_ranks=np.array([1, 1, 2, 1]),
        target_ranks=np.array([1, 1, 1, 1]),
        confidence=numbers,
        accepted=np.array([True, True, False, True]),
        reasons=np.zeros(11),
    )


def test_a_report_by_hand(toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment) -> None:
    report = judge(toy_task, angled, settings_of("match.support_weight=0"), decided)
    assert set(report["ideal"]) == {"cosine", "csls", "transport"}
    assert report["ideal"]["cosine"] == {
        "source_to_target": {"hits@1": 1.0, "hits@5": 1.0, "hits@10": 1.0, "mrr": 1.0},
        "target_to_source": {"hits@1": 0.5, "hits@5": 1.0, "hits@10": 1.0, "mrr": 0.75},
        "mean": {"hits@1": 0.75, "hits@5": 1.0, "hits@10": 1.0, "mrr": 0.875},
    }
    # Balanced, e has no one else to be: the plan pairs d - D and e - E.
    assert report["ideal"]["transport"]["mean"]["hits@1"] == 1.0
    real = report["real"]
    half = {"precision": 0.5, "recall": 0.5, "f1": 0.5, "pairs": 2}
    assert real["mutual_top1"] == half, "the valid link counts neither way"
    assert real["threshold"] == real["decoding_mutual_top1"] == half
    # Three sources, four targets, all among each other's five nearest: twelve pairs less the valid link, two right.
    every = real["mutual_5nn"]
    assert every == {"precision": 2 / 11, "recall": 1.0, "f1": 4 / 13, "pairs": 11}
    table = report["reliability"]
    assert [row["pairs"] for row in table] == [0] * 9 + [2]
    assert table[9]["right"] == 0.5
    protocol = report["protocol"]
    assert protocol["num_test_links"] == 2
    assert protocol["seed_share"] == 2 / 5
    assert protocol["seeds_from"] == "train"
    assert protocol["rounds"] == 0


def test_valid_links_that_are_seeds_take_no_part(
    toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment
) -> None:
    paper = settings_of("match.support_weight=0", "protocol.seeds_from=train+valid")
    without = dataclasses.replace(decided, accepted=np.array([False, True, False, True]))
    report = judge(toy_task, angled, paper, without)
    assert report["real"]["mutual_top1"] == {"precision": 0.5, "recall": 0.5, "f1": 0.5, "pairs": 2}
    # Two sources and three targets are left.
    assert report["real"]["mutual_5nn"] == {"precision": 2 / 6, "recall": 1.0, "f1": 4 / 8, "pairs": 6}
    assert report["protocol"]["seed_share"] == 3 / 5


def test_without_test_links_there_is_nothing_to_say(toy_task: AlignmentTask, angled: EntityEmbeddings) -> None:
    report = judge(dataclasses.replace(toy_task, test_links=toy_task.test_links[:0]), angled, settings_of())
    assert report.pop("protocol")["num_test_links"] == 0
    assert report == {"ideal": None, "real": None, "reliability": None}


def test_perfect_vectors_are_perfect_in_every_decoding(task: AlignmentTask) -> None:
    report = judge(task, noisy_vectors(task, 0.0), settings_of())
    assert set(report["ideal"]) == set(DECODINGS)
    perfect = {"hits@1": 1.0, "hits@5": 1.0, "hits@10": 1.0, "mrr": 1.0}
    assert all_measures(report) == dict.fromkeys(DECODINGS, perfect)
    for name in ("mutual_top1", "csls_mutual_top1", "decoding_mutual_top1", "threshold"):
        assert report["real"][name]["recall"] == 1.0
    assert report["real"]["threshold"]["precision"] > 0.85


def test_one_point_for_all_is_worth_nothing(task: AlignmentTask) -> None:
    """Without triples there is no support either: ties count against us in every decoding."""
    bare = dataclasses.replace(task, triples=task.triples[:0])
    point = np.random.default_rng(0).normal(size=(1, 16)).astype(np.float32).repeat(task.num_entities, axis=0)
    report = judge(bare, EntityEmbeddings(point, np.ones(task.num_entities, dtype=bool)), settings_of())
    for decoding, measures in all_measures(report).items():
        assert measures["hits@10"] == 0.0, decoding
        assert measures["mrr"] <= 1 / 50, decoding
    for name in ("mutual_top1", "csls_mutual_top1", "decoding_mutual_top1", "threshold"):
        assert (report["real"][name]["f1"] or 0.0) < 0.05


def test_support_and_transport_help_noisy_vectors(task: AlignmentTask) -> None:
    measures = all_measures(judge(task, noisy_vectors(task, 1.0), settings_of()))
    assert 0.2 < measures["cosine"]["hits@1"] < 0.95
    assert measures["transport"]["hits@1"] > measures["cosine"]["hits@1"]
    assert measures["csls+support"]["hits@1"] > measures["csls"]["hits@1"]
    assert measures["transport+support"]["hits@1"] > measures["transport"]["hits@1"]


@pytest.mark.parametrize("number", [1, 9])
@pytest.mark.parametrize("how", ["uncovered", "zeros"])
def test_what_has_no_vector_is_a_miss_in_every_decoding(task: AlignmentTask, how: str, number: int) -> None:
    embeddings = noisy_vectors(task, 0.0)
    lost = np.zeros(task.num_entities, dtype=bool)
    lost[task.test_links[:number].ravel()] = True
    vectors = np.where(lost[:, None], 0.0, embeddings.vectors)
    report = judge(task, EntityEmbeddings(vectors, ~lost if how == "uncovered" else embeddings.covered), settings_of())
    for decoding, measures in all_measures(report).items():
        assert measures["hits@1"] == pytest.approx(1 - number / len(task.test_links)), decoding


def test_transport_over_candidates_is_nearly_transport_over_all(
    task: AlignmentTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    embeddings = noisy_vectors(task, 0.8)
    dense = judge(task, embeddings, settings_of())
    monkeypatch.setattr("largegnn.matching.dense._MOST_ROWS", 10)
    sparse = judge(task, embeddings, settings_of())
    assert all_measures(sparse)["transport"]["hits@1"] == pytest.approx(
        all_measures(dense)["transport"]["hits@1"], abs=0.03
    )
    for plain in ("cosine", "csls"):
        assert sparse["ideal"][plain] == dense["ideal"][plain], "ranked in chunks or from one matrix"
    assert sparse["protocol"]["num_ranked_links"] == len(task.test_links)


def test_too_much_work_is_done_for_a_sample_of_the_links(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = noisy_vectors(task, 0.8)
    whole = judge(task, embeddings, settings_of())
    monkeypatch.setattr("largegnn.matching.dense._MOST_ROWS", 10)
    monkeypatch.setitem(evaluating.MOST_PRODUCTS, "cpu", 0)
    monkeypatch.setattr(evaluating, "_LEAST_RANKED", len(task.test_links) // 2)
    sampled = judge(task, embeddings, settings_of())
    assert sampled["protocol"]["num_ranked_links"] == len(task.test_links) // 2
    for plain in ("cosine", "csls"):
        measured, true = sampled["ideal"][plain]["mean"]["mrr"], whole["ideal"][plain]["mean"]["mrr"]
        assert measured == pytest.approx(true, abs=0.08)
        assert measured != true, "half of the links cannot have the very same mean"
