"""Test that spellings that people read as the same become equal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.literals.normalise import MAX_CHARS, normalise, split_identifier


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Gödel, Kurt", "godel kurt"),
        ("  A  --  B ", "a b"),
        ("ﬁnal", "final"),
        ("Αθήνα", "athina"),
        ("北京", "beijing"),
        ("№ 5", "no 5"),
        ("!!!", ""),
        ("", ""),
    ],
)
def test_by_hand(text: str, expected: str) -> None:
    assert normalise([text]) == [expected]


@given(st.lists(st.text(max_size=50)))
def test_any_text_becomes_plain_words(texts: list[str]) -> None:
    found = normalise(texts)
    assert len(found) == len(texts)
    for text in found:
        assert text == text.strip()
        assert not set(text) - set("abcdefghijklmnopqrstuvwxyz0123456789 ")
    assert normalise(found) == found


def test_long_texts_are_truncated() -> None:
    assert normalise(["a" * 10_000_000]) == ["a" * MAX_CHARS]


def test_identifiers_are_words() -> None:
    assert split_identifier("birthDate_of-HTTPServer") == "birth Date of HTTP Server"
