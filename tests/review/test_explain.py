"""Test explanations by hand: state, candidates, other matches of the candidates, and matched neighbours."""

from __future__ import annotations

import dataclasses
import json

import pytest

from largegnn.artifacts import AlignmentTask, RelationAlignment, TaskNames, to_plain
from largegnn.review.explain import CandidateExplanation, Explainer, NeighborExplanation
from tests.review.small_alignment import B2, D2, E2, F2, B, D, E, no_candidates, toy_alignment

UNKNOWN = RelationAlignment.empty()


@pytest.fixture
def explainer(toy_task: AlignmentTask, toy_names: TaskNames) -> Explainer:
    return Explainer(toy_task, toy_names, toy_alignment(), UNKNOWN, "train")


def candidates(explainer: Explainer, entity: int) -> list[tuple[str, str, int | None, bool, str | None]]:
    return [
        (found.source, found.target, found.rank, found.accepted, found.matched_elsewhere)
        for found in explainer.explain(entity).candidates
    ]


def test_an_aligned_entity(explainer: Explainer) -> None:
    found = explainer.explain(D)
    assert (found.entity, found.side, found.state, found.seed_partner) == ("d", "source", "aligned", None)
    best, second = found.candidates
    assert (best.source, best.target, best.rank, best.mutual, best.accepted) == ("d", "D", 1, True, True)
    assert (best.score, best.margin, best.confidence) == pytest.approx((1.6, 0.4, 0.8))
    assert best.evidence == pytest.approx({"cosine": 0.8, "support": 1.0})
    assert best.matched_elsewhere is None
    assert (second.target, second.rank, second.mutual, second.accepted) == ("E", 2, False, False)
    assert second.matched_elsewhere is None


def test_ranks_are_those_of_the_entity_asked_about(explainer: Explainer) -> None:
    """D ranks d first, then e, then b, whatever rank D has for them."""
    found = explainer.explain(D2)
    assert (found.entity, found.side) == ("D", "target")
    assert candidates(explainer, D2) == [
        ("d", "D", 1, True, None),
        ("e", "D", 2, False, None),
        ("b", "D", 3, False, "B"),
    ]
    assert [candidate.score for candidate in found.candidates] == pytest.approx([1.6, 1.2, 0.6])


def test_an_unmatched_entity_and_its_rivals(explainer: Explainer) -> None:
    assert explainer.explain(E).state == "not mutual"
    assert candidates(explainer, E) == [("e", "D", 1, False, "d"), ("e", "E", 2, False, None)]
    assert candidates(explainer, E2) == [("e", "E", 1, False, None), ("d", "E", 2, False, "D")]


def test_a_seed_names_its_partner(explainer: Explainer) -> None:
    for entity, side, partner in ((0, "source", "A"), (7, "target", "c")):
        found = explainer.explain(entity)
        assert (found.state, found.side, found.seed_partner, found.candidates) == ("seed", side, partner, ())


def test_an_entity_without_candidates(explainer: Explainer) -> None:
    found = explainer.explain(F2)
    assert (found.entity, found.state, found.seed_partner, found.candidates) == ("F", "isolated", None, ())


def neighbors(explainer: Explainer, source: int, target: int) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in candidate(explainer, source, target).matched_neighbors]


def candidate(explainer: Explainer, source: int, target: int) -> CandidateExplanation:
    names = "abcdeABCDEF"
    found = explainer.explain(source).candidates
    return next(one for one in found if one.target == names[target])


def test_matched_neighbours_by_hand(explainer: Explainer) -> None:
    """The neighbours of b are a (r from a) and c (s to c), those of B are A (p from A) and C (q to C).

    (a, A) and (c, C) are seeds. a reaches two entities by r, and A two by p: a weight of 2^-0.25 on either side. Only b
    reaches c by s, and only B reaches C by q: a weight of 1. The likelihood of unknown relations is a tenth.
    """
    strong, weak = candidate(explainer, B, B2).matched_neighbors
    assert strong == NeighborExplanation("c", "C", ("s",), ("q",), strong.weight)
    assert strong.weight == pytest.approx(0.1)
    assert weak == NeighborExplanation("a", "A", ("^r",), ("^p",), weak.weight)
    assert weak.weight == pytest.approx(2**-0.5 / 10)
    assert neighbors(explainer, D, D2) == [("c", "C")], "c and C are seeds; e = E is not mutual"
    assert neighbors(explainer, E, E2) == [("d", "D")], "accepted pairs count as well"
    assert neighbors(explainer, E, D2) == []
    assert neighbors(explainer, B, D2) == [("c", "C")]


def test_both_ends_give_the_same_reasons(explainer: Explainer) -> None:
    from_source = {(c.source, c.target): c for entity in range(5) for c in explainer.explain(entity).candidates}
    from_target = {(c.source, c.target): c for entity in range(5, 11) for c in explainer.explain(entity).candidates}
    assert from_source.keys() == from_target.keys()
    for pair, found in from_source.items():
        assert found.matched_neighbors == from_target[pair].matched_neighbors
        assert (found.score, found.evidence) == (from_target[pair].score, from_target[pair].evidence)


def test_the_protocol_decides_who_is_a_seed(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    honest = Explainer(toy_task, toy_names, toy_alignment(), UNKNOWN, "train")
    paper = Explainer(toy_task, toy_names, toy_alignment(), UNKNOWN, "train+valid")
    assert honest.explain(B).seed_partner is None
    assert paper.explain(B).seed_partner == "B"


def test_an_explanation_is_plain_values(explainer: Explainer) -> None:
    plain = json.loads(json.dumps(to_plain(explainer.explain(B))))
    assert plain["entity"] == "b"
    assert plain["candidates"][0]["matched_neighbors"][1]["source_relations"] == ["^r"]
    assert plain["candidates"][0]["evidence"].keys() == {"cosine", "support"}


def test_nothing_to_explain(toy_task: AlignmentTask, toy_names: TaskNames) -> None:
    no_seeds = dataclasses.replace(toy_task, train_links=toy_task.train_links[:0])
    found = Explainer(no_seeds, toy_names, no_candidates("not covered"), UNKNOWN, "train").explain(D)
    assert (found.state, found.seed_partner, found.candidates) == ("not covered", None, ())


def test_the_way_to_the_nearest_seed(explainer: Explainer) -> None:
    """a and c are seeds. The only neighbour of e is d, and c is a neighbour of d."""
    path = explainer.explain(E).path_to_seed
    assert path is not None
    assert path[-1].entity in ("a", "c")
    assert explainer.explain(0).path_to_seed == (), "a seed itself"
