"""Test answers to queries by identifier, by name, by a mistyped name, by values and with types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from largegnn.errors import InputError
from largegnn.services.queries import read_extend, read_queries
from largegnn.services.reconciler import Reconciler
from tests.services.people import BORN, LABEL, reconciler


@pytest.fixture
def service() -> Reconciler:
    return reconciler()


def ask(service: Reconciler, **query: Any) -> list[tuple[str, float, bool]]:
    found = service.answer(read_queries(json.dumps({"q": query}))["q"])
    return [(one["id"].rpartition("/")[2], one["score"], one["match"]) for one in found]


def test_by_identifier_of_the_other_side(service: Reconciler) -> None:
    assert ask(service, query="http://s.org/Q1") == [("ada", 90.0, True), ("crater", 20.0, False)]
    assert ask(service, query="http://s.org/Q2") == [("babbage", 40.0, False)], "below the threshold"
    assert ask(service, query="http://s.org/Q3") == [("engine", 100.0, True)], "a seed"


def test_by_name(service: Reconciler) -> None:
    """Q1 and a crater are both called Ada Lovelace; the crater is paired with Q1, and this precedes its own name."""
    assert ask(service, query="ada lovelace") == [("ada", 90.0, True), ("crater", 20.0, False)]
    assert ask(service, query="Charles Babbage") == [("babbage", 40.0, False)]


def test_a_mistyped_name_is_no_match(service: Reconciler) -> None:
    first = ask(service, query="Ada Lovelaec")[0]
    assert first[0] == "ada"
    assert 60 < first[1] < 90
    assert not first[2]


def test_its_own_identifier_and_its_own_name(service: Reconciler) -> None:
    assert ask(service, query="http://t.org/ada") == [("ada", 100.0, True)]
    assert ask(service, query="Augusta Ada King") == [("ada", 100.0, False)], "a name is no identity"


def test_by_values(service: Reconciler) -> None:
    assert ask(service, properties=[{"pid": BORN, "v": "1815-12-10"}]) == [("ada", 100.0, False)]
    assert ask(service, properties=[{"pid": "designed", "v": {"id": "http://t.org/engine"}}])[0][1] == 100.0
    assert ask(service, properties=[{"pid": BORN, "v": "1900"}]) == []


def test_properties_weigh_half(service: Reconciler) -> None:
    right, wrong = ({"pid": "born", "v": [year, 3, True]} for year in ("1815-12-10", "x"))
    assert ask(service, query="http://s.org/Q1", properties=[right])[0] == ("ada", 90.0, True)
    found = ask(service, query="http://s.org/Q1", properties=[wrong])
    assert 45.0 <= found[0][1] < 70.0


def test_types(service: Reconciler) -> None:
    human, place = "http://t.org/Human", "http://t.org/Place"
    assert [one[0] for one in ask(service, query="Ada Lovelace", type=human)] == ["ada"]
    assert [one[0] for one in ask(service, query="Ada Lovelace", type=[human, place])] == ["ada", "crater"]
    assert ask(service, query="Ada Lovelace", type=[human, place], type_strict="all") == []
    assert [one["name"] for one in service.catalogue.all_types] == ["human", "place"]


def test_features_are_the_evidence(service: Reconciler) -> None:
    first = service.answer(read_queries('{"q": {"query": "http://s.org/Q1", "limit": 1}}')["q"])
    assert len(first) == 1
    features = {one["id"]: one["value"] for one in first[0]["features"]}
    assert features == pytest.approx({"cosine": 0.9, "score": 0.9, "name_similarity": 1.0})


def test_the_other_way_round() -> None:
    service = reconciler(side=0)
    assert ask(service, query="http://t.org/ada") == [("Q1", 90.0, True)]
    assert ask(service, query="Augusta Ada King") == [("Q1", 90.0, True)]
    assert ask(service, query="nothing like it") == []


def test_values_of_properties(service: Reconciler) -> None:
    query = {"ids": ["http://t.org/ada", "unknown"], "properties": [{"id": BORN}, {"id": "designed"}, {"id": LABEL}]}
    found = service.extend(read_extend(json.dumps(query)))
    assert found["meta"][0] == {"id": BORN, "name": "born"}
    assert found["rows"]["http://t.org/ada"] == {
        BORN: [{"str": "1815-12-10"}],
        "designed": [{"id": "http://t.org/engine", "name": "Analytical <Engine>"}],
        LABEL: [{"str": "Augusta Ada King"}],
    }
    assert found["rows"]["unknown"] == {BORN: [], "designed": [], LABEL: []}


def test_suggestions(service: Reconciler) -> None:
    names = service.catalogue.names
    assert names.begin_with("aug")[0] == 4
    assert names.begin_with("ada lov") == [0, 6]
    assert names.begin_with("zz") == names.begin_with("  ") == []
    assert names.search("") == names.search("///") == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "3", '{"q": 3}', '{"q": {}}', '{"q": {"query": 3}}', '{"q": {"query": "a", "limit": "5"}}',
     '{"q": {"properties": []}}', '{"q": {"properties": [{"pid": "a"}]}}', '{"q": {"query": "a", "props": []}}',
     '{"q": {"query": "a", "type_strict": "maybe"}}', '{"q": {"properties": [{"pid": "a", "v": null}]}}',
     "{" + ",".join(f'"q{number}": {{"query": "a"}}' for number in range(1001)) + "}", "[" * 100_000],
)  # fmt: skip
def test_what_is_no_batch_of_queries_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_queries(text)
