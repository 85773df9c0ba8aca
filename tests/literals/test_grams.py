"""TF-IDF of character n-grams against a slow count, and the nearest texts against all products."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from largegnn.literals.grams import GramSpace, nearest_texts, row_cosines

TEXT = st.text(alphabet="abz09 ", max_size=12).map(lambda text: " ".join(text.split()))


def slow_vector(text: str, texts: list[str]) -> dict[str, float]:
    def grams(one: str) -> list[str]:
        padded = f" {one} "
        return [padded[at : at + size] for size in (2, 3, 4) for at in range(len(padded) - size + 1)]

    frequency = Counter(gram for one in texts for gram in set(grams(one)))
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
def test_cosines_are_those_of_a_slow_count(left: list[str], right: list[str]) -> None:
    space = GramSpace.of(left, right)
    rows = space.rows(left), space.rows(right)
    pairs = np.array([(i, j) for i in range(len(left)) for j in range(len(right))])
    found = row_cosines(*rows, pairs[:, 0], pairs[:, 1], piece=3)
    for (i, j), value in zip(pairs.tolist(), found.tolist(), strict=True):
        one, other = slow_vector(left[i], left + right), slow_vector(right[j], left + right)
        assert math.isclose(value, sum(one[gram] * other.get(gram, 0.0) for gram in one), abs_tol=1e-4)


def test_the_nearest_are_the_nearest() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(60)]
    left, right = words[:30], words[30:]
    space = GramSpace.of(left, right)
    rows = space.rows(left), space.rows(right)
    found = nearest_texts(*rows, 3, space.affordable(60))
    products = (rows[0] @ rows[1].T).toarray()
    for row in range(30):
        near = set(found[1][found[0] == row].tolist())
        best = np.sort(products[row])[::-1][:3]
        assert sorted(products[row, list(near)].tolist(), reverse=True) == sorted(best[best > 0].tolist(), reverse=True)


def test_expensive_grams_are_left_out_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("largegnn.literals.grams._LEAST_WORK", 1_000_000)
    texts = [f"common {number}" for number in range(2_000)]
    space = GramSpace.of(texts, texts)
    keep = space.affordable(1)  # the least budget there is
    assert 0 < keep.sum() < len(keep)
    assert space.costs[keep == 0].min() >= space.costs[keep == 1].max()


def test_no_texts() -> None:
    space = GramSpace.of([], [])
    assert space.rows([]).shape[0] == 0
    assert GramSpace.of(["ab"], ["cd"]).rows([""]).nnz == 0
