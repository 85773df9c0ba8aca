"""The check of words: what it finds, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.words import check_text, check_words


@pytest.mark.parametrize(
    "text",
    [
        "relations that answer to each other",
        "Relations that answer\n    # to each other",
        "the training went astray",
        "names that are no IRIs",
        "the surest pairs",
        "weights that stand in",
        "  to do: free some memory",
        "it is handed over to the trainer",
        "a made-up world",
    ],
)
def test_old_words_are_found(text: str) -> None:
    (found,) = check_text(text, is_code=False)
    assert ": write " in found


@pytest.mark.parametrize(
    "text",
    [
        "a graph of two sides, beside the other",
        "how it works, and how: by search",
        "recommended amendments, commended",
        "it has no names; nothing can be done about it",
        "the union of all sets, judged by test links",
        "what a step has at hand in memory",
        'left.join(right, on="name", how="left")',
    ],
)
def test_ordinary_english_is_left_alone(text: str) -> None:
    assert list(check_text(text, is_code=True)) == []


@pytest.mark.parametrize(
    "text",
    ["def run(how: Any)", "beside = 3", "class Recalled:", "def f(x, beside):", "is_there = True", "how = (1, 2)"],
)
def test_old_names_are_found_in_code_alone(text: str) -> None:
    assert len(list(check_text(text, is_code=True))) == 1
    assert list(check_text(text, is_code=False)) == []


def test_findings_have_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("first\nNobody knows.\n", encoding="utf-8")
    assert check_words(tmp_path) == ["docs/page.md:2: 'Nobody': write no entity, no user: name it"]
