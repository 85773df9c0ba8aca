"""Claims and their verdicts, by hand; and that every claim is about systems there are."""

from __future__ import annotations

import pytest

from lab import CONFIGS, RESULTS
from lab.claims import CLAIMS, PAPER, claims_section, verdict
from lab.records import Summary, read_results
from lab.systems import SYSTEMS, read_systems


@pytest.mark.parametrize(
    ("ours", "other", "expected"),
    [
        (Summary(0.60, 0.003, 3), Summary(0.57, 0.004, 3), "+.030 ± .005, holds"),
        (Summary(0.57, 0.003, 3), Summary(0.60, 0.004, 3), "-.030 ± .005, **against**"),
        (Summary(0.60, 0.003, 3), Summary(0.604, 0.004, 3), "-.004 ± .005, no difference"),
        (Summary(0.60, 0.003, 3), Summary(0.50, 0.0, 1), "+.100, one run"),
        (Summary(0.60, 0.003, 3), 0.576, "+.024 ± .003, holds"),
        (Summary(0.60, 0.0, 1), 0.576, "+.024, one run"),
    ],
)
def test_verdicts_by_hand(ours: Summary, other: Summary | float, expected: str) -> None:
    assert verdict(ours, other) == expected


def test_claims_are_about_systems_there_are() -> None:
    for claim in CLAIMS:
        assert {claim.system, claim.other} <= {*SYSTEMS, PAPER}


def test_every_claim_is_judged_by_some_set() -> None:
    systems = read_systems(CONFIGS)
    table = claims_section(systems, read_results(RESULTS)).splitlines()
    assert len(table) == 2 + len(CLAIMS)
    for row in table[2:]:
        assert any(word in row for word in ("holds", "against", "no difference")), row


def test_a_set_that_stands_in_for_another_is_not_compared_with_the_paper() -> None:
    systems = read_systems(CONFIGS)
    table = claims_section(systems, read_results(RESULTS)).splitlines()
    names = [cell.strip() for cell in table[0].split("|")]
    cells = [cell.strip() for cell in table[2].split("|")]
    assert "above the paper" in table[2]
    assert cells[names.index("ContEA_FR_EN")] == ""
    assert cells[names.index("EN_FR_15K_V1")] != ""
