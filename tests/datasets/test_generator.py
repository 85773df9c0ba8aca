"""Test generated pairs: exact sizes, no hints in ids or names, and difficulty that follows the settings."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, IntArray
from largegnn.datasets.generator import GeneratedPair, WorldReport, generate_pair
from largegnn.errors import InputError
from largegnn.settings import WORLD_PRESETS, WorldSettings, resolve

EQUAL: dict[str, Any] = {
    "source_entities": 400,
    "target_entities": 400,
    "links": 400,
    "source_triples": 1_600,
    "target_triples": 1_600,
}
SPARSE: dict[str, Any] = {
    "source_entities": 101,
    "target_entities": 60,
    "links": 20,
    "source_relations": 51,
    "target_relations": 1,
    "source_triples": 101,
    "target_triples": 60,
    "wrong": 0.0,
}
FEW_LINKS: dict[str, Any] = {"links": 3, "target_entities": 500, "target_triples": 1_000, "train_share": 0.0}
FULL: dict[str, Any] = {  # 45 pairs for facts and 40 for wrong triples, of 90 pairs
    "source_entities": 10,
    "target_entities": 10,
    "links": 10,
    "source_relations": 1,
    "target_relations": 1,
    "source_triples": 45,
    "target_triples": 45,
    "missing": 0.75,
    "wrong": 0.77,
}
COARSE_SOURCE: dict[str, Any] = {"source_relations": 2, "target_relations": 90, "missing": 0.9, "wrong": 0.3}


@cache
def preset_pair(name: str, seed: int = 0) -> GeneratedPair:
    return generate_pair(resolve(WorldSettings, WORLD_PRESETS, preset=name), seed)


def pair_of(seed: int = 0, **values: Any) -> GeneratedPair:
    return generate_pair(WorldSettings(**values), seed)


def side_triples(task: AlignmentTask) -> tuple[IntArray, IntArray]:
    """Return the triples of both graphs, with entities and relations numbered from zero."""
    cut = task.num_source_triples
    offset = np.array([task.num_source_entities, task.num_source_relations, task.num_source_entities])
    return task.triples[:cut], task.triples[cut:] - offset


def all_links(task: AlignmentTask) -> IntArray:
    return np.concatenate([task.train_links, task.valid_links, task.test_links])


def linked_edges(task: AlignmentTask) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return the (head, tail) pairs between linked entities of both graphs in target ids, to compare them."""
    counterpart = {int(source): int(target) for source, target in all_links(task)}
    counterpart |= {target: target for target in counterpart.values()}
    edges: tuple[set[tuple[int, int]], set[tuple[int, int]]] = (set(), set())
    for head, relation, tail in task.triples.tolist():
        if head in counterpart and tail in counterpart:
            edges[int(relation >= task.num_source_relations)].add((counterpart[head], counterpart[tail]))
    return edges


def max_degree(triples: IntArray) -> int:
    return int(np.bincount(triples[:, ::2].ravel()).max())


def check_promises(settings: WorldSettings, pair: GeneratedPair) -> None:
    """Check all that a generated pair guarantees for any settings."""
    task = pair.task
    assert (task.num_source_entities, task.num_target_entities) == (settings.source_entities, settings.target_entities)
    assert (task.num_source_relations, task.num_target_relations) == (
        settings.source_relations,
        settings.target_relations,
    )
    assert task.num_source_triples == settings.source_triples
    assert len(task.triples) == settings.source_triples + settings.target_triples
    assert len(np.unique(task.triples, axis=0)) == len(task.triples)
    assert np.array_equal(task.triples, task.triples[np.lexsort(task.triples.T[::-1])])
    assert not np.any(task.triples[:, 0] == task.triples[:, 2])
    assert len(np.unique(task.triples[:, ::2])) == task.num_entities
    assert len(np.unique(task.triples[:, 1])) == task.num_relations
    links = all_links(task)
    assert len(links) == settings.links
    assert len(np.unique(links[:, 0])) == len(np.unique(links[:, 1])) == settings.links
    assert len(task.train_links) == round(settings.train_share * settings.links)
    for part in (task.train_links, task.valid_links, task.test_links):
        assert np.all(np.diff(part[:, 0]) > 0)
    assert len(pair.names.entities) == task.num_entities
    assert len(pair.names.relations) == task.num_relations


@pytest.mark.parametrize("name", ["small", "15k"])
def test_presets_have_the_sizes_they_name(name: str) -> None:
    check_promises(resolve(WorldSettings, WORLD_PRESETS, preset=name), preset_pair(name))


