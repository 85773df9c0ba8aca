"""What every entry of `CHANNELS` keeps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from largegnn import api
from largegnn.artifacts import AlignmentTask, CandidateGraph, LiteralEvidence, Neighbors, are_among
from largegnn.matching.channels import CHANNELS, ChannelContext, gather_candidates
from tests.noisy_vectors import noisy_vectors, tiny_task

every_channel = pytest.mark.parametrize("name", tuple(CHANNELS))


@pytest.fixture(scope="module")
def context() -> ChannelContext:
    """Two generated graphs with noisy vectors; every seventh entity has none."""
    task = tiny_task().without_test_links()
    embeddings = noisy_vectors(task, 0.7)
    embeddings = dataclasses.replace(embeddings, covered=np.arange(task.num_entities) % 7 > 0)
    near = api.search(task, embeddings, {"device": "cpu"})
    rng = np.random.default_rng(1)
    ends = rng.integers(0, task.num_source_entities, 80), rng.integers(task.num_source_entities, task.num_entities, 80)
    pairs = np.unique(np.stack(ends, axis=1), axis=0)
    literal = LiteralEvidence(pairs, ("literal",), rng.random((1, len(pairs)), dtype=np.float32), pairs[:0])
    return ChannelContext(task, task.train_links, embeddings, *near, 10, {"support": 0.15}, literal)


def ask(name: str, context: ChannelContext) -> tuple[CandidateGraph, CandidateGraph]:
    """The candidates before a channel, structure and whatever stands before it, and after."""
    before = tuple(CHANNELS)[: tuple(CHANNELS).index(name)]
    return gather_candidates(before, context), gather_candidates((*before, name), context)


def check_edges(graph: CandidateGraph, task: AlignmentTask) -> None:
    pairs = [(int(source), int(target)) for source, target in graph.pairs()]
    assert pairs == sorted(set(pairs))
    assert all(0 <= source < task.num_source_entities <= target < task.num_entities for source, target in pairs)
    for values in graph.evidence.values():
        assert values.dtype == np.float32
        assert bool(np.isfinite(values).all())


@every_channel
def test_gives_distinct_pairs_in_order_with_evidence_in_numbers(name: str, context: ChannelContext) -> None:
    before, after = ask(name, context)
    check_edges(after, context.task)
    assert len(after) >= len(before)
    assert set(after.evidence) > set(before.evidence), "a channel says something"


@every_channel
def test_takes_nothing_away(name: str, context: ChannelContext) -> None:
    before, after = ask(name, context)
    assert bool(are_among(before.pairs(), after.pairs()).all())
    kept = after.find(before.pairs())
    for column in before.evidence:
        assert np.array_equal(after.column(column)[kept], before.column(column))


@every_channel
def test_the_same_again(name: str, context: ChannelContext) -> None:
    first, second = ask(name, context)[1], ask(name, context)[1]
    assert np.array_equal(first.pairs(), second.pairs())
    assert list(first.evidence) == list(second.evidence)
    for column in first.evidence:
        assert np.array_equal(first.column(column), second.column(column))


@every_channel
def test_what_was_proposed_before_stays(name: str, context: ChannelContext) -> None:
    """Pairs of another channel, with evidence of its own, that the search may not have found."""
    rng = np.random.default_rng(0)
    split, total = context.task.num_source_entities, context.task.num_entities
    ends = np.unique(np.stack([rng.integers(0, split, 50), rng.integers(split, total, 50)], axis=1), axis=0)
    given = CandidateGraph(ends[:, 0], ends[:, 1], {"name": rng.random(len(ends), dtype=np.float32)})
    if name != "structure":
        given = CHANNELS["structure"](given, context)
    found = CHANNELS[name](given, context)
    check_edges(found, context.task)
    kept = found.find(ends)
    assert bool((kept >= 0).all())
    assert np.array_equal(found.column("name")[kept], given.column("name")[given.find(ends)])


@every_channel
def test_nothing_was_found(name: str, context: ChannelContext) -> None:
    none = Neighbors(np.empty(0), np.empty((0, 12)), np.empty((0, 12), dtype=np.float32))
    empty = dataclasses.replace(context, source_neighbors=none, target_neighbors=none)
    _, after = ask(name, empty)
    check_edges(after, context.task)
