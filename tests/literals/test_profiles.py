"""Test that the kind of a predicate follows from its values, and that well-known predicates hold names."""

from __future__ import annotations

import pytest

from largegnn.literals.profiles import profile_predicates
from tests.literals.made_literals import literals_of


@pytest.mark.parametrize(
    ("predicate", "values", "kind"),
    [
        ("http://x/p1", ["Ada Lovelace", "Alan Turing", "Kurt Gödel", "Emmy Noether"], "name"),
        ("http://x/p2", ["a long text about many things, " * 8] * 4, "text"),
        ("http://x/p3", ["1", "22", "3.5", "17 kg"], "number"),
        ("http://x/p4", ["1999", "2001-02", "2010-05-17", "2020"], "date"),
        ("http://x/p5", ["A1-2233", "B7-9981", "C9-1122", "D0-3344"], "code"),
        ("http://x/p6", ["48.85, 2.35", "52.52, 13.40", "51.50, -0.12", "40.71, -74.00"], "coordinate"),
        ("http://x/p7", ["true", "false", "true", "true"], "truth_value"),
        ("http://www.w3.org/2000/01/rdf-schema#label", ["red", "red", "red", "red"], "name"),
        ("http://x/colour", ["red", "red", "red", "blue"] * 10, "text"),
        ("http://x/p8", ["  ", "", " ", "\t"], "text"),
    ],
)
def test_kinds(predicate: str, values: list[str], kind: str) -> None:
    literals = literals_of([(entity, predicate, value) for entity, value in enumerate(values)])
    (profile,) = profile_predicates(literals, slice(0, len(literals)), 2 * len(values)).values()
    assert profile.kind == kind
    assert (profile.predicate, profile.num_values) == (predicate, len(values))
    assert (profile.coverage, profile.functional) == (0.5, 1.0)
    assert len(profile.examples) <= 3


def test_shares_are_of_entities_and_values() -> None:
    literals = literals_of([(0, "p", "a b"), (0, "p", "c d"), (1, "p", "a b")])
    (profile,) = profile_predicates(literals, slice(0, 3), 4).values()
    assert profile.coverage == 0.5
    assert profile.functional == pytest.approx(2 / 3)
    assert profile.distinct == pytest.approx(2 / 3)
