"""How alike two values of one kind are, by hand."""

from __future__ import annotations

import pytest

from largegnn.literals import comparators
from largegnn.literals.comparators import Comparator


@pytest.mark.parametrize(
    ("compare", "left", "right", "low", "high"),
    [
        (comparators.names, "Kurt Gödel", "Godel, Kurt", 1.0, 1.0),
        (comparators.names, "Kurt Gödel", "Alan Turing", 0.0, 0.6),
        (comparators.texts, "the red house on the hill", "red house, hill", 1.0, 1.0),
        (comparators.numbers, "100", "90 kg", 0.9, 0.9),
        (comparators.numbers, "0", "0.0", 1.0, 1.0),
        (comparators.numbers, "-5", "5", 0.0, 0.0),
        (comparators.dates, "1999-05-17", "1999", 1.0, 1.0),
        (comparators.dates, "1999-05-17", "1999-01-01", 1.0, 1.0),
        (comparators.dates, "1999-05-17", "17.05.1999", 1.0, 1.0),
        (comparators.dates, "1999-05-17", "1999-05-18", 0.7, 0.7),
        (comparators.dates, "1999-05-17", "2005", 0.0, 0.0),
        (comparators.codes, "978-3-16", "978 3 16", 1.0, 1.0),
        (comparators.codes, "A1", "A2", 0.0, 0.0),
        (comparators.codes, "--", "--", 0.0, 0.0),
        (comparators.coordinates, "48.8566, 2.3522", "48.8567, 2.3523", 1.0, 1.0),
        (comparators.coordinates, "48.8566, 2.3522", "52.5200, 13.4050", 0.0, 0.0),
        (comparators.truth_values, "yes", "true", 1.0, 1.0),
        (comparators.truth_values, "yes", "0", 0.0, 0.0),
    ],
)
def test_by_hand(compare: Comparator, left: str, right: str, low: float, high: float) -> None:
    (found,) = compare([left], [right])
    assert low - 1e-6 <= found <= high + 1e-6
    assert compare([right], [left])[0] == pytest.approx(found)
    assert len(compare([], [])) == 0
