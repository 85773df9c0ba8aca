"""Test the similarity of two values of each kind by hand."""

from __future__ import annotations

import pytest

from largegnn.literals.comparators import COMPARATORS
from largegnn.literals.profiles import KINDS


@pytest.mark.parametrize(
    ("kind", "left", "right", "low", "high"),
    [
        ("name", "Kurt Gödel", "Godel, Kurt", 1.0, 1.0),
        ("name", "Kurt Gödel", "Alan Turing", 0.0, 0.6),
        ("text", "the red house on the hill", "red house, hill", 1.0, 1.0),
        ("number", "100", "90 kg", 0.9, 0.9),
        ("number", "0", "0.0", 1.0, 1.0),
        ("number", "-5", "5", 0.0, 0.0),
        ("date", "1999-05-17", "1999", 1.0, 1.0),
        ("date", "1999-05-17", "1999-01-01", 1.0, 1.0),
        ("date", "1999-05-17", "17.05.1999", 1.0, 1.0),
        ("date", "1999-05-17", "1999-05-18", 0.7, 0.7),
        ("date", "1999-05-17", "2005", 0.0, 0.0),
        ("code", "978-3-16", "978 3 16", 1.0, 1.0),
        ("code", "A1", "A2", 0.0, 0.0),
        ("code", "--", "--", 0.0, 0.0),
        ("coordinate", "48.8566, 2.3522", "48.8567, 2.3523", 1.0, 1.0),
        ("coordinate", "48.8566, 2.3522", "52.5200, 13.4050", 0.0, 0.0),
        ("truth_value", "yes", "true", 1.0, 1.0),
        ("truth_value", "yes", "0", 0.0, 0.0),
    ],
)
def test_by_hand(kind: str, left: str, right: str, low: float, high: float) -> None:
    compare = COMPARATORS[kind]
    (similarity,) = compare([left], [right])
    assert low - 1e-6 <= similarity <= high + 1e-6
    assert compare([right], [left])[0] == pytest.approx(similarity)
    assert len(compare([], [])) == 0


def test_every_kind_has_a_comparator() -> None:
    assert set(COMPARATORS) == set(KINDS)
