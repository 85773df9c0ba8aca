"""Channels: structure, rules over it, one of one's own before it, and nonsense."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, Neighbors
from largegnn.matching.candidates import csls
from largegnn.matching.channels import CHANNELS, Channel, ChannelContext, gather_candidates
from largegnn.matching.union import build_candidates, joined_with
from tests.matching.slow_support import Edge, likely_slowly, make_task, support_slowly

# Chains 0 - 1 - 2 - 3 and 4 - 5 - 6 - 7; 0 and 4 are the seed, 7 is covered but no query.
CHAIN = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (4, 2, 5), (5, 2, 6), (6, 2, 7)]
CSLS_K, WEIGHT = 1, 0.15
NOTHING = -np.inf


@pytest.fixture
def context() -> ChannelContext:
    """Cosines: 1 finds 6 (.6) and 5 (.55), 2 finds 6 (.5), 3 nothing; 5 finds 2 (.6), 6 finds 1 (.6) and 2 (.5)."""
    vectors = np.random.default_rng(0).normal(size=(8, 5))
    vectors[7] = 0
    covered = np.array([True, True, True, False, True, True, True, True])
    from_source = Neighbors(
        np.array([1, 2, 3]),
        np.array([[6, 5], [6, -1], [-1, -1]]),
        np.array([[0.6, 0.55], [0.5, NOTHING], [NOTHING, NOTHING]]),
    )
    from_target = Neighbors(np.array([5, 6]), np.array([[2, -1], [1, 2]]), np.array([[0.6, NOTHING], [0.6, 0.5]]))
    task = make_task(4, 4, CHAIN, [(0, 4)])
    embeddings = EntityEmbeddings(vectors.astype(np.float32), covered)
    weights = {"support": WEIGHT}
    return ChannelContext(task, task.train_links, embeddings, from_source, from_target, CSLS_K, weights)


@contextlib.contextmanager
def channel(part: Channel) -> Iterator[str]:
    """A channel of this test, by its name."""
    CHANNELS[part.__name__] = part
    try:
        yield part.__name__
    finally:
        del CHANNELS[part.__name__]


def edges_of(graph: CandidateGraph) -> list[Edge]:
    return [(int(source), int(target)) for source, target in graph.pairs()]


def column(graph: CandidateGraph, name: str) -> dict[Edge, float]:
    return dict(zip(edges_of(graph), graph.column(name).tolist(), strict=True))


def test_structure_by_hand(context: ChannelContext) -> None:
    """CSLS with k = 1: r of 1 is .6, of 2 is .5, of 5 and 6 is .6."""
    graph = gather_candidates(("structure",), context)
    assert list(graph.evidence) == ["cosine", "csls"]
    assert column(graph, "cosine") == pytest.approx({(1, 5): 0.55, (1, 6): 0.6, (2, 5): 0.6, (2, 6): 0.5})
    assert column(graph, "csls") == pytest.approx({(1, 5): -0.1, (1, 6): 0.0, (2, 5): 0.1, (2, 6): -0.1}, abs=1e-6)


def test_structure_is_what_both_searches_found(context: ChannelContext) -> None:
    graph = gather_candidates(("structure",), context)
    near = context.source_neighbors, context.target_neighbors
    plain = build_candidates(*near)
    assert np.array_equal(graph.pairs(), plain.pairs())
    assert np.array_equal(graph.column("cosine"), plain.column("cosine"))
    assert np.array_equal(graph.column("csls"), csls(plain, *near, CSLS_K))


def test_rules_add_support_and_change_nothing_else(context: ChannelContext) -> None:
    structure = gather_candidates(("structure",), context)
    graph = gather_candidates(("structure", "rules"), context)
    assert list(graph.evidence) == ["cosine", "csls", "support"]
    assert np.array_equal(graph.pairs(), structure.pairs())
    for name in ("cosine", "csls"):
        assert np.array_equal(graph.column(name), structure.column(name))
    # A unit of support adds twice its weight to CSLS, three times over.
    scores = column(structure, "csls")
    expected, support = dict(scores), dict.fromkeys(scores, 0.0)
    for _ in range(3):
        matched = {(0, 4): 1.0, **likely_slowly(expected)}
        support = {edge: support_slowly(context.task, edge, matched) for edge in scores}
        expected = {edge: score + 2 * WEIGHT * support[edge] for edge, score in scores.items()}
    assert column(graph, "support") == pytest.approx(support, abs=1e-5)
    assert support[1, 5] > 0, "the seed speaks for it"
    assert support[1, 6] > 0, "(2, 5) speaks for it"


def test_rules_propose_what_the_search_did_not_find() -> None:
    """Stars around 0 and 21 whose rays are seeds but for the last two, which by their vectors are far from each other.

    Rays 19 and 20 of either side: 19 found 41 alone, 20 found 40 alone; the other two pairs are proposed.
    """
    triples = [(0, 0, ray) for ray in range(1, 21)] + [(21, 2, ray + 21) for ray in range(1, 21)]
    seeds = [(0, 21), *((ray, ray + 21) for ray in range(1, 19))]
    task = make_task(21, 21, triples, seeds)
    vectors = np.random.default_rng(0).normal(size=(42, 4)).astype(np.float32)
    scores = np.array([[0.5], [0.4]])
    from_source = Neighbors(np.array([19, 20]), np.array([[41], [40]]), scores)
    from_target = Neighbors(np.array([40, 41]), np.array([[20], [19]]), scores[::-1])
    embeddings = EntityEmbeddings(vectors, np.ones(42, dtype=bool))
    context = ChannelContext(
        task, task.train_links, embeddings, from_source, from_target, CSLS_K, {"support": WEIGHT}, rule_candidates=5
    )
    graph = gather_candidates(("structure", "rules"), context)
    assert edges_of(graph) == [(19, 40), (19, 41), (20, 40), (20, 41)]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = column(graph, "cosine")
    assert cosines[19, 40] == pytest.approx(units[19] @ units[40], abs=1e-6)
    assert cosines[19, 41] == 0.5, "what the search found stays"
    assert min(graph.column("support")) > 0.1
    without = dataclasses.replace(context, rule_candidates=0)
    assert len(gather_candidates(("structure", "rules"), without)) == 2


@pytest.mark.parametrize("weights", [{}, {"support": 0.0}, {"name": 1.0}])
def test_rules_without_a_weight_say_nothing(context: ChannelContext, weights: dict[str, float]) -> None:
    silent = ChannelContext(
        context.task,
        context.seeds,
        context.embeddings,
        context.source_neighbors,
        context.target_neighbors,
        CSLS_K,
        weights,
    )
    graph = gather_candidates(("structure", "rules"), silent)
    assert graph.column("support").tolist() == [0.0] * 4


def test_a_channel_before_structure_gets_cosines_for_its_pairs(context: ChannelContext) -> None:
    """It proposes (1, 5), which the search found too, and (1, 4), (2, 7), (3, 6), which it did not."""
    pairs = np.array([(1, 4), (1, 5), (2, 7), (3, 6)])

    def names(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
        assert len(graph) == 0
        return CandidateGraph(pairs[:, 0], pairs[:, 1], {"name": np.array([1.0, 0.5, 0.25, 0.125], dtype=np.float32)})

    with channel(names) as name:
        graph = gather_candidates((name, "structure", "rules"), context)
    edges = [(1, 4), (1, 5), (1, 6), (2, 5), (2, 6), (2, 7), (3, 6)]
    assert edges_of(graph) == edges
    assert list(graph.evidence) == ["name", "cosine", "csls", "support"]
    assert column(graph, "name") == {
        **dict.fromkeys(edges, 0.0),
        (1, 4): 1.0,
        (1, 5): 0.5,
        (2, 7): 0.25,
        (3, 6): 0.125,
    }
    vectors = context.embeddings.vectors.astype(np.float64)
    cosines = {
        (s, t): float(vectors[s] @ vectors[t] / np.sqrt(vectors[s] @ vectors[s] * (vectors[t] @ vectors[t])))
        for s, t in edges
        if (s, t) not in ((2, 7), (3, 6))
    }
    # 3 has no vector, and that of 7 has no direction: nothing is further away.
    assert column(graph, "cosine") == pytest.approx({**cosines, (2, 7): -1.0, (3, 6): -1.0}, abs=1e-6)
    means = {1: 0.6, 2: 0.5, 3: 0.0, 4: 0.0, 5: 0.6, 6: 0.6, 7: 0.0}
    expected = {(s, t): 2 * cosine - means[s] - means[t] for (s, t), cosine in column(graph, "cosine").items()}
    assert column(graph, "csls") == pytest.approx(expected, abs=1e-6)
    assert column(graph, "support")[1, 5] > 0.1, "rules use all of them"


def test_a_channel_after_structure_may_add_pairs_and_evidence(context: ChannelContext) -> None:
    def more(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
        joined = joined_with(graph, np.array([(3, 7)]), missing=-1.0)
        return joined.with_evidence(name=np.arange(len(joined), dtype=np.float64))

    with channel(more) as name:
        graph = gather_candidates(("structure", name), context)
    assert edges_of(graph) == [(1, 5), (1, 6), (2, 5), (2, 6), (3, 7)]
    assert graph.column("name").tolist() == [0, 1, 2, 3, 4]
    assert column(graph, "cosine")[3, 7] == column(graph, "csls")[3, 7] == -1.0


def test_no_channel_gives_no_candidates(context: ChannelContext) -> None:
    assert len(gather_candidates((), context)) == 0
    graph = gather_candidates(("rules",), context)
    assert len(graph) == 0
    assert graph.column("support").shape == (0,)
