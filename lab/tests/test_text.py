"""Figures as text, by hand."""

from __future__ import annotations

import pytest

from lab.text import difference, difference_text, mean_text, share_text


@pytest.mark.parametrize(("value", "text"), [(0.5, ".500"), (1.0, "1.000"), (0.0004, ".000"), (-0.0125, "-.013")])
def test_a_share_has_three_digits(value: float, text: str) -> None:
    assert share_text(value) == text


def test_several_values_have_their_sample_deviation() -> None:
    assert mean_text([0.5]) == ".500"
    assert mean_text([0.4, 0.6]) == ".500 ± .141"


def test_a_difference_has_the_deviations_of_both_ends() -> None:
    gain, deviation = difference([0.4, 0.6], [0.5, 0.8])
    assert (gain, deviation) == pytest.approx((-0.15, (0.02 + 0.045) ** 0.5))
    assert difference_text(gain, deviation) == "-.150 ± .255"
    assert difference([0.7], [0.2, 0.4])[1] == pytest.approx(0.02**0.5), "one run has none"
    assert difference_text(0.25, 0.0) == "+.250 ± .000"
