"""Precision, recall and F1 of pairs: by hand, and by their definition over sets."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import IntArray, PairFigures
from largegnn.evaluation.pair_metrics import is_complete, precision_recall_f1, touches_link


def rows(pairs: Iterable[tuple[int, int]]) -> IntArray:
    return np.array(sorted(pairs), dtype=np.int32).reshape(-1, 2)


def test_pairs_by_hand() -> None:
    """Of four distinct pairs two are right, and (6, 1) touches no link: seen from the links, of three two are right."""
    links = np.array([[0, 5], [1, 6], [2, 7], [3, 8]])
    pairs = np.array([[0, 5], [1, 7], [2, 7], [2, 7], [6, 1]])
    assert precision_recall_f1(pairs, links) == PairFigures(
        precision=0.5, recall=0.5, f1=0.5, pairs=5, partial_precision=2 / 3, partial_f1=4 / 7, judged=3
    )
    none = np.empty((0, 2), dtype=np.int32)
    assert precision_recall_f1(none, links) == PairFigures(
        precision=None, recall=0.0, f1=0.0, pairs=0, partial_precision=None, partial_f1=0.0, judged=0
    )
    assert precision_recall_f1(pairs, none) == PairFigures(
        precision=0.0, recall=None, f1=0.0, pairs=5, partial_precision=None, partial_f1=None, judged=0
    )
    assert precision_recall_f1(none, none) == PairFigures(
        precision=None, recall=None, f1=None, pairs=0, partial_precision=None, partial_f1=None, judged=0
    )


PAIRS = st.sets(st.tuples(st.integers(0, 5), st.integers(6, 11)))


@given(output=PAIRS, links=PAIRS)
def test_shares_equal_their_definition(output: set[tuple[int, int]], links: set[tuple[int, int]]) -> None:
    figures = precision_recall_f1(rows(output), rows(links))
    right = len(output & links)
    assert figures.precision == (right / len(output) if output else None)
    assert figures.recall == (right / len(links) if links else None)
    if right:
        assert figures.f1 == pytest.approx(2 / (len(output) / right + len(links) / right))
    assert figures.pairs == len(output)
    judged = {pair for pair in output if any(pair[0] == link[0] or pair[1] == link[1] for link in links)}
    assert figures.judged == len(judged)
    assert figures.partial_precision == (right / len(judged) if judged else None)
    if right:
        assert figures.partial_f1 == pytest.approx(2 / (len(judged) / right + len(links) / right))


@given(pairs=PAIRS, links=PAIRS)
def test_a_pair_touches_links_by_either_end(pairs: set[tuple[int, int]], links: set[tuple[int, int]]) -> None:
    expected = [any(pair[0] == link[0] or pair[1] == link[1] for link in links) for pair in sorted(pairs)]
    assert touches_link(rows(pairs), rows(links)).tolist() == expected


@given(links=PAIRS, free=st.sets(st.integers(0, 11)))
def test_links_are_complete_where_they_reach_all_free_entities_of_a_side(
    links: set[tuple[int, int]], free: set[int]
) -> None:
    mask = np.array([entity in free for entity in range(12)])
    sides = [{entity for entity in free if entity < 6}, {entity for entity in free if entity >= 6}]
    expected = any(side and side <= {link[number] for link in links} for number, side in enumerate(sides))
    assert is_complete(mask, 6, rows(links)) == bool(expected)
