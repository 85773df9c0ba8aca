"""Test that numbers, dates, codes, coordinates and truth values are parsed, and that no text makes parsing fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.literals.profiles import is_code, is_coordinate, is_truth_value, parse_date, parse_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-3.5e2", -350),
        ("1,234,567", 1_234_567),
        ("$ 12.50", 12.5),
        ("180 cm", 180),
        ("x", None),
        ("", None),
    ],
)
def test_numbers(text: str, expected: float | None) -> None:
    assert parse_number(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1999", (1999, 0, 0)),
        ("1999-05", (1999, 5, 0)),
        ("1999-05-17", (1999, 5, 17)),
        ("1999-05-17T10:00:00Z", (1999, 5, 17)),
        ("19990517", (1999, 5, 17)),
        ("17.5.1999", (1999, 5, 17)),
        ("17/05/1999", (1999, 5, 17)),
        ("1999-13-01", None),
        ("99999-01-01", None),
        ("tomorrow", None),
    ],
)
def test_dates(text: str, expected: tuple[int, int, int] | None) -> None:
    found = parse_date(text)
    assert (found if found is None else tuple(found)) == expected


def test_codes_coordinates_and_truth_values() -> None:
    assert is_code("978-3-16-148410-0")
    assert is_code("someone@example.org")
    assert not is_code("a plain name")
    assert is_coordinate("48.8566, 2.3522")
    assert is_coordinate("POINT(2.3522 48.8566)")
    assert not is_coordinate("48")
    assert is_truth_value("True")
    assert not is_truth_value("maybe")


@given(st.text())
def test_nothing_fails(text: str) -> None:
    for read in (parse_number, parse_date, is_code, is_coordinate, is_truth_value):
        read(text)
    for read in (parse_number, parse_date):
        read(text * 10_000)
