from __future__ import annotations

from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.data import vocabulary
from largegnn.data.batch import TripleBatch
from largegnn.data.coding import code_batches, number_triples
from largegnn.data.iri import decode_names, encode_names
from largegnn.data.vocabulary import lookup, number_names, scramble, sorted_distinct, to_strings

NAMES = st.text(min_size=1, max_size=8)
TRIPLES = st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=40)


def batch(rows: list[tuple[str, str, str]]) -> TripleBatch:
    heads, relations, tails = (pl.Series([row[column] for row in rows], dtype=pl.String) for column in range(3))
    return TripleBatch(heads, relations, tails)


@given(TRIPLES, st.integers(1, 7), st.randoms(use_true_random=False))
def test_numbering_keeps_the_triples_and_forgets_their_order(
    rows: list[tuple[str, str, str]], size: int, random: Random
) -> None:
    def number(ordered: list[tuple[str, str, str]]) -> tuple[list[str], list[str], list[list[int]]]:
        graph = code_batches((batch(ordered[first : first + size]) for first in range(0, len(ordered), size)), False)
        entities, relations = number_names(graph.entity_names, 1), number_names(graph.relation_names, 3)
        return entities.to_list(), relations.to_list(), number_triples(graph, entities, relations).tolist()

    entities, relations, triples = number(rows)
    assert {(entities[head], relations[middle], entities[tail]) for head, middle, tail in triples} == set(rows)
    assert triples == sorted(triples)
    assert len(triples) == len(set(rows))
    shuffled = rows + rows[:3]
    random.shuffle(shuffled)
    assert number(shuffled) == (entities, relations, triples)


def test_the_shuffle_is_fixed_for_ever() -> None:
    # Run folders store ids: a change of the numbering would make every stored run wrong.
    assert scramble(8, 1).tolist() == [1, 0, 2, 7, 4, 3, 6, 5]
    assert scramble(8, 2).tolist() == [0, 5, 2, 3, 7, 4, 6, 1]


def test_equal_names_get_unrelated_ids_on_the_two_sides() -> None:
    names = pl.Series([f"entity {number}" for number in range(5000)])
    source, target = number_names(names, 1), number_names(names, 2)
    correlation = np.corrcoef(lookup(names, source), lookup(names, target))[0, 1]
    assert abs(correlation) < 0.05
    assert abs(np.corrcoef(lookup(names, source), np.arange(5000))[0, 1]) < 0.05


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=30))
def test_sorted_distinct_rows_small_and_huge(rows: list[tuple[int, int]]) -> None:
    array = np.array(rows, dtype=np.int32).reshape(-1, 2)
    expected = [list(row) for row in sorted(set(rows))]
    assert sorted_distinct(array, (7, 3)).tolist() == expected
    assert sorted_distinct(array, (2**40, 2**40)).tolist() == expected, "keys that do not fit in 63 bits"


def test_lookup_says_what_is_not_there() -> None:
    assert lookup(pl.Series(["b", "x", "a"]), pl.Series(["a", "b"])).tolist() == [1, -1, 0]


@given(st.lists(st.text(max_size=12), unique=True))
def test_strings_survive(strings: list[str]) -> None:
    table = to_strings(pl.Series(strings, dtype=pl.String))
    assert list(table) == strings


def test_strings_of_several_pieces_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "_NAMES_PER_CHUNK", 2)
    strings = ["", "Ödön", "b", "", "cc", "d" * 9, ""]
    assert list(to_strings(pl.Series(strings))) == strings
    assert list(to_strings(pl.Series([], dtype=pl.String))) == []


@given(
    st.lists(st.text(min_size=1, max_size=12) | st.sampled_from(["http://a/b", "_:x", "urn:largegnn:R", "R14", 'a"b']))
)
def test_any_name_fits_in_an_iri_and_comes_back(names: list[str]) -> None:
    column = pl.Series(names, dtype=pl.String)
    encoded = encode_names(column)
    assert decode_names(encoded).to_list() == names
    assert not any(character in name for name in encoded for character in '<>"{}|^`\\ \n\t')
