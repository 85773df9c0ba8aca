"""Test candidates by names and texts: equal names, the nearest, and each cosine in its column."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.literals.candidates import literal_candidates
from largegnn.literals.texts import EntityTexts


def side(
    names: dict[int, list[str]], documents: dict[int, str], neighbors: dict[int, str] | None = None
) -> EntityTexts:
    entities = sorted(documents)
    named = [(entity, name) for entity in sorted(names) for name in names[entity]]
    return EntityTexts(
        [name for _, name in named],
        np.array([entity for entity, _ in named], dtype=np.int64),
        np.array(entities, dtype=np.int64),
        [documents[entity] for entity in entities],
        [(neighbors or {}).get(entity, "") for entity in entities],
    )


def test_by_hand() -> None:
    """0 and 10 share their second name, 1 and 11 have similar names, 2 and 12 have no name but similar texts."""
    source = side(
        {0: ["ada lovelace", "augusta king"], 1: ["alan turing"]},
        {0: "ada lovelace augusta king", 1: "alan turing", 2: "a very particular text"},
        {0: "byron", 1: "church"},
    )
    target = side(
        {10: ["countess", "augusta king"], 11: ["alan m turing"]},
        {10: "countess augusta king", 11: "alan m turing", 12: "this very particular text"},
        {10: "byron", 11: "church"},
    )
    graph = literal_candidates(source, target, k=1)
    evidence = {
        (left, right): {name: float(graph.column(name)[edge]) for name in graph.evidence}
        for edge, (left, right) in enumerate(graph.pairs().tolist())
    }
    assert {(0, 10), (1, 11), (2, 12)} <= set(evidence)
    assert evidence[0, 10]["name"] == pytest.approx(1.0, abs=1e-5)
    assert evidence[0, 10]["neighbors"] == pytest.approx(1.0, abs=1e-5)
    assert 0.4 < evidence[1, 11]["name"] < 1.0
    assert evidence[2, 12]["name"] == 0.0
    assert evidence[2, 12]["text"] > 0.5
    assert evidence[2, 12]["neighbors"] == 0.0


def test_equal_names_are_always_candidates() -> None:
    """Five sources and five targets have one name: 25 pairs, although k is 1."""
    source = side({entity: ["smith"] for entity in range(5)}, dict.fromkeys(range(5), "smith"))
    target = side({entity: ["smith"] for entity in range(10, 15)}, dict.fromkeys(range(10, 15), "smith"))
    graph = literal_candidates(source, target, k=1)
    assert len(graph) == 25
    assert graph.column("name").min() == pytest.approx(1.0, abs=1e-5)


def test_a_frequent_name_gives_few_pairs() -> None:
    count = 3_000
    source = side({entity: ["smith"] for entity in range(count)}, dict.fromkeys(range(count), "smith"))
    target = side({count: ["smith"]}, {count: "smith"})
    assert len(literal_candidates(source, target, k=1)) <= 2 * count


def test_nothing_to_compare() -> None:
    nothing, something = side({}, {}), side({5: ["x"]}, {5: "x"})
    for left, right in ((nothing, nothing), (nothing, something), (something, nothing)):
        graph = literal_candidates(left, right, k=3)
        assert len(graph) == 0
        assert tuple(graph.evidence) == ("name", "text", "neighbors")
