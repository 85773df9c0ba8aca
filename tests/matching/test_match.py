"""The stages `search` and `match`, on vectors that need no training."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import REASONS, Alignment, AlignmentTask, EntityEmbeddings
from largegnn.matching.match import MatchOutcome
from largegnn.matching.selection import SELECTIONS
from largegnn.parts import SCORINGS
from largegnn.settings import PRESETS, Settings, resolve
from tests.noisy_vectors import noisy_vectors, tiny_task


@pytest.fixture(scope="module")
def task() -> AlignmentTask:
    return tiny_task()


def align(task: AlignmentTask, embeddings: EntityEmbeddings, *overrides: str) -> tuple[Alignment, MatchOutcome]:
    settings = resolve(Settings, PRESETS, overrides=["device=cpu", *overrides])
    return api.match(task, embeddings, settings=settings)


def as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(int(source), int(target)) for source, target in pairs}


def free_links(task: AlignmentTask) -> set[tuple[int, int]]:
    return as_set(task.valid_links) | as_set(task.test_links)


@pytest.mark.parametrize("scoring", list(SCORINGS))
def test_exact_vectors_find_all_links(task: AlignmentTask, scoring: str) -> None:
    alignment, found = align(task, noisy_vectors(task, 0.0), f"match.scoring={scoring}")
    accepted = as_set(alignment.pairs[alignment.accepted])
    assert free_links(task) <= accepted
    assert len(free_links(task)) > 0.85 * len(accepted), "entities without a counterpart are told apart"
    assert found.num_accepted == len(accepted)
    # The best stretch of evidence holds the links alone.
    assert found.calibration.num_links == pytest.approx(400, rel=0.15)


@pytest.mark.parametrize("scoring", list(SCORINGS))
@pytest.mark.parametrize("selection", sorted(SELECTIONS))
def test_what_an_alignment_holds(task: AlignmentTask, scoring: str, selection: str) -> None:
    embeddings = noisy_vectors(task, 0.7)
    alignment, found = align(task, embeddings, f"match.scoring={scoring}", f"match.selection={selection}")
    pairs = alignment.pairs
    unit = embeddings.vectors / np.linalg.norm(embeddings.vectors, axis=1, keepdims=True)
    assert np.allclose(alignment.column("cosine"), (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1), atol=1e-5)
    order = np.lexsort((alignment.source_ranks, pairs[:, 0]))
    assert np.array_equal(order, np.arange(len(pairs))), "by source, best first"
    assert len(as_set(pairs)) == len(pairs) == found.num_candidates
    assert bool(np.all((alignment.confidence >= 0) & (alignment.confidence <= 1)))
    # Who is both ends' first choice lies above its best rivals, and no entity else does.
    assert bool(np.all(alignment.margins[alignment.mutual] >= 0))
    assert bool(np.all(alignment.margins[~alignment.mutual] <= 0))
    if selection != "mutual_knn":
        for side in (0,) if selection == "many_to_one" else (0, 1):
            assert len(set(pairs[alignment.accepted][:, side].tolist())) == alignment.accepted.sum()
    assert bool(np.all(alignment.confidence[alignment.accepted] >= np.float32(found.threshold.threshold)))
    num_right = len(as_set(pairs[alignment.accepted]) & free_links(task))
    assert num_right > 0.5 * len(free_links(task))


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
    alignment, found = align(task, embeddings, f"match.selection={selection}", "match.k=2", "match.min_precision=0.9")
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
    assert found.reasons == {name: expected.count(name) for name in REASONS}
    assert set(expected) == set(REASONS), "the test shows every reason"
    assert REASONS[alignment.reasons[uncovered[0]]] == "isolated", "which says more than that it is not covered"
    assert not set(uncovered.tolist()) & set(alignment.pairs.ravel().tolist())
    assert not seeds & set(alignment.pairs.ravel().tolist())


def test_searches_find_free_covered_entities_of_the_other_side(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 0.5)
    covered = np.arange(task.num_entities) % 7 > 0
    embeddings = EntityEmbeddings(embeddings.vectors, covered)
    near_targets, near_sources = api.search(task, embeddings, Settings(device="cpu"))
    free = set(np.flatnonzero(covered).tolist()) - set(task.train_links.ravel().tolist())
    split = task.num_source_entities
    sides = [{entity for entity in free if entity < split}, {entity for entity in free if entity >= split}]
    for near, queries, corpus in ((near_targets, sides[0], sides[1]), (near_sources, sides[1], sides[0])):
        assert set(near.queries.tolist()) == queries
        assert set(near.ids.ravel().tolist()) <= corpus
        assert near.k == 12
        assert bool(np.all(np.diff(near.scores, axis=1) <= 0))
        assert near.record.recall is None, "the search was exact"


def test_a_precision_asked_for_is_reached(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 0.8)
    plain, learnt = align(task, embeddings)
    strict, found = align(task, embeddings, "match.min_precision=0.95")
    assert found.threshold.is_reached
    assert (found.threshold.expected_precision or 0) >= 0.95 - 1e-9
    assert 0 < strict.accepted.sum() < plain.mutual.sum()
    loose, of_loose = align(task, embeddings, "match.min_precision=0.5")
    assert loose.accepted.sum() > strict.accepted.sum()
    assert (of_loose.threshold.expected_precision or 0) >= 0.5
    output = strict.pairs[strict.accepted]
    assert len(as_set(output) & free_links(task)) / len(output) > 0.85
    assert learnt.reliability is not None
    everything, _ = align(task, embeddings, "match.threshold=none")
    assert np.array_equal(everything.accepted, everything.mutual)


def test_a_precision_out_of_reach_gives_the_surest_pairs(task: AlignmentTask, caplog: pytest.LogCaptureFixture) -> None:
    """After training nothing is refused: the result is there, and says that it is less than was asked for."""
    embeddings = noisy_vectors(task, 1.6)
    alignment, found = align(task, embeddings, "match.min_precision=1.0")
    best = found.threshold.expected_precision
    assert not found.threshold.is_reached
    assert best is not None
    assert 0 < best < 1
    assert "an expected precision of 1 is not reached" in caplog.text
    assert "less than was asked for" in found.sentence()
    assert 0 < alignment.accepted.sum() < alignment.mutual.sum()
    again, of_less = align(task, embeddings, f"match.min_precision={best - 0.02}")
    assert of_less.threshold.is_reached
    assert (of_less.threshold.expected_precision or 0) >= best - 0.02
    assert again.accepted.any()


@pytest.mark.parametrize("options", ["as seeds", "none", "too few"])
def test_without_valid_links_nothing_is_promised(
    task: AlignmentTask, options: str, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = ["protocol.seeds_from=train+valid"] if options == "as seeds" else []
    if options != "as seeds":
        task = dataclasses.replace(task, valid_links=task.valid_links[: 0 if options == "none" else 9])
    embeddings = noisy_vectors(task, 0.5)
    with caplog.at_level(logging.WARNING, logger="largegnn"):
        alignment, found = align(task, embeddings, *overrides)
    assert f"{9 if options == 'too few' else 0} valid links are too few to calibrate by" in caplog.text
    assert found.sentence().startswith("Not calibrated")
    assert not found.calibration.is_calibrated
    assert found.reliability is None
    assert found.threshold.expected_precision is None
    assert np.array_equal(alignment.accepted, alignment.mutual), "all that is selected is accepted"
    if options == "as seeds":
        assert not set(task.valid_links.ravel().tolist()) & set(alignment.pairs.ravel().tolist())
    _, asked = align(task, embeddings, *overrides, "match.min_precision=0.5")
    assert not asked.threshold.is_reached
    assert "cannot be checked" in asked.sentence()


def test_support_can_be_switched_off_and_helps(task: AlignmentTask) -> None:
    embeddings = noisy_vectors(task, 1.0)
    found = {}
    for weight in ("0", "0.15"):
        alignment, _ = align(task, embeddings, f"match.weights.support={weight}", "match.threshold=none")
        found[weight] = len(as_set(alignment.pairs[alignment.accepted]) & free_links(task))
    assert found["0.15"] > found["0"]


def test_nothing_is_covered(task: AlignmentTask) -> None:
    none = EntityEmbeddings(np.zeros((task.num_entities, 4), dtype=np.float32), np.zeros(task.num_entities, dtype=bool))
    for scoring in SCORINGS:
        for selection in SELECTIONS:
            alignment, found = align(task, none, f"match.scoring={scoring}", f"match.selection={selection}")
            assert alignment.pairs.shape == (0, 2)
            assert found.num_accepted == 0
            assert found.reasons["not covered"] + found.reasons["seed"] == task.num_entities
