from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, MergedGraph
from largegnn.division.merge import count_merge, merge


def edges_of(graph: MergedGraph) -> dict[tuple[int, int], int]:
    return {
        (node, int(graph.neighbors[at])): int(graph.edge_weights[at])
        for node in range(graph.num_nodes)
        for at in range(graph.neighbor_ptr[node], graph.neighbor_ptr[node + 1])
    }


def test_the_toy_by_hand(toy_task: AlignmentTask) -> None:
    """a = A and c = C are nodes 0 and 2; B, D, E, F follow as 5..8."""
    graph = merge(toy_task)
    assert graph.node_of_entity.tolist() == [0, 1, 2, 3, 4, 0, 5, 2, 6, 7, 8]
    assert graph.node_weights.tolist() == [2, 1, 2, 1, 1, 1, 1, 1, 1]
    expected = {
        (0, 1): 1,
        (0, 2): 2,
        (1, 2): 1,
        (2, 3): 1,
        (3, 4): 1,
        (0, 5): 1,
        (2, 5): 1,
        (2, 6): 1,
        (6, 7): 1,
        (7, 8): 1,
    }
    assert edges_of(graph) == expected | {(b, a): weight for (a, b), weight in expected.items()}
    assert count_merge(graph).num_seed_nodes == 2
    assert count_merge(graph).num_group_nodes == 0


def test_more_seeds_merge_more(toy_task: AlignmentTask) -> None:
    graph = merge(toy_task, "train+valid")
    assert graph.num_nodes == 8
    assert edges_of(graph)[(0, 1)] == 2, "a-b and A-B fall together"


def test_groups_are_contracted_whole_and_loops_go() -> None:
    """1 = 4, 1 = 5 and 2 = 5 are one group of four entities; the triple 1-2 inside it disappears."""
    task = AlignmentTask(
        num_source_entities=3,
        num_target_entities=3,
        num_source_relations=1,
        num_target_relations=1,
        triples=np.array([(0, 0, 1), (1, 0, 2), (2, 0, 0), (3, 1, 4)]),
        train_links=np.array([(1, 4), (1, 5), (2, 5)]),
        valid_links=np.empty((0, 2)),
        test_links=np.empty((0, 2)),
    )
    graph = merge(task)
    assert graph.node_of_entity.tolist() == [0, 1, 1, 2, 1, 1]
    assert edges_of(graph) == {(0, 1): 2, (1, 0): 2, (1, 2): 1, (2, 1): 1}
    counts = count_merge(graph)
    assert (counts.num_group_nodes, counts.num_group_entities) == (1, 4)


@given(st.data())
def test_against_a_literal_count(data: st.DataObject) -> None:
    num_source, num_target = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    source, target = st.integers(0, num_source - 1), st.integers(num_source, num_source + num_target - 1)
    triples = data.draw(
        st.lists(st.tuples(source, st.just(0), source) | st.tuples(target, st.just(1), target), max_size=25)
    )
    links = data.draw(st.lists(st.tuples(source, target), max_size=6, unique=True))
    task = AlignmentTask(
        num_source, num_target, 1, 1, np.array(sorted(triples)), np.array(links), np.empty((0, 2)), np.empty((0, 2))
    )
    graph = merge(task)

    group = {entity: {entity} for entity in range(task.num_entities)}
    for one, other in links:
        joined = group[one] | group[other]
        for entity in joined:
            group[entity] = joined
    representatives = sorted({min(members) for members in group.values()})
    node_of_entity = [representatives.index(min(group[entity])) for entity in range(task.num_entities)]
    assert graph.node_of_entity.tolist() == node_of_entity
    weights = Counter[tuple[int, int]]()
    for head, _, tail in triples:
        one, other = node_of_entity[head], node_of_entity[tail]
        if one != other:
            weights[(one, other)] += 1
            weights[(other, one)] += 1
    assert edges_of(graph) == dict(weights)
