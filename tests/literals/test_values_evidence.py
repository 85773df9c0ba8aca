"""Test the alignment of predicates, the evidence of equal and different values, and duplicates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from largegnn.artifacts import IntArray, Literals
from largegnn.literals.profiles import profile_predicates
from largegnn.literals.texts import texts_of_side
from largegnn.literals.values_evidence import (
    Correspondence,
    SideValues,
    find_duplicates,
    learn_correspondences,
    value_evidence,
)
from tests.literals.made_literals import literals_of

COUNT = 100


def people(wrong: int = 0) -> Literals:
    """Sources 0..99 have `born` and `code`, targets 100..199 `birth`, `id` and `weight`; some births are wrong."""
    rows = []
    for entity in range(COUNT):
        born = 1800 + 2 * entity
        rows += [(entity, "born", f"{born}-05-17"), (entity, "code", f"X{entity:04}")]
        birth = born + 40 if entity < wrong else born
        rows += [(COUNT + entity, "birth", str(birth)), (COUNT + entity, "id", f"x-{entity:04}")]
        rows += [(COUNT + entity, "weight", str(60 + entity % 7))]
    return literals_of(rows)


def sides(literals: Literals) -> tuple[SideValues, SideValues]:
    both = []
    for first, rows in zip((0, COUNT), literals.rows_of_sides(COUNT), strict=True):
        profiles = profile_predicates(literals, rows, COUNT)
        both.append(SideValues.of(literals, rows, profiles, first, COUNT))
    return both[0], both[1]


def truth() -> IntArray:
    return np.stack([np.arange(COUNT), np.arange(COUNT) + COUNT], axis=1)


def test_predicates_find_their_counterparts() -> None:
    learnt, _ = learn_correspondences(*sides(people(wrong=10)), truth())
    assert {(learnt_pair.source_predicate, learnt_pair.target_predicate) for learnt_pair in learnt} == {
        ("born", "birth"),
        ("code", "id"),
    }
    born = next(learnt_pair for learnt_pair in learnt if learnt_pair.source_predicate == "born")
    assert born.agree_right == pytest.approx((90 + 0.5) / 101)
    assert born.odds_for > 2
    assert born.odds_against > 1


def test_values_that_agree_by_chance_alone_are_no_evidence() -> None:
    rows = [(entity, "p", str(entity % 2)) for entity in range(COUNT)]
    rows += [(COUNT + entity, "q", str(entity // 2 % 2)) for entity in range(COUNT)]
    assert learn_correspondences(*sides(literals_of(rows)), truth()) == ([], [])


def test_nothing_is_learnt_from_too_few_reference_pairs() -> None:
    assert learn_correspondences(*sides(people()), truth()[:19]) == ([], [])


def test_agreement_and_contradiction_of_each_edge() -> None:
    both = sides(people(wrong=10))
    learnt, numbers = learn_correspondences(*both, truth())
    born = next(learnt_pair for learnt_pair in learnt if learnt_pair.source_predicate == "born")
    code = next(learnt_pair for learnt_pair in learnt if learnt_pair.source_predicate == "code")
    sources, targets = np.array([50, 0, 50]), np.array([150, 100, 151])
    agreement, contradiction = value_evidence(*both, learnt, numbers, sources, targets)
    assert agreement.tolist() == pytest.approx([born.odds_for + code.odds_for, code.odds_for, 0.0])
    assert contradiction.tolist() == pytest.approx([0.0, born.odds_against, born.odds_against + code.odds_against])


def test_odds_are_logarithms_within_bounds() -> None:
    learnt_pair = Correspondence("p", "q", "date", 100, 0.8, 0.1)
    assert learnt_pair.odds_for == pytest.approx(math.log(8))
    assert learnt_pair.odds_against == pytest.approx(math.log(0.9 / 0.2))
    certain = Correspondence("p", "q", "date", 100, 1 - 1e-12, 1e-12)
    assert (certain.odds_for, certain.odds_against) == (6.0, 6.0)


def test_duplicates_have_equal_names_and_no_other_value() -> None:
    """0 and 1 agree in name and date, 2 has their name and another date, 4 and 5 have a name and nothing else."""
    rows = [(0, "label", "Ada L"), (0, "born", "1815"), (1, "label", "ada l."), (1, "born", "1815-12-10")]
    rows += [(2, "label", "Ada L"), (2, "born", "1901"), (4, "label", "Bob"), (5, "label", "BOB")]
    rows += [(10 + number, "label", "Smith") for number in range(6)]
    literals = literals_of(rows)
    rows_of_side = slice(0, len(literals))
    profiles = profile_predicates(literals, rows_of_side, 20)
    texts = texts_of_side(literals, rows_of_side, profiles, {}, np.empty((0, 3), dtype=np.int64))
    values = SideValues.of(literals, rows_of_side, profiles, 0, 20)
    assert find_duplicates(texts, values).tolist() == [[0, 1], [4, 5]]
    nothing = literals_of([])
    none = SideValues.of(nothing, slice(0, 0), {}, 0, 20)
    assert find_duplicates(
        texts_of_side(nothing, slice(0, 0), {}, {}, np.empty((0, 3), dtype=np.int64)), none
    ).shape == (0, 2)
