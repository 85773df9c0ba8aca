"""Test finding entities by name: on either side, similar names for an unknown name, and many names fast."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import StringTable
from largegnn.data.names import EntityNames
from largegnn.errors import InputError

BASE = "http://dbpedia.org/resource/"
NAMES = [f"{BASE}Paris", f"{BASE}Berlin", "Q90", "Q64", "both", "only target", "", "é漢 \t"]


@pytest.fixture
def names() -> EntityNames:
    """The source has two IRIs, `both` and `Q90`; the target has `Q64`, `both`, and the other names."""
    source, target = [NAMES[0], NAMES[1], "Q90", "both"], ["both", "Q64", "only target", "", NAMES[7]]
    return EntityNames(StringTable.from_strings(source + target), len(source))


def test_find_by_hand(names: EntityNames) -> None:
    assert names.find(f"{BASE}Paris") == 0
    assert names.find("Q90") == 2
    assert names.find("Q64") == 5
    assert names.find("") == 7
    assert names.find("é漢 \t") == 8
    assert names.find("Q90", "source") == 2
    assert names.find("both", "source") == 3
    assert names.find("both", "target") == 4


def test_a_name_of_both_sides_needs_a_side(names: EntityNames) -> None:
    with pytest.raises(InputError, match="both graphs have an entity 'both'") as error:
        names.find("both")
    assert error.value.fix == "give the side: source or target"
    with pytest.raises(InputError, match="no side 'left'"):
        names.find("both", "left")


def test_a_name_of_the_other_side_is_not_found(names: EntityNames) -> None:
    with pytest.raises(InputError, match="no entity is called 'Q64'") as error:
        names.find("Q64", "source")
    assert error.value.expected == "an entity of the source graph, written as in its file"


def test_many_at_once(names: EntityNames) -> None:
    found = names.find_all(["both", "Q90", "Q64", "unknown", "both"], "target")
    assert found.tolist() == [4, -1, 5, -1, 4]
    assert names.find_all(["both", "Q90", "Q64"], "source").tolist() == [3, 2, -1]
    assert names.find_all([], "source").tolist() == []


@pytest.mark.parametrize(
    ("mistyped", "near"),
    [
        ("http://dbpedia.org/resource/Pariss", f"{BASE}Paris"),
        ("http://dbpedia.org/resource/paris", f"{BASE}Paris"),
        ("dbr:Berlin", f"{BASE}Berlin"),
        ("Berlin", f"{BASE}Berlin"),
        ("only targets", "only target"),
    ],
)
def test_a_mistyped_name_gets_near_ones(names: EntityNames, mistyped: str, near: str) -> None:
    assert names.near(mistyped)[0] == repr(near)
    with pytest.raises(InputError) as error:
        names.find(mistyped)
    assert error.value.fix is not None
    assert error.value.fix.startswith(f"did you mean {near!r}")


def test_what_is_like_nothing_gets_another_hint(names: EntityNames) -> None:
    assert names.near("xylophone") == []
    with pytest.raises(InputError, match="lists the pairs"):
        names.find("xylophone")


def test_three_near_names_are_enough() -> None:
    names = EntityNames(StringTable.from_strings([f"entity{number}" for number in range(10)]), 10)
    assert len(names.near("entity")) == 3


def test_long_names_are_not_repeated_whole(names: EntityNames) -> None:
    with pytest.raises(InputError) as error:
        names.find("x" * 60_000)
    assert len(str(error.value)) < 600
    assert "60,000 characters" in str(error.value)
    long = EntityNames(StringTable.from_strings([f"{BASE}{'y/' * 2_000}Paris"]), 1)
    assert len(long.near("Pariss")[0]) < 200


def test_what_is_no_unicode_is_nobody(names: EntityNames) -> None:
    """A name from the shell may contain an incomplete character."""
    with pytest.raises(InputError, match="no entity is called"):
        names.find("\udcff")
    assert names.find_all(["\udcff"], "source").tolist() == [-1]


@given(
    source=st.lists(st.text(max_size=3), unique=True, max_size=8),
    target=st.lists(st.text(max_size=3), unique=True, max_size=8),
    name=st.text(max_size=3),
)
def test_find_is_a_search_in_a_list(source: list[str], target: list[str], name: str) -> None:
    names = EntityNames(StringTable.from_strings(source + target), len(source))
    for side, known, offset in (("source", source, 0), ("target", target, len(source))):
        for wanted in [name, *known]:
            expected = offset + known.index(wanted) if wanted in known else -1
            assert names.find_all([wanted], side).tolist() == [expected]
            if expected >= 0:
                assert names.find(wanted, side) == expected
    for wanted in {*source, *target} - ({*source} & {*target}):
        assert names.find(wanted) == (source + target).index(wanted)


def test_no_names_at_all() -> None:
    empty = EntityNames(StringTable.from_strings([]), 0)
    assert empty.near("a") == []
    with pytest.raises(InputError, match="no entity is called 'a'"):
        empty.find("a")


class NoCopies(StringTable):
    """A table that fails if it is read name by name."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all names were read one by one")


def test_a_hundred_thousand_names() -> None:
    """Look up a thousand names in a fraction of a second."""
    number = 100_000
    plain = StringTable.from_strings(f"{BASE}Entity_{index}" for index in range(number))
    names = EntityNames(NoCopies(plain.data, plain.data_ptr), number // 2)
    started = time.perf_counter()
    wanted = np.random.default_rng(0).integers(0, number, 1_000).tolist()
    assert [names.find(f"{BASE}Entity_{index}") for index in wanted] == wanted
    assert names.find_all([f"{BASE}Entity_{index}" for index in wanted], "source").tolist() == [
        index if index < number // 2 else -1 for index in wanted
    ]
    assert time.perf_counter() - started < 5
    assert names.near(f"{BASE}Entity_123")
    assert time.perf_counter() - started < 20
