"""Test the labels of entities on a page."""

from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, StringTable, TaskNames
from largegnn.literals.profiles import PredicateProfile
from largegnn.review.labels import Labels, local_part, name_predicates
from tests.review.small_alignment import toy_literals


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("http://dbpedia.org/resource/Mont_Blanc", "Mont_Blanc"),
        ("http://x.org/a#b/", "b"),
        ("^http://x.org/r", "^r"),
        ("dbr:Paris", "dbr:Paris"),
        ("http://x.org/%C3%89t%C3%A9", "Été"),
        ("http://", "http:"),
        ("", ""),
    ],
)
def test_the_last_part_of_an_identifier(name: str, shown: str) -> None:
    assert local_part(name) == shown


def test_an_entity_is_called_by_its_english_name_or_by_its_identifier(
    toy_task: AlignmentTask, toy_names: TaskNames
) -> None:
    literals = toy_literals()
    labels = Labels(toy_task, toy_names, literals, name_predicates(literals))
    assert labels.label(1) == "the b", "b has a German name too, and a name with a line break"
    assert labels.label(6) == "B of the target"
    assert labels.label(0) == "a", "it has no name"
    assert labels.relation(2) == "p"


def test_without_predicates_of_names_the_identifier_counts(toy_task: AlignmentTask) -> None:
    names = TaskNames(
        StringTable.from_strings([f"http://x.org/{name}" for name in "abcdeABCDEF"]), toy_literals().values
    )
    assert Labels(toy_task, names, toy_literals()).label(1) == "b"


HEIGHT = PredicateProfile("http://x.org/height", "name", 3, 1.0, 1.0, 1.0, ())


def test_predicates_of_names_by_the_words_of_vocabularies_then_by_what_was_learnt() -> None:
    literals = toy_literals()
    found = [literals.predicate_names[number] for number in name_predicates(literals, [HEIGHT])]
    assert found == ["http://w3.org/rdfs#label", "http://x.org/height"]
    assert np.all(np.diff(literals.entities) >= 0)
