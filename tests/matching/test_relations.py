"""Which relations are aligned: by hand, and against loops over all triples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import MAPPINGS, RelationAlignment
from largegnn.matching.neighbor_rows import neighbor_rows
from largegnn.matching.relations import align_relations, count_relations, counterparts, likelihood
from tests.matching.slow_support import Edge, SlowRelations, make_task

source, target = st.integers(0, 4), st.integers(5, 9)


@given(
    first=st.lists(st.tuples(source, st.integers(0, 1), source), max_size=14),
    second=st.lists(st.tuples(target, st.integers(2, 3), target), max_size=14),
    matched=st.dictionaries(st.tuples(source, target), st.sampled_from([0.25, 0.5, 1.0]), max_size=8),
)
def test_likelihoods_are_their_definition(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]], matched: dict[Edge, float]
) -> None:
    task = make_task(5, 5, first + second, [])
    pairs = np.array(list(matched), dtype=np.int32).reshape(-1, 2)
    sure = np.array(list(matched.values()), dtype=np.float32)
    near = neighbor_rows(task, 0), neighbor_rows(task, 1)
    counts = count_relations(task, *near, counterparts(task, pairs, sure))
    slow = SlowRelations(task, matched)
    for one in range(4):
        for other in range(4):
            expected = slow.likelihood((one >> 1, not one & 1), (2 + (other >> 1), not other & 1))
            assert likelihood(counts, one, other) == pytest.approx(expected, abs=1e-6)


def aligned(num_pairs: int, target_relations: list[int], inverse: bool = False) -> RelationAlignment:
    """Pairs of entities joined by relation 0 in the source, in the target by each of these relations in turn."""
    triples = [(2 * pair, 0, 2 * pair + 1) for pair in range(num_pairs)]
    for pair in range(num_pairs):
        ends = [2 * pair + 2 * num_pairs, 2 * pair + 1 + 2 * num_pairs]
        head, tail = ends[::-1] if inverse else ends
        triples.append((head, target_relations[pair % len(target_relations)], tail))
    task = make_task(2 * num_pairs, 2 * num_pairs, triples, [])
    matched = np.array([(entity, entity + 2 * num_pairs) for entity in range(2 * num_pairs)], dtype=np.int32)
    return align_relations(task, matched, np.ones(len(matched), dtype=np.float32))


def mappings(found: RelationAlignment) -> list[str]:
    return [MAPPINGS[code] for code in found.mappings().tolist()]


def test_the_same_relation() -> None:
    found = aligned(5, [2])
    assert found.pairs.tolist() == [[0, 2]]
    assert found.scores.tolist() == pytest.approx([5.5 / 10])
    assert found.counts.tolist() == [5]
    assert found.source_shares.tolist() == found.target_shares.tolist() == [1.0]
    assert found.examples[0].tolist() == [[0, 1, 10, 11], [2, 3, 12, 13], [4, 5, 14, 15]]
    assert mappings(found) == ["exact"]
    assert not found.is_inverse.any()
    assert found.num_by_mapping() == {"exact": 1, "narrower": 0, "broader": 0, "related": 0}


def test_ends_exchanged() -> None:
    found = aligned(5, [2], inverse=True)
    assert found.is_inverse.tolist() == [True]
    assert found.examples[0, 0].tolist() == [0, 1, 10, 11]


def test_a_broader_relation() -> None:
    """Relation 0 is 2 three times in ten and 3 seven times: it is broader than 2, and the same as 3."""
    found = aligned(20, [2, 3, 3, 2, 3, 3, 2, 3, 3, 3])
    assert found.pairs.tolist() == [[0, 3], [0, 2]]
    assert found.source_shares.tolist() == pytest.approx([0.7, 0.3])
    assert found.target_shares.tolist() == [1.0, 1.0]
    assert mappings(found) == ["exact", "broader"]


def test_once_seen_says_little() -> None:
    found = aligned(1, [2])
    assert found.scores.tolist() == pytest.approx([1.5 / 6])
    assert mappings(found) == ["related"]
    assert found.examples[0].tolist() == [[0, 1, 2, 3], [-1] * 4, [-1] * 4]


def test_nothing_matched() -> None:
    task = make_task(2, 2, [(0, 0, 1), (2, 2, 3)], [])
    assert len(align_relations(task, np.empty((0, 2), dtype=np.int32), np.empty(0, dtype=np.float32))) == 0
    empty = make_task(1, 1, [], [])
    assert len(align_relations(empty, np.array([[0, 1]]), np.ones(1, dtype=np.float32))) == 0
