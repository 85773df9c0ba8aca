"""Test the conversion of dataclasses to JSON values and back: all outcomes of stages are stored in this way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import from_plain, to_plain
from largegnn.errors import ArtifactError, StorageError


@dataclass(frozen=True)
class Leaf:
    number: int
    share: float | None = None


@dataclass(frozen=True)
class Tree:
    name: str
    is_old: bool
    size: float
    kind: Literal["oak", "elm"]
    first: Leaf | None
    leaves: tuple[Leaf, ...]
    span: tuple[int, str]
    weights: Mapping[str, float]
    by_name: Mapping[str, Leaf | None] = field(default_factory=dict)
    rows: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ArtifactError("not positive")


TREE = Tree(
    name="é",
    is_old=True,
    size=1.5,
    kind="oak",
    first=None,
    leaves=(Leaf(1), Leaf(2, 0.25)),
    span=(3, "m"),
    weights={"a": 0.5, "b": 2.0},
    by_name={"x": Leaf(4), "y": None},
    rows=((1, 2), (), (3,)),
)
PLAIN = {
    "name": "é",
    "is_old": True,
    "size": 1.5,
    "kind": "oak",
    "first": None,
    "leaves": [{"number": 1, "share": None}, {"number": 2, "share": 0.25}],
    "span": [3, "m"],
    "weights": {"a": 0.5, "b": 2.0},
    "by_name": {"x": {"number": 4, "share": None}, "y": None},
    "rows": [[1, 2], [], [3]],
}
LEAVES = st.builds(Leaf, st.integers(), st.none() | st.floats(allow_nan=False))
TREES = st.builds(
    Tree,
    st.text(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.sampled_from(["oak", "elm"]),
    st.none() | LEAVES,
    st.lists(LEAVES, max_size=3).map(tuple),
    st.tuples(st.integers(), st.text()),
    st.dictionaries(st.text(), st.floats(allow_nan=False), max_size=3),
    st.dictionaries(st.text(), st.none() | LEAVES, max_size=3),
    st.lists(st.lists(st.integers(), max_size=3).map(tuple), max_size=3).map(tuple),
)


def test_by_hand() -> None:
    assert to_plain(TREE) == PLAIN
    assert from_plain(Tree, PLAIN) == TREE


@given(tree=TREES)
def test_json_is_read_back(tree: Tree) -> None:
    assert from_plain(Tree, json.loads(json.dumps(to_plain(tree)))) == tree


def test_missing_fields_have_defaults_and_integers_become_floats() -> None:
    assert from_plain(Leaf, {"number": 1}) == Leaf(1, None)
    size = from_plain(Tree, {**PLAIN, "size": 2}).size
    assert size == 2.0
    assert isinstance(size, float)


def test_keys_of_mappings_are_written_as_text() -> None:
    assert to_plain({1: (2, 3)}) == {"1": [2, 3]}
    assert to_plain(Leaf) is Leaf, "a class is not a value"


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        ("name", 1),
        ("name", None),
        ("is_old", 1),
        ("is_old", "true"),
        ("size", "1.5"),
        ("size", True),
        pytest.param("size", 10**400, id="size-huge"),
        ("kind", "pine"),
        ("kind", None),
        ("first", [1]),
        ("first", 1),
        ("first", {"share": 0.5}),
        ("first", {"number": 1.5}),
        ("first", {"number": True}),
        ("first", {"number": 1, "share": "much"}),
        ("leaves", None),
        ("leaves", 3),
        ("leaves", [1]),
        ("leaves", {"number": 1}),
        ("leaves", [{"number": 1}, None]),
        ("span", [3]),
        ("span", [3, "m", 4]),
        ("span", ["m", 3]),
        ("span", "3m"),
        ("weights", [0.5]),
        ("weights", "a"),
        ("weights", {"a": "b"}),
        ("weights", {"a": None}),
        ("by_name", {"x": 1}),
        ("rows", [1]),
        ("rows", [["1"]]),
        ("rows", "12"),
        ("rows", {"1": [1]}),
    ],
)
def test_wrong_shapes_are_refused(field_name: str, value: object) -> None:
    with pytest.raises(StorageError, match="a stored Tree cannot be read"):
        from_plain(Tree, {**PLAIN, field_name: value})


@pytest.mark.parametrize("value", [None, 3, "x", [], [["number", 1]], {}])
def test_values_that_are_not_mappings_are_refused(value: object) -> None:
    with pytest.raises(StorageError, match="a stored Leaf cannot be read"):
        from_plain(Leaf, value)


def test_text_is_not_a_tuple() -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        from_plain(tuple[str, ...], "abc")
    with pytest.raises(StorageError, match="cannot be read"):
        from_plain(tuple[str, ...], {"a": 1})


def test_an_error_of_the_class_is_raised_as_a_storage_error() -> None:
    assert from_plain(Positive, {"number": 1}) == Positive(1)
    with pytest.raises(StorageError, match="not positive"):
        from_plain(Positive, {"number": 0})


def test_long_values_are_truncated_in_the_message() -> None:
    with pytest.raises(StorageError) as error:
        from_plain(Leaf, {"number": "x" * 10_000})
    assert len(str(error.value)) < 300


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PLAIN, "number"]), inner, max_size=4),
    max_leaves=8,
)


@given(values=st.dictionaries(st.sampled_from(sorted(PLAIN)), JSON, max_size=3))
def test_any_json_is_read_completely_or_refused(values: dict[str, Any]) -> None:
    try:
        tree = from_plain(Tree, {**PLAIN, **values})
    except StorageError:
        return
    assert isinstance(tree.leaves, tuple)
    assert all(type(leaf.number) is int for leaf in tree.leaves)
    assert type(tree.size) is float
    assert all(isinstance(row, tuple) for row in tree.rows)
