from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from largegnn.artifacts import AlignmentTask, CandidateGraph, FloatArray
from largegnn.matching.neighbor_rows import neighbor_rows
from largegnn.matching.relations import count_relations, counterparts, likelihood
from largegnn.matching.support import SupportFinder
from tests.matching.slow_support import Edge, likely_slowly, make_task, support_slowly


def make_graph(scores: dict[Edge, float]) -> tuple[CandidateGraph, FloatArray]:
    ends = np.array(sorted(scores), dtype=np.int32).reshape(-1, 2)
    values = np.array([scores[edge] for edge in sorted(scores)], dtype=np.float32)
    return CandidateGraph(ends[:, 0], ends[:, 1], {"cosine": np.clip(values, -1, 1)}), values


@st.composite
def cases(draw: st.DrawFn) -> tuple[AlignmentTask, dict[Edge, float]]:
    """Five entities a side, any triples, self-loops and parallel ones too, seeds, and candidates with scores."""
    source, target = st.integers(0, 4), st.integers(5, 9)
    triples = draw(st.lists(st.tuples(source, st.integers(0, 1), source), max_size=14)) + draw(
        st.lists(st.tuples(target, st.integers(2, 3), target), max_size=14)
    )
    seeds = draw(st.sets(st.tuples(source, target), max_size=4))
    edges = draw(st.sets(st.tuples(source, target), max_size=10))
    # Odd multiples of powers of two that no support can make equal: a tie would be decided by rounding.
    values = draw(st.permutations(range(len(edges))))
    scores = {edge: 0.0625 * value + 0.001 * value**2 for edge, value in zip(sorted(edges), values, strict=True)}
    return make_task(5, 5, triples, sorted(seeds)), scores


@given(case=cases(), weight=st.sampled_from([0.0, 0.3, 1.0]), passes=st.integers(0, 3))
def test_support_is_its_definition(case: tuple[AlignmentTask, dict[Edge, float]], weight: float, passes: int) -> None:
    task, scores = case
    expected, support = dict(scores), dict.fromkeys(scores, 0.0)
    seeds = {(int(source), int(target)): 1.0 for source, target in task.train_links}
    for _ in range(passes):
        matched = dict(seeds)
        for edge, certainty in likely_slowly(expected).items():
            matched[edge] = min(matched.get(edge, 0.0) + certainty, 1.0)
        support = {edge: support_slowly(task, edge, matched) for edge in scores}
        expected = {edge: score + weight * support[edge] for edge, score in scores.items()}
    graph, values = make_graph(scores)
    before = values.copy()
    supported, found = SupportFinder(task, task.train_links, weight).add_to(graph, values, passes)
    assert found.dtype == supported.dtype == np.float32
    assert found.tolist() == pytest.approx([support[edge] for edge in sorted(scores)], abs=1e-5)
    assert supported.tolist() == pytest.approx([expected[edge] for edge in sorted(scores)], abs=1e-5)
    assert np.array_equal(values, before)


def test_a_relation_that_reaches_many_says_less() -> None:
    """Source 0 - 1 by a relation of its own, 0 - 2 by one with which 2 reaches 0, 3 and 4; the same in the target.

    0   --r-- 1     3 --s-- 2 --s-- 4        5 --p-- 6, 5 --q-- 7, 8 --q-- 7, 9 --q-- 7
    No two seeds are joined, so nothing is known of relations: all are alike with a likelihood of a tenth.
    Between 0 and 5: seed (1, 6) adds a tenth, seed (2, 7) that times 3^-1/4 on either side.
    """
    triples = [(0, 0, 1), (0, 1, 2), (3, 1, 2), (4, 1, 2), (5, 2, 6), (5, 3, 7), (8, 3, 7), (9, 3, 7)]
    graph, scores = make_graph({(0, 5): 0.5, (0, 6): 0.1})
    for seeds, expected in (
        ([(1, 6)], 1.0),
        ([(2, 7)], 3**-0.5),
        ([(1, 6), (2, 7)], 1 + 3**-0.5),
        ([(1, 7)], 3**-0.25),
        ([(3, 8)], 0.0),
    ):
        task = make_task(5, 5, triples, seeds)
        finder = SupportFinder(task, task.train_links, 0.1)
        matched = counterparts(task, task.train_links, np.ones(len(seeds), dtype=np.float32))
        supported, support = finder.add_to(graph, scores, 1, matched)
        assert support.tolist() == pytest.approx([0.1 * expected, 0.0])
        assert supported.tolist() == pytest.approx([0.5 + 0.01 * expected, 0.1])


