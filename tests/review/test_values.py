"""Test the comparison of the values of two entities against tables by hand."""

from __future__ import annotations

from largegnn.artifacts.literals import Literals
from largegnn.review.values import ValueRow, _row, compare_values, values_of
from tests.review.small_alignment import B2, B, toy_literals


def test_by_hand() -> None:
    rows = compare_values(toy_literals(), B, B2)
    assert rows == (
        ValueRow("label", "label", ("das b @de", "the\n b @en"), ("B of the target @en",), "different"),
        ValueRow("height", "height", ("3",), ("3",), "same"),
        ValueRow("note", "", ("<script>alert(1)</script>",), (), "source only"),
        ValueRow("", "colour", (), ("red",), "target only"),
    )


def test_corresponding_predicates_are_in_one_row() -> None:
    rows = compare_values(toy_literals(), B, B2, [("http://x.org/note", "http://x.org/colour")])
    assert (rows[0].source_predicate, rows[0].target_predicate, rows[0].state) == ("note", "colour", "different")
    assert [row.source_predicate for row in rows] == ["note", "label", "height"]


def test_entities_without_values_have_no_rows() -> None:
    assert compare_values(Literals.empty(), B, B2) == ()
    assert values_of(toy_literals(), 0) == {}


def test_values_that_people_read_as_equal_are_the_same() -> None:
    for left, right, state in (
        ("lacrimal apparatus @en", "Lacrimal_Apparatus", "same"),
        ("-5", "5", "different"),
        ("a@b.org", "b@b.org", "different"),
    ):
        assert _row("p", "q", [left], [right]).state == state
