"""The stages `search` and `match`, on vectors that need no training."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest
import torch

from largegnn.aligning import match, search
from largegnn.artifacts import REASONS, Alignment, AlignmentTask, EntityEmbeddings
from largegnn.errors import InputError
from largegnn.matching.selection import SELECTIONS
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import noisy_vectors, tiny_task

CPU = torch.device("cpu")
SCORINGS = ("cosine", "csls", "transport")


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return tiny_task()


def align(task: AlignmentTask, embeddings: EntityEmbeddings, *overrides: str) -> tuple[Alignment, dict[str, Any]]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    near_targets, near_sources, _ = search(task, embeddings, settings, CPU, seed=0)
    return match(task, embeddings, near_targets, near_sources, settings, CPU)


def as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(source), int(target)) for source, target in pairs}


def free_links(task: AlignmentTask) -> set[tuple[int, int]]:
    return as_set(task.valid_links) | as_set(task.test_links)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_exact_vectors_find_all_links(task: AlignmentTask, scoring: str) -> None:
    alignment, facts = align(task, noisy_vectors(task, 0.0), f"match.scoring={scoring}")
    accepted = as_set(alignment.pairs[alignment.accepted])
    assert free_links(task) <= accepted
    assert len(free_links(task)) > 0.85 * len(accepted), "entities without a counterpart are told apart"
    assert facts["num_accepted"] == len(accepted)
    # The best stretch of evidence holds the links alone.
    assert facts["calibration"]["num_links"] == pytest.approx(400, rel=0.15)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("selection", sorted(SELECTIONS))
def test_what_an_alignment_holds(task: AlignmentTask, scoring: str, selection: str) -> None:
    embeddings = noisy_vectors(task, 0.7)
    alignment, facts = align(task, embeddings, f"match.scoring={scoring}", f"match.selection={selection}")
    pairs = alignment.pairs
    unit = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    assert np.allclose(alignment.cosines, (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1), atol=1e-5)
    order = np.lexsort((alignment.source_ranks, pairs[:, 0]))
    assert np.array_equal(order, np.arange(len(pairs))), "by source, best first"
    assert len(as_set(pairs)) == len(pairs) == facts["num_candidates"]
    assert bool(np.all((alignment.confidence >= 0) & (alignment.confidence <= 1)))
    # Who is both ends' first choice lies above its best rivals, and nobody else does.
    assert bool(np.all(alignment.margins[alignment.mutual] >= 0))
    assert bool(np.all(alignment.margins[~alignment.mutual] <= 0))
    if selection != "mutual_knn":
        for side in (0, 1):
            assert len(set(pairs[alignment.accepted][:, side].tolist())) == alignment.accepted.sum()
    assert bool(np.all(alignment.confidence[alignment.accepted] >= np.float32(facts["threshold"]["confidence"])))
    found = len(as_set(pairs[alignment.accepted]) & free_links(task))
    assert found > 0.5 * len(free_links(task))


def test_test_links_are_not_looked_at(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 0.7)
    wrong = task.test_links.copy()
    wrong[:, 1] = wrong[::-1, 1]
    found = [align(dataclasses.replace(task, test_links=links), embeddings) for links in (task.test_links, wrong)]
    assert found[0][1] == found[1][1]
    for field in dataclasses.fields(Alignment):
        assert np.array_equal(getattr(found[0][0], field.name), getattr(found[1][0], field.name))


@pytest.mark.parametrize("selection", ["mutual_top1", "mutual_knn"])
def test_every_entity_has_the_right_reason(task: AlignmentTask, selection: str) -> None:
    """Three test sources are made isolated, three more lose their vectors, and one loses both."""
    sources = task.test_links[:, 0]
    isolated, uncovered = sources[:4], sources[3:7]
    lonely = ~np.isin(task.triples[:, (0, 2)], isolated).any(axis=1)
    task = dataclasses.replace(task, triples=task.triples[lonely])
    vectors = noisy_vectors(task, 0.6)
    covered = ~np.isin(np.arange(task.num_entities), uncovered)
    embeddings = EntityEmbeddings(np.where(covered[:, None], vectors.vectors, np.nan), covered)
    alignment, facts = align(task, embeddings, f"match.selection={selection}", "match.k=2", "match.min_precision=0.9")
    selected = alignment.mutual if selection == "mutual_top1" else np.ones(len(alignment.pairs), dtype=bool)
    degree = np.bincount(task.triples[:, (0, 2)].ravel(), minlength=task.num_entities)
    seeds = set(task.train_links.ravel().tolist())
    aligned = set(alignment.pairs[alignment.accepted].ravel().tolist())
    chosen = set(alignment.pairs[selected].ravel().tolist())

    def reason(entity: int) -> str:
        if entity in seeds:
            return "seed"
        if entity in aligned:
            return "aligned"
        if degree[entity] == 0:
            return "isolated"
        if not covered[entity]:
            return "not covered"
        return "below threshold" if entity in chosen else "not mutual"

    expected = [reason(entity) for entity in range(task.num_entities)]
    assert [REASONS[code] for code in alignment.reasons] == expected
    assert facts["reasons"] == {name: expected.count(name) for name in REASONS}
    assert set(expected) == set(REASONS), "the test shows every reason"
    assert REASONS[alignment.reasons[uncovered[0]]] == "isolated", "which says more than that it is not covered"
    assert not set(uncovered.tolist()) & set(alignment.pairs.ravel().tolist())
    assert not seeds & set(alignment.pairs.ravel().tolist())


def test_searches_find_free_covered_entities_of_the_other_side(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 0.5)
    covered = np.arange(task.num_entities) % 7 > 0
    embeddings = EntityEmbeddings(embeddings.vectors, covered)
    near_targets, near_sources, facts = search(task, embeddings, Settings(device="cpu"), CPU, seed=0)
    free = set(np.flatnonzero(covered).tolist()) - set(task.train_links.ravel().tolist())
    split = task.num_source_entities
    sides = [{entity for entity in free if entity < split}, {entity for entity in free if entity >= split}]
    for found, queries, corpus in ((near_targets, sides[0], sides[1]), (near_sources, sides[1], sides[0])):
        assert set(found.queries.tolist()) == queries
        assert set(found.ids.ravel().tolist()) <= corpus
        assert found.k == 12
        assert bool(np.all(np.diff(found.scores, axis=1) <= 0))
    assert facts["source_search"]["recall"] is None, "the search was exact"


def test_a_precision_asked_for_is_reached(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 0.8)
    plain, plain_facts = align(task, embeddings)
    strict, facts = align(task, embeddings, "match.min_precision=0.95")
    assert facts["threshold"]["expected_precision"] >= 0.95 - 1e-9
    assert 0 < strict.accepted.sum() < plain.mutual.sum()
    loose, loose_facts = align(task, embeddings, "match.min_precision=0.5")
    assert loose.accepted.sum() > strict.accepted.sum()
    assert loose_facts["threshold"]["expected_precision"] >= 0.5
    output = strict.pairs[strict.accepted]
    assert len(as_set(output) & free_links(task)) / len(output) > 0.85
    assert plain_facts["reliability"] is not None
    everything, _ = align(task, embeddings, "match.threshold=none")
    assert np.array_equal(everything.accepted, everything.mutual)


def test_a_precision_out_of_reach_is_refused_with_the_best_there_is(task: AlignmentTask) -> None:
    with pytest.raises(InputError, match="no set of pairs reaches an expected precision of 1") as error:
        align(task, noisy_vectors(task, 1.6), "match.min_precision=1.0")
    best = float(str(error.value.found).split("at best ")[1].split(",")[0])
    assert 0 < best < 1
    alignment, facts = align(task, noisy_vectors(task, 1.6), f"match.min_precision={best - 0.001}")
    assert facts["threshold"]["expected_precision"] >= best - 0.001
    assert alignment.accepted.any()


@pytest.mark.parametrize("how", ["as seeds", "none", "too few"])
def test_without_valid_links_nothing_is_promised(
    task: AlignmentTask, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = ["protocol.seeds_from=train+valid"] if how == "as seeds" else []
    if how != "as seeds":
        task = dataclasses.replace(task, valid_links=task.valid_links[: 0 if how == "none" else 9])
    embeddings = noisy_vectors(task, 0.5)
    with caplog.at_level(logging.WARNING, logger="largegnn"):
        alignment, facts = align(task, embeddings, *overrides)
    said = "too few valid links" if how == "too few" else "no valid links"
    assert said in caplog.text
    assert "not calibrated" in caplog.text
    assert not facts["calibration"]["is_calibrated"]
    assert facts["reliability"] is None
    assert facts["threshold"]["expected_precision"] is None
    assert np.array_equal(alignment.accepted, alignment.mutual), "all that is selected is put out"
    if how == "as seeds":
        assert not set(task.valid_links.ravel().tolist()) & set(alignment.pairs.ravel().tolist())
    with pytest.raises(InputError, match="cannot be promised"):
        align(task, embeddings, *overrides, "match.min_precision=0.5")


def test_support_can_be_switched_off_and_helps(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 1.0)
    found = {}
    for weight in ("0", "0.15"):
        alignment, _ = align(task, embeddings, f"match.support_weight={weight}", "match.threshold=none")
        found[weight] = len(as_set(alignment.pairs[alignment.accepted]) & free_links(task))
    assert found["0.15"] > found["0"]


def test_nothing_is_covered(task: AlignmentTask) -> None:
    none = EntityEmbeddings(np.zeros((task.num_entities, 4), dtype=np.float32), np.zeros(task.num_entities, dtype=bool))
    for scoring in SCORINGS:
        for selection in SELECTIONS:
            alignment, facts = align(task, none, f"match.scoring={scoring}", f"match.selection={selection}")
            assert alignment.pairs.shape == (0, 2)
            assert facts["num_accepted"] == 0
            assert facts["reasons"]["not covered"] + facts["reasons"]["seed"] == task.num_entities