def test_relations_that_answer_to_each_other_say_more() -> None:
    """20 pairs of seeds are joined by r and p, as often by s and q: 40 - 41 by r supports 82 - 83 by p, not by q."""
    triples = [(2 * pair, pair % 2, 2 * pair + 1) for pair in range(20)] + [(40, 0, 41)]
    others = [(head + 42, relation + 2, tail + 42) for head, relation, tail in triples]
    seeds = [(entity, entity + 42) for entity in (*range(40), 41)]
    graph, scores = make_graph({(40, 82): 0.5})
    found = {}
    for relation in (2, 3):
        task = make_task(42, 42, [*triples, *others[:-1], (82, relation, 83)], seeds)
        matched = counterparts(task, task.train_links, np.ones(len(seeds), dtype=np.float32))
        (found[relation],) = SupportFinder(task, task.train_links, 0.1).add_to(graph, scores, 1, matched)[1].tolist()
    assert found[2] == pytest.approx(10.5 / 15), "ten times seen together, five unseen times that count a tenth each"
    assert found[3] == pytest.approx(0.5 / 15)


def test_support_ends_at_two() -> None:
    """A star of many rays, each a seed and a relation's only one, and so is the centre."""
    triples = [(0, 0, ray) for ray in range(1, 60)] + [(60, 2, ray) for ray in range(61, 120)]
    task = make_task(60, 60, triples, [(ray, ray + 60) for ray in range(60)])
    graph, scores = make_graph({(0, 60): 0.5})
    for number in (2, 3, 60):
        supported, support = SupportFinder(task, task.train_links[:number], 1.0).add_to(graph, scores)
        rays = number - 1
        assert support.tolist() == pytest.approx([min(rays * (rays + 0.5) / (rays + 5), 2.0)])
        assert supported.tolist() == pytest.approx([0.5 + support[0]])


CHAIN = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (4, 2, 5), (5, 2, 6), (6, 2, 7)]


def test_support_turns_a_wrong_choice_into_the_right_one() -> None:
    """Chains 0 - 1 - 2 - 3 and 4 - 5 - 6 - 7, seed (0, 4); by their vectors 1 and 2 would rather be 6 and 5."""
    scores = {(1, 5): 0.5, (1, 6): 0.55, (2, 5): 0.55, (2, 6): 0.5, (3, 7): 0.9}
    graph, values = make_graph(scores)
    task = make_task(4, 4, CHAIN, [(0, 4)])
    supported, _ = SupportFinder(task, task.train_links, 2.0).add_to(graph, values)
    found = dict(zip(sorted(scores), supported.tolist(), strict=True))
    assert found[1, 5] > found[1, 6]
    assert found[2, 6] > found[2, 5]
    # One pass sees the seed and (3, 7); the next also sees that (1, 5) and (2, 6) speak for each other.
    once, _ = SupportFinder(task, task.train_links, 2.0).add_to(graph, values, passes=1)
    assert supported[0] > once[0]
    unmoved, _ = SupportFinder(task, task.train_links, 0.0).add_to(graph, values)
    assert np.array_equal(unmoved, values)


def test_nothing_to_support() -> None:
    task = make_task(2, 2, [], [])
    finder = SupportFinder(task, task.train_links)
    graph, scores = make_graph({})
    assert [len(part) for part in finder.add_to(graph, scores)] == [0, 0]
    graph, scores = make_graph({(0, 2): 0.5})
    supported, support = finder.add_to(graph, scores)
    assert supported.tolist() == [0.5]
    assert support.tolist() == [0.0]


HUBS = 3  # the first entities of either side


