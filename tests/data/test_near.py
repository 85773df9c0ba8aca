"""Test finding names that resemble an unknown name."""

from __future__ import annotations

import time

import polars as pl
import pytest

from largegnn.data.near import is_prefixed, near_names
from largegnn.data.shown import listed, shown

KNOWN = pl.Series(
    [
        "http://dbpedia.org/resource/Paris",
        "http://dbpedia.org/resource/Berlin",
        "http://dbpedia.org/resource/K%C3%B6ln",
        "http://x.org/people#Ada_Lovelace",
        "wd:Q42",
        "Rome",
    ]
)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("dbr:Paris", "http://dbpedia.org/resource/Paris"),
        ("https://dbpedia.org/resource/Paris/", "http://dbpedia.org/resource/Paris"),
        ("http://dbpedia.org/resource/berlin", "http://dbpedia.org/resource/Berlin"),
        ("http://dbpedia.org/resource/Berlim", "http://dbpedia.org/resource/Berlin"),
        ("Köln", "http://dbpedia.org/resource/K%C3%B6ln"),
        ("Ada Lovelace", "http://x.org/people#Ada_Lovelace"),
        ("http://www.wikidata.org/entity/Q42", "wd:Q42"),
        ("Rme", None),
        ("Romme", "Rome"),
        ("nothing like it", None),
        ("", None),
        ("/", None),
        ("x" * 60_000, None),
    ],
)
def test_near_names(name: str, near: str | None) -> None:
    assert near_names([name], KNOWN).get(name, [None])[0] == near


def test_prefixed_names_are_told_from_iris() -> None:
    assert is_prefixed(pl.Series(["dbr:Paris", "http://x/y", "plain", "urn:x:y"])).to_list() == [
        True,
        False,
        False,
        True,
    ]


def test_many_names_take_seconds_at_most() -> None:
    known = pl.Series([f"http://x.org/entity/number_{number}" for number in range(200_000)])
    begin = time.process_time()
    near = near_names([f"x:number_{number}x" for number in range(5)], known)
    assert time.process_time() - begin < 5
    assert len(near) == 5
    assert near_names(["a"], pl.Series([], dtype=pl.String)) == {}


def test_long_names_are_cut_and_long_lists_too() -> None:
    assert shown("x" * 100) == "x" * 100
    assert shown("x" * 101) == "x" * 100 + "... (101 characters)"
    assert listed(["a", "b"]) == "a, b"
    assert listed(f"{number}" for number in range(1_000)) == "0, 1, 2, 3, 4, ..."
