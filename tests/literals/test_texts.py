"""Test the texts of an entity that are compared: its names, all its values, the names of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import StringTable
from largegnn.literals.profiles import profile_predicates
from largegnn.literals.texts import class_relations, identifier_names, iris_are_words, neighbor_texts, texts_of_side
from tests.literals.made_literals import literals_of


def test_names_and_documents() -> None:
    """Entity 0 has two names and a year, 1 a year alone, 2 nothing but an IRI."""
    rows = [(0, "label", "Ada Lovelace"), (0, "synonym", "Augusta King"), (0, "born", "1815"), (1, "born", "1912")]
    literals = literals_of(rows)
    profiles = profile_predicates(literals, slice(0, 4), 3)
    found = texts_of_side(
        literals, slice(0, 4), profiles, {0: "no name of hers", 2: "alan turing"}, np.array([(0, 0, 2)])
    )
    assert list(zip(found.name_owners.tolist(), found.names, strict=True)) == [
        (0, "ada lovelace"),
        (0, "augusta king"),
        (2, "alan turing"),
    ]
    assert found.entities.tolist() == [0, 1, 2]
    assert found.documents == ["1815 ada lovelace augusta king", "1912", "alan turing"]
    assert found.neighbors == ["alan turing", "", "ada lovelace"]


@pytest.mark.parametrize(
    ("names", "are_words"),
    [
        (["http://dbpedia.org/resource/Ada_Lovelace", "http://dbpedia.org/resource/Kurt_G%C3%B6del"], True),
        (["http://www.wikidata.org/entity/Q7259", "http://www.wikidata.org/entity/Q41390"], False),
        (["http://rdf.freebase.com/ns/m.0ckf6", "http://rdf.freebase.com/ns/g.11bc6"], False),
        (["http://x/3f2a9b1c4d5e6f70", "http://x/9b1c4d5e6f703f2a"], False),
        (["plain name", "another one"], True),
        ([], False),
    ],
)
def test_opaque_ids_are_not_names(names: list[str], are_words: bool) -> None:
    table = StringTable.from_strings(names)
    assert iris_are_words(table, 0, len(names)) == are_words
    assert bool(identifier_names(table, 0, len(names))) == are_words


def test_identifiers_are_decoded_and_split() -> None:
    table = StringTable.from_strings(["http://x/other", "http://x/Kurt_G%C3%B6del", "http://x/birthPlace"])
    assert identifier_names(table, 1, 2) == {1: "kurt godel", 2: "birth place"}


def test_neighbours_by_name_but_not_classes() -> None:
    """0 -knows-> 1 -knows-> 2; everything is of type 9."""
    triples = np.array([(0, 0, 1), (1, 0, 2), (0, 1, 9), (1, 1, 9), (2, 1, 9)])
    names = {0: "a", 1: "b", 2: "c", 9: "thing"}
    assert neighbor_texts(triples, names, np.array([0, 1, 2]), frozenset([1])) == ["b", "a c", "b"]
    assert neighbor_texts(triples, names, np.array([2]), frozenset()) == ["b thing"]


def test_relations_that_lead_to_few_entities_are_classes() -> None:
    typed = [(entity, 1, 1_000 + entity % 2) for entity in range(400)]
    linked = [(entity, 0, entity + 1) for entity in range(400)]
    assert class_relations(np.array(typed + linked)) == {1}
    assert class_relations(np.empty((0, 3), dtype=np.int64)) == frozenset()
