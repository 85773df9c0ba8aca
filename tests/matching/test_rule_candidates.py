"""Candidates by walking: pairs next to matched pairs, by hand."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask
from largegnn.matching.neighbor_rows import neighbor_rows
from largegnn.matching.relations import count_relations, counterparts
from largegnn.matching.rule_candidates import propose_pairs
from tests.matching.slow_support import Edge, make_task

Triple = tuple[int, int, int]


def world(
    num_pairs: int, source: list[Triple], target: list[Triple], num_more: int
) -> tuple[AlignmentTask, list[Edge]]:
    """Pairs joined by 0 and 2, and by 1 and 3, all matched, which teach the relations; then `num_more` entities."""
    size = 2 * num_pairs + num_more
    known = [(2 * pair, pair % 2, 2 * pair + 1) for pair in range(num_pairs)]
    triples = known + [(head + size, relation + 2, tail + size) for head, relation, tail in known]
    triples += source + [(head + size, relation, tail + size) for head, relation, tail in target]
    return make_task(size, size, triples, []), [(entity, entity + size) for entity in range(2 * num_pairs)]


def propose(task: AlignmentTask, matched: list[Edge], number: int, allowed: set[int] | None = None) -> list[Edge]:
    rows = counterparts(task, np.array(matched, dtype=np.int32), np.ones(len(matched), dtype=np.float32))
    near = neighbor_rows(task, 0), neighbor_rows(task, 1)
    counts = count_relations(task, *near, rows)
    mask = np.ones(task.num_entities, dtype=bool)
    if allowed is not None:
        mask[:] = False
        mask[list(allowed)] = True
    found = propose_pairs(task, near[0], rows, counts, mask, number)
    return [(int(one), int(other)) for one, other in found]


def test_along_a_relation_and_back_along_the_one_that_answers_to_it() -> None:
    """Entity 40 leads to 1 by relation 0; in the target 40 leads to 1 by relation 2, and 41 by relation 3."""
    task, matched = world(20, [(40, 0, 1)], [(40, 2, 1), (41, 3, 1)], 2)
    size = task.num_source_entities
    assert propose(task, matched, 5, {40, size + 40, size + 41}) == [(40, size + 40)]
    # The other way round, as often: 1 leads to 40.
    task, matched = world(20, [(1, 0, 40)], [(1, 2, 40), (41, 2, 1)], 2)
    assert propose(task, matched, 5, {40, size + 40, size + 41}) == [(40, size + 40)]


def test_the_strongest_few() -> None:
    """40 shares 1 and 3 with the target's 41, 1 alone with 40 and 42."""
    task, matched = world(20, [(40, 0, 1), (40, 1, 3)], [(40, 2, 1), (41, 2, 1), (41, 3, 3), (42, 2, 1)], 3)
    size = task.num_source_entities
    allowed = {40, size + 40, size + 41, size + 42}
    assert propose(task, matched, 1, allowed) == [(40, size + 41)]
    found = propose(task, matched, 2, allowed)
    assert found[0] == (40, size + 41)
    assert len(found) == 2
    assert len(propose(task, matched, 5, allowed)) == 3
    assert propose(task, matched, 5, {40}) == propose(task, matched, 5, allowed - {40}) == []


def test_what_leads_to_many_is_not_walked() -> None:
    for many, expected in ((40, 1), (60, 0)):
        source = [(40, 0, 1)]
        target = [(40 + entity, 2, 1) for entity in range(many)]
        task, matched = world(20, source, target, 60)
        allowed = {40} | set(range(task.num_source_entities, task.num_entities))
        assert len(propose(task, matched, 1, allowed)) == expected
