"""The pages that show records: up to date, and every figure of the documents has a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import ROOT
from lab.pages import PAPER_PAGE, README, RESULTS_PAGE, few_seeds_table, names_table, render
from lab.traced import FILLED


@pytest.mark.parametrize("path", sorted({README, RESULTS_PAGE, PAPER_PAGE, *FILLED}), ids=lambda path: path.name)
def test_a_page_shows_what_the_records_have(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == render(path), "run `make docs`"


def test_the_paths_of_the_pages_exist() -> None:
    assert all(path.is_relative_to(ROOT) for path in FILLED)


def test_few_seeds_by_hand() -> None:
    plain = {"set": "x", "share": 0.01, "rounds": 0, "hits@1": {"cosine": 0.1, "transport+rules": 0.2}}
    accepted = {"precision": 0.9, "expected": 0.8}
    trained = plain | {"rounds": 3, "hits@1": {"cosine": 0.3, "transport+rules": 0.4}, "accepted": accepted}
    assert few_seeds_table([plain, trained]).splitlines()[2] == "| x | 1% | .100 | .200 | .400 | .900 | .800 |"


def test_names_by_hand() -> None:
    found = {"x 0 auto": 0.9, "x baselines, equal labels": 0.5, "x baselines, n-grams, best cut": 0.6}
    lines = [{"key": key, "set": "x", "partial_f1": value} for key, value in found.items()]
    assert names_table(lines).splitlines()[2] == "| x | .900 | – | – | .500 | .600 |"