def graph_with_hubs(num_entities: int, offset: int, relation: int) -> list[tuple[int, int, int]]:
    """Hub h leads to every (h + 2)th entity, by two relations in turn; the others form a ring."""
    rays = [(hub, entity % 2, entity) for hub in range(HUBS) for entity in range(HUBS, num_entities, hub + 2)]
    ring = [(entity, 1, HUBS + (entity + 1) % (num_entities - HUBS)) for entity in range(HUBS, num_entities)]
    return [(head + offset, way + relation, tail + offset) for head, way, tail in rays + ring]


@pytest.mark.parametrize("num_seeds", [0, 40, 2000])
def test_support_of_hubs_is_the_product_of_matrices(num_seeds: int) -> None:
    """Long rows against few marks and many, and more targets than the sieve tells apart."""
    number = 6000
    rng = np.random.default_rng(num_seeds)
    # One to one, as else the strongest of several neighbours counts.
    seeds = np.stack([rng.permutation(np.arange(HUBS, number))[:num_seeds] for _ in range(2)], axis=1)
    seeds = seeds + np.array([0, number])
    triples = graph_with_hubs(number, 0, 0) + graph_with_hubs(number, number, 2)
    task = make_task(number, number, triples, [(int(source), int(target)) for source, target in seeds])
    ends = np.concatenate([rng.integers(0, number, (20_000, 2)), rng.integers(0, HUBS, (20, 2))])
    ends = np.concatenate([ends, ends * np.array([1, 0]), ends * np.array([0, 1])])  # every entity with a hub
    ends = np.unique(ends, axis=0) + np.array([0, number])
    scores = (rng.permutation(len(ends)) / 8).astype(np.float32)
    graph = CandidateGraph(ends[:, 0], ends[:, 1])
    near = neighbor_rows(task, 0), neighbor_rows(task, 1)
    matched = counterparts(task, task.train_links, rng.random(num_seeds).astype(np.float32))
    _, found = SupportFinder(task, task.train_links, 0.3).add_to(graph, scores, 1, matched)
    counts = count_relations(task, *near, matched)
    # Of each relation and direction one matrix a side; no two entities are joined twice but hubs.
    expected = np.zeros(len(ends))
    for one in range(4):
        for other in range(4):
            source, target = (
                sparse.csr_array(
                    (row.weights * (row.directed_relations == way), row.ids, row.ptr), shape=(number, number)
                )
                for row, way in zip(near, (one, other), strict=True)
            )
            middle = sparse.csr_array((matched.certainties, matched.ids, matched.ptr), shape=(number, number))
            said = (source @ middle)[ends[:, 0]].multiply(target[ends[:, 1] - number]).sum(axis=1)
            expected += np.asarray(said).ravel() * likelihood(counts, one, other)
    assert (expected > 0).sum() >= min(1000, num_seeds)
    assert np.allclose(found, np.minimum(expected, 2.0), atol=1e-5)


def test_support_is_the_same_where_numba_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    program = """
import numpy as np
from largegnn.artifacts import AlignmentTask, Neighbors
from largegnn.matching.candidates import csls, edge_ranks
from largegnn.matching.union import build_candidates
from largegnn.matching.support import SupportFinder
rng = np.random.default_rng(0)
triples = np.concatenate([rng.integers(0, [30, 2, 30], (60, 3)), rng.integers([30, 2, 30], [60, 4, 60], (60, 3))])
none = np.empty((0, 2), dtype=np.int32)
task = AlignmentTask(30, 30, 2, 2, np.unique(triples, axis=0), np.array([(0, 30), (1, 31)]), none, none)
near = [
    Neighbors(np.arange(30) + own, rng.integers(0, 30, (30, 4)) + other, np.sort(rng.random((30, 4)))[:, ::-1])
    for own, other in ((0, 30), (30, 0))
]
graph = build_candidates(*near)
supported, support = SupportFinder(task, task.train_links).add_to(graph, csls(graph, *near))
for array in (graph.sources, graph.targets, graph.column("cosine"), supported, support, *edge_ranks(graph, supported)):
    print(np.round(array, 5).tolist())
"""
    exec(program, {})
    missing = 'import sys; sys.modules["numba"] = None\n'
    without = subprocess.run(
        [sys.executable, "-W", "error", "-c", missing + program], check=True, capture_output=True, text=True
    )
    assert capsys.readouterr().out == without.stdout
    assert "[" in without.stdout
