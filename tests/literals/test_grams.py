"""Test the TF-IDF of n-grams against a slow count, and the nearest texts against all products."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largegnn.literals.grams import GramSpace, Texts

TEXT = st.text(alphabet="abz09 ", max_size=12).map(lambda text: " ".join(text.split()))


def slow_vector(text: str, texts: list[str]) -> dict[str, float]:
    def grams(text: str) -> list[str]:
        padded = f" {text} "
        return [padded[start : start + size] for size in (2, 3, 4) for start in range(len(padded) - size + 1)]

    frequency = Counter(gram for text in texts for gram in set(grams(text)))
    weights = {
        gram: (1 + math.log(count)) * (math.log((1 + len(texts)) / (1 + frequency[gram])) + 1)
        for gram, count in Counter(grams(text)).items()
    }
    if not text:
        return {}
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return {gram: weight / length for gram, weight in weights.items()} if length else {}


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=6), st.lists(TEXT, min_size=1, max_size=6))
def test_cosines_equal_those_of_a_slow_count(left: list[str], right: list[str]) -> None:
    pairs = np.array([(i, j) for i in range(len(left)) for j in range(len(right))])
    found = GramSpace.of(left, right).cosines(pairs[:, 0], pairs[:, 1])
    for (i, j), value in zip(pairs.tolist(), found.tolist(), strict=True):
        first, second = slow_vector(left[i], left + right), slow_vector(right[j], left + right)
        assert math.isclose(value, sum(first[gram] * second.get(gram, 0.0) for gram in first), abs_tol=1e-4)


@pytest.mark.parametrize("work", [200_000_000, 2_000])
def test_the_nearest_are_those_of_all_products(monkeypatch: pytest.MonkeyPatch, work: int) -> None:
    monkeypatch.setattr("largegnn.literals.grams._MIN_PRODUCTS", work)
    monkeypatch.setattr("largegnn.literals.grams._PRODUCTS_PER_TEXT", 1)
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)]
    left, right = words[:30], words[30:]
    space = GramSpace.of(left, right)
    found = space.nearest(3)
    allowed = set(space._searched_grams().grams.tolist())
    assert allowed
    products = np.array([[searched_product(one, other, words, allowed) for other in right] for one in left])
    for row in range(30):
        best = {(round(value, 5), column) for column, value in enumerate(products[row].tolist()) if value > 0}
        for column in sorted(best, key=lambda entry: (-entry[0], entry[1]))[:3]:
            assert column[1] in found[1][found[0] == row]


def searched_product(one: str, other: str, texts: list[str], allowed: set[int]) -> float:
    vectors = slow_vector(one, texts), slow_vector(other, texts)
    return sum(weight * vectors[1].get(gram, 0.0) for gram, weight in vectors[0].items() if number_of(gram) in allowed)


def number_of(gram: str) -> int:
    number = 0
    for symbol in gram:
        number = number << 6 | " abcdefghijklmnopqrstuvwxyz0123456789".index(symbol)
    return number + {2: 0, 3: 1 << 12, 4: (1 << 12) + (1 << 18)}[len(gram)]


def test_expensive_grams_are_left_out_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.literals.grams._MIN_PRODUCTS", 1_000_000)
    monkeypatch.setattr("largegnn.literals.grams._PRODUCTS_PER_TEXT", 1)
    texts = [f"common {number}" for number in range(2_000)]
    space = GramSpace.of(texts, texts)
    allowed = space._searched_grams().grams
    costs = space.documents[0].astype(np.int64) * space.documents[1]
    present = np.flatnonzero(costs)
    assert 0 < len(allowed) < len(present)
    assert costs[allowed].sum() <= 1_000_000
    assert costs[np.setdiff1d(present, allowed)].min() >= costs[allowed].max()


def test_a_search_in_ranges_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts with equal products lie in several ranges: the first of them are kept."""
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abc"), 4)) for _ in range(400)]
    space = GramSpace.of(words[:200], words[200:])
    whole, pairs = space.nearest(4), (np.arange(200), np.arange(200)[::-1])
    cosines = space.cosines(*pairs)
    for name, size in (("_CORPUS_TEXTS", 30), ("_MIN_PIECE_TEXTS", 17), ("_MIN_PIECE_PAIRS", 23)):
        monkeypatch.setattr(f"largegnn.literals.grams.{name}", size)
    monkeypatch.setattr("largegnn.machine.pieces.num_processors", lambda: 3)
    again = GramSpace.of(words[:200], words[200:])
    for rows, rows_again in zip(whole, again.nearest(4), strict=True):
        assert np.array_equal(rows, rows_again)
    assert np.array_equal(cosines, again.cosines(*pairs))


def test_texts_are_symbols_between_spaces() -> None:
    texts = Texts.of(["ab", "", "z 9"])
    assert texts.symbols.tolist() == [0, 1, 2, 0, 0, 0, 0, 26, 0, 36, 0]
    assert texts.ptr.tolist() == [0, 4, 6, 11]


def test_no_texts() -> None:
    none = np.empty(0, dtype=np.int64)
    assert len(GramSpace.of([], []).nearest(3)[0]) == 0
    assert len(GramSpace.of([], []).cosines(none, none)) == 0
    assert len(GramSpace.of(["ab", ""], [""]).nearest(3)[0]) == 0
    assert GramSpace.of([""], [""]).cosines(np.array([0]), np.array([0])).tolist() == [0.0]
