"""The stage `evaluate`: figures worked out by hand, and the two ends of the scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    Evaluation,
    LiteralEvidence,
    PairFigures,
    Partition,
    RankFigures,
)
from largegnn.evaluation.evaluate import evaluate
from largegnn.evaluation.metrics import MAX_MULTIPLICATIONS
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import noisy_vectors, tiny_task

SCORINGS = ("cosine", "csls", "transport", "csls+rules", "transport+rules")


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return tiny_task()


def settings_of(*overrides: str) -> Settings:
    return resolve(Settings, PRESETS, overrides=["device=cpu", "channels=structure,rules", *overrides])


def judge(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, alignment: Alignment | None = None
) -> Evaluation:
    near = api.search(task, embeddings, settings)
    if alignment is None:
        alignment, _ = api.match(task, embeddings, near, settings)
    one_part = Partition(task.num_entities, np.arange(task.num_entities), np.array([0, task.num_entities]))
    return evaluate(
        task,
        embeddings,
        alignment,
        *near,
        one_part,
        LiteralEvidence.empty(),
        settings.data,
        settings.protocol,
        settings.channels,
        settings.match,
        settings.rounds,
        settings.evaluate,
        settings.search,
        settings.seed,
        device="cpu",
    ).outcome


def ideal_of(report: Evaluation) -> Mapping[str, RankFigures]:
    assert report.ideal is not None
    return report.ideal


def real_of(report: Evaluation) -> Mapping[str, PairFigures]:
    assert report.real is not None
    return report.real


def all_measures(report: Evaluation) -> dict[str, dict[str, float]]:
    return {
        scoring: {name: value for name, value in figures.mean.items() if value is not None}
        for scoring, figures in ideal_of(report).items()
    }


def complete(figures: PairFigures) -> tuple[float | None, float | None, float | None, int]:
    """Precision, recall, F1 and pairs, where every pair that is no test link is wrong."""
    return figures.precision, figures.recall, figures.f1, figures.pairs


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
    """b - B, d - D and e - F are accepted, e - E is a second choice that is not."""
    numbers = np.array([0.95, 0.92, 0.3, 0.9], dtype=np.float32)
    return Alignment(
        pairs=np.array([(1, 6), (3, 8), (4, 9), (4, 10)]),
        columns=("cosine",),
        evidence=numbers[None],
        scores=numbers,
        margins=numbers,
        source_ranks=np.array([1, 1, 2, 1]),
        target_ranks=np.array([1, 1, 1, 1]),
        confidence=numbers,
        accepted=np.array([True, True, False, True]),
        reasons=np.zeros(11),
    )


def test_a_report_by_hand(toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment) -> None:
    report = judge(toy_task, angled, settings_of("channels=structure"), decided)
    ideal, real = ideal_of(report), real_of(report)
    assert set(ideal) == {"cosine", "csls", "transport"}
    assert ideal["cosine"] == RankFigures(
        source_to_target={"hits@1": 1.0, "hits@5": 1.0, "hits@10": 1.0, "mrr": 1.0},
        target_to_source={"hits@1": 0.5, "hits@5": 1.0, "hits@10": 1.0, "mrr": 0.75},
        mean={"hits@1": 0.75, "hits@5": 1.0, "hits@10": 1.0, "mrr": 0.875},
    )
    # Balanced, e has no one else to be: the plan pairs d - D and e - E.
    assert ideal["transport"].mean["hits@1"] == 1.0
    half = (0.5, 0.5, 0.5, 2)
    assert set(real) == {"mutual_5nn", "mutual_top1", "csls_mutual_top1", "scoring_mutual_top1", "accepted"}
    assert complete(real["mutual_top1"]) == half, "the valid link counts neither way"
    assert complete(real["accepted"]) == complete(real["scoring_mutual_top1"]) == half
    # Three sources, four targets, all among each other's five nearest: twelve pairs less the valid link, two right.
    assert complete(real["mutual_5nn"]) == (2 / 11, 1.0, 4 / 13, 11)
    table = report.reliability
    assert table is not None
    assert [row.pairs for row in table] == [0] * 9 + [2]
    assert table[9].right == 0.5
    assert report.test_kept == 1.0
    protocol = report.protocol
    assert protocol.num_test_links == 2
    assert protocol.seed_share == 2 / 5
    assert protocol.seeds_from == "train"
    assert protocol.rounds == 0
    assert protocol.channels == ("structure",)


def test_evidence_without_weight_adds_no_rows(
    toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment
) -> None:
    report = judge(toy_task, angled, settings_of("match.weights.support=0"), decided)
    assert set(ideal_of(report)) == {"cosine", "csls", "transport"}


def test_valid_links_that_are_seeds_take_no_part(
    toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment
) -> None:
    paper = settings_of("match.weights.support=0", "protocol.seeds_from=train+valid")
    without = dataclasses.replace(decided, accepted=np.array([False, True, False, True]))
    report = judge(toy_task, angled, paper, without)
    assert complete(real_of(report)["mutual_top1"]) == (0.5, 0.5, 0.5, 2)
    # Two sources and three targets are left.
    assert complete(real_of(report)["mutual_5nn"]) == (2 / 6, 1.0, 4 / 8, 6)
    assert report.protocol.seed_share == 3 / 5


def test_a_part_of_the_truth_judges_what_it_touches(
    toy_task: AlignmentTask, angled: EntityEmbeddings, decided: Alignment
) -> None:
    """With d - D alone as truth, e - F is neither right nor wrong."""
    whole = judge(toy_task, angled, settings_of(), decided)
    assert whole.protocol.gold == "full", "d and e, the only free sources, both have a test link"
    part = judge(dataclasses.replace(toy_task, test_links=toy_task.test_links[:1]), angled, settings_of(), decided)
    assert part.protocol.gold == "partial"
    assert complete(real_of(part)["accepted"]) == (0.5, 1.0, 2 / 3, 2)
    accepted = real_of(part)["accepted"]
    assert (accepted.partial_precision, accepted.partial_f1, accepted.judged) == (1.0, 1.0, 1)
    assert judge(toy_task, angled, settings_of("evaluate.gold=partial"), decided).protocol.gold == "partial"


def test_without_test_links_there_is_nothing_to_say(toy_task: AlignmentTask, angled: EntityEmbeddings) -> None:
    report = judge(toy_task.without_test_links(), angled, settings_of())
    assert report.protocol.num_test_links == 0
    assert (report.ideal, report.real, report.reliability, report.test_kept) == (None, None, None, None)


def test_perfect_vectors_are_perfect_in_every_scoring(task: AlignmentTask) -> None:
    report = judge(task, noisy_vectors(task, 0.0), settings_of())
    assert set(ideal_of(report)) == set(SCORINGS)
    perfect = {"hits@1": 1.0, "hits@5": 1.0, "hits@10": 1.0, "mrr": 1.0}
    assert all_measures(report) == dict.fromkeys(SCORINGS, perfect)
    real = real_of(report)
    for name in ("mutual_top1", "csls_mutual_top1", "scoring_mutual_top1", "accepted"):
        assert real[name].recall == 1.0
    assert (real["accepted"].precision or 0.0) > 0.85


def test_one_point_for_all_is_worth_nothing(task: AlignmentTask) -> None:
    """Without triples there is no support either: ties count against us in every scoring."""
    bare = dataclasses.replace(task, triples=task.triples[:0])
    point = np.random.default_rng(0).normal(size=(1, 16)).astype(np.float32).repeat(task.num_entities, axis=0)
    report = judge(bare, EntityEmbeddings(point, np.ones(task.num_entities, dtype=bool)), settings_of())
    for scoring, measures in all_measures(report).items():
        assert measures["hits@10"] == 0.0, scoring
        assert measures["mrr"] <= 1 / 50, scoring
    for name in ("mutual_top1", "csls_mutual_top1", "scoring_mutual_top1", "accepted"):
        assert (real_of(report)[name].f1 or 0.0) < 0.05


def test_support_and_transport_help_noisy_vectors(task: AlignmentTask) -> None:
    measures = all_measures(judge(task, noisy_vectors(task, 1.0), settings_of()))
    assert 0.2 < measures["cosine"]["hits@1"] < 0.95
    assert measures["transport"]["hits@1"] > measures["cosine"]["hits@1"]
    assert measures["csls+rules"]["hits@1"] > measures["csls"]["hits@1"]
    assert measures["transport+rules"]["hits@1"] > measures["transport"]["hits@1"]


@pytest.mark.parametrize("rows", [10, 50_000])
def test_many_processors_find_the_same(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """There rules are found and pairs are judged beside the rest."""
    embeddings = noisy_vectors(task, 0.8)
    monkeypatch.setattr("largegnn.matching.transport._MAX_ROWS", rows)
    reports = []
    for processors in (2, 64):
        monkeypatch.setattr("largegnn.machine.pieces.num_processors", lambda number=processors: number)
        reports.append(judge(task, embeddings, settings_of()))
    assert ideal_of(reports[0]) == ideal_of(reports[1])
    assert real_of(reports[0]) == real_of(reports[1])


@pytest.mark.parametrize("number", [1, 9])
@pytest.mark.parametrize("options", ["uncovered", "zeros"])
def test_what_has_no_vector_is_a_miss_in_every_scoring(task: AlignmentTask, options: str, number: int) -> None:
    embeddings = noisy_vectors(task, 0.0)
    lost = np.zeros(task.num_entities, dtype=bool)
    lost[task.test_links[:number].ravel()] = True
    vectors = np.where(lost[:, None], 0.0, embeddings.vectors)
    report = judge(
        task, EntityEmbeddings(vectors, ~lost if options == "uncovered" else embeddings.covered), settings_of()
    )
    for scoring, measures in all_measures(report).items():
        assert measures["hits@1"] == pytest.approx(1 - number / len(task.test_links)), scoring


def test_transport_over_candidates_is_nearly_transport_over_all(
    task: AlignmentTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    embeddings = noisy_vectors(task, 0.8)
    dense = judge(task, embeddings, settings_of())
    monkeypatch.setattr("largegnn.matching.transport._MAX_ROWS", 10)
    sparse = judge(task, embeddings, settings_of())
    assert all_measures(sparse)["transport"]["hits@1"] == pytest.approx(
        all_measures(dense)["transport"]["hits@1"], abs=0.03
    )
    for plain in ("cosine", "csls"):
        assert ideal_of(sparse)[plain] == ideal_of(dense)[plain], "ranked in chunks or from one matrix"
    assert sparse.protocol.num_ranked_links == len(task.test_links)


def test_too_much_work_is_done_for_a_sample_of_the_links(task: AlignmentTask, monkeypatch: pytest.MonkeyPatch) -> None:
    embeddings = noisy_vectors(task, 0.8)
    whole = judge(task, embeddings, settings_of())
    monkeypatch.setattr("largegnn.matching.transport._MAX_ROWS", 10)
    monkeypatch.setitem(MAX_MULTIPLICATIONS, "cpu", 0)
    monkeypatch.setattr("largegnn.evaluation.evaluate._MIN_RANKED_LINKS", len(task.test_links) // 2)
    sampled = judge(task, embeddings, settings_of())
    assert sampled.protocol.num_ranked_links == len(task.test_links) // 2
    for plain in ("cosine", "csls"):
        measured, true = (all_measures(report)[plain]["mrr"] for report in (sampled, whole))
        assert measured == pytest.approx(true, abs=0.08)
        assert measured != true, "half of the links cannot have the very same mean"
