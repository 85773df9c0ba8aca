"""How alike two values of one kind are, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from largegnn.artifacts import FloatArray
from largegnn.errors import InputError
from largegnn.literals import comparators
from largegnn.literals.comparators import COMPARATORS, Comparator, comparator


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


def same_words(left: Sequence[str], right: Sequence[str]) -> FloatArray:
    """A comparator as a user writes one."""
    return np.array(
        [set(one.split()) == set(other.split()) for one, other in zip(left, right, strict=True)], np.float32
    )


def test_comparators_are_found_by_name_or_address() -> None:
    assert all(comparator(name) is found for name, found in COMPARATORS.items())
    own = comparator(f"{__name__}:same_words")
    assert own(["a b", "a"], ["b a", "b"]).tolist() == [1, 0]
    with pytest.raises(InputError, match="no comparator is called 'nonsense'"):
        comparator("nonsense")