@pytest.mark.parametrize(
    "values",
    [EQUAL, SPARSE, FEW_LINKS, COARSE_SOURCE, FULL],
    ids=["equal", "sparse", "few links", "coarse source", "full"],
)
def test_sizes_are_exact(values: dict[str, Any]) -> None:
    check_promises(WorldSettings(**values), pair_of(3, **values))


@st.composite
def world_settings(draw: st.DrawFn) -> WorldSettings:
    """Small worlds from barely connected to fairly dense."""
    values: dict[str, Any] = {}
    for side in ("source", "target"):
        entities = draw(st.integers(20, 80))
        values[f"{side}_entities"] = entities
        values[f"{side}_triples"] = draw(st.integers(3 * entities // 2, 4 * entities))
        values[f"{side}_relations"] = draw(st.integers(1, 15))
    smaller = min(values["source_entities"], values["target_entities"])
    return WorldSettings(
        **values,
        links=draw(st.integers(3, smaller)),
        missing=draw(st.floats(0, 0.3)),
        wrong=draw(st.floats(0, 0.3)),
        degree_exponent=draw(st.floats(1.6, 5)),
        relation_exponent=draw(st.floats(0, 3)),
        community_size=draw(st.integers(2, 100)),
        inside=draw(st.floats(0, 0.99)),
        train_share=draw(st.floats(0, 0.5)),
        valid_share=draw(st.floats(0, 0.5)),
    )


@hypothesis_settings(max_examples=60, deadline=None)
@given(settings=world_settings(), seed=st.integers(0, 2**32 - 1))
def test_sizes_are_exact_for_any_settings(settings: WorldSettings, seed: int) -> None:
    check_promises(settings, generate_pair(settings, seed))


def test_same_seed_same_pair_other_seed_another() -> None:
    first, again, other = preset_pair("small"), pair_of(0, **WORLD_PRESETS["small"]), preset_pair("small", 1)
    for name in ("triples", "train_links", "valid_links", "test_links"):
        assert np.array_equal(getattr(first.task, name), getattr(again.task, name))
        assert not np.array_equal(getattr(first.task, name), getattr(other.task, name))
    assert np.array_equal(first.names.entities.data, again.names.entities.data)
    assert not np.array_equal(first.names.entities.data, other.names.entities.data)
    assert first.report == again.report


def test_names_are_distinct_and_tell_the_side() -> None:
    pair = preset_pair("small")
    entities, relations = list(pair.names.entities), list(pair.names.relations)
    num_source, num_source_relations = pair.task.num_source_entities, pair.task.num_source_relations
    assert len(set(entities)) == len(entities)
    assert len(set(relations)) == len(relations)
    assert all(name.startswith("http://source.example.org/resource/Q") for name in entities[:num_source])
    assert all(name.startswith("http://target.example.org/resource/E") for name in entities[num_source:])
    assert all(name.startswith("http://source.example.org/property/p") for name in relations[:num_source_relations])
    assert all(name.startswith("http://target.example.org/property/p") for name in relations[num_source_relations:])
    numbers = sorted(int(name.rpartition("Q")[2]) for name in entities[:num_source])
    assert numbers == list(range(10_000, 10_000 + num_source))


def test_ids_and_names_hint_at_nothing() -> None:
    """Ranks of linked ids, of the numbers in linked names, and of ids and popularity are all uncorrelated."""
    pair = preset_pair("15k")
    links = all_links(pair.task)
    number = np.array([int(name[name.rindex("/") + 2 :]) for name in pair.names.entities])
    degree = np.bincount(pair.task.triples[:, ::2].ravel())
    columns = [links[:, 0], links[:, 1], number[links[:, 0]], number[links[:, 1]], degree[links[:, 0]]]
    ranks = np.argsort(np.argsort(columns, axis=1), axis=1)
    correlation = np.corrcoef(ranks) - np.eye(len(columns))
    assert np.abs(correlation).max() < 0.04


def test_degrees_have_a_heavy_tail_that_the_exponent_rules() -> None:
    source, _ = side_triples(preset_pair("15k").task)
    degree = np.bincount(source[:, ::2].ravel())
    assert degree.max() > 40 * degree.mean()
    assert np.median(degree) < degree.mean()
    heaviest = [pair_of(degree_exponent=exponent).report.source_max_degree for exponent in (1.6, 2.0, 2.6, 4.0)]
    assert heaviest == sorted(heaviest, reverse=True)
    assert heaviest[0] > 3 * heaviest[-1]


def test_relations_follow_zipf() -> None:
    source, target = side_triples(preset_pair("15k").task)
    for triples in (source, target):
        frequency = np.sort(np.bincount(triples[:, 1]))[::-1]
        assert frequency[0] > 20 * np.median(frequency)
    flat, _ = side_triples(pair_of(relation_exponent=0.0).task)
    steep, _ = side_triples(pair_of(relation_exponent=2.0).task)
    assert np.bincount(flat[:, 1]).max() < np.bincount(steep[:, 1]).max() / 3


def test_linked_entities_are_more_popular() -> None:
    task = preset_pair("small").task
    degree = np.bincount(task.triples[:, ::2].ravel())
    linked = np.zeros(task.num_entities, dtype=np.bool_)
    linked[all_links(task)] = True
    assert degree[linked].mean() > 1.1 * degree[~linked].mean()


def test_the_same_facts_when_nothing_is_missing_or_wrong() -> None:
    pair = pair_of(missing=0.0, wrong=0.0, **EQUAL)
    source, target = linked_edges(pair.task)
    assert source == target
    assert pair.report.source_missing == pair.report.target_missing == 0
    assert pair.report.facts == pair.report.facts_in_both == 1_600


def test_the_poorer_graph_states_a_part_of_the_richer_one() -> None:
    pair = pair_of(missing=0.0, wrong=0.0, **(EQUAL | {"target_triples": 1_000}))
    source, target = linked_edges(pair.task)
    assert len(source) == 1_600
    assert target < source


def test_target_relations_gather_several_source_relations() -> None:
    """With the same facts on both sides, relations differ, but most triples of a relation share a target relation."""
    values = EQUAL | {"source_relations": 20, "target_relations": 8}
    task = pair_of(missing=0.0, wrong=0.0, **values).task
    counterpart = dict(all_links(task).tolist())
    target_relation = {(head, tail): relation for head, relation, tail in task.triples[1_600:].tolist()}
    table = np.zeros((20, 8), dtype=np.int64)
    for head, relation, tail in task.triples[:1_600].tolist():
        table[relation, target_relation[counterpart[head], counterpart[tail]] - 20] += 1
    assert table.max(axis=1).sum() > 0.7 * table.sum()
    assert np.count_nonzero(table.argmax(axis=1) == np.bincount(table.argmax(axis=1)).argmax()) > 1


def test_overlap_falls_as_more_is_missing() -> None:
    overlaps = []
    for missing in (0.0, 0.2, 0.4, 0.6):
        pair = pair_of(missing=missing, wrong=0.0, **EQUAL)
        source, target = linked_edges(pair.task)
        overlaps.append(len(source & target))
        assert pair.report.facts_in_both == overlaps[-1]
        assert pair.report.source_missing == pytest.approx(missing, abs=0.02)
        assert pair.report.target_missing == pytest.approx(missing, abs=0.02)
    assert overlaps == sorted(overlaps, reverse=True)
    assert overlaps[-1] < overlaps[0] / 2


def test_wrong_triples_are_as_many_as_requested_and_not_shared() -> None:
    pair = pair_of(missing=0.0, wrong=0.1, **EQUAL)
    source, target = linked_edges(pair.task)
    assert (pair.report.source_wrong, pair.report.target_wrong) == (160, 160)
    assert pair.report.facts == pair.report.facts_in_both == 1_440
    # Two graphs rarely state the same wrong triple by chance.
    assert 140 <= len(source - target) <= 160


def test_the_report_holds_plain_numbers_that_fit_the_task() -> None:
    pair = preset_pair("small")
    source, target = side_triples(pair.task)
    report = pair.report
    assert (report.source_max_degree, report.target_max_degree) == (max_degree(source), max_degree(target))
    assert (report.source_wrong, report.target_wrong) == (240, 210)
    assert report.communities == pytest.approx(3_600 / 60, rel=0.1)
    assert all(type(getattr(report, name)) in (int, float) for name in WorldReport.__dataclass_fields__)


@pytest.mark.parametrize(
    ("values", "problem", "words"),
    [
        ({"source_triples": 5_000_000}, "the source graph is too dense", "lower source_triples"),
        (EQUAL | {"target_triples": 70_000}, "the target graph is too dense", "at most"),
        (EQUAL | {"missing": 0.99, "wrong": 0.0}, "the source graph is too dense", "missing"),
        ({"target_triples": 4_000, "wrong": 0.9}, "too few correct triples", "lower wrong"),
    ],
)
def test_impossible_sizes_are_refused_with_advice(values: dict[str, Any], problem: str, words: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        pair_of(**values)
    assert words in str(caught.value)


@pytest.mark.parametrize("values", [{}, {"missing": 0.99, "wrong": 0.3}])
def test_following_the_advice_on_density_helps(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="dense") as caught:
        pair_of(**(EQUAL | {"source_triples": 70_000} | values))
    max_triples = int(str(caught.value.expected).split()[2])  # at most N triples
    fitting = EQUAL | {"source_triples": max_triples, "target_triples": 1_000} | values
    check_promises(WorldSettings(**fitting), pair_of(**fitting))
