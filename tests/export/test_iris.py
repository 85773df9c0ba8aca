"""Test the conversion of names to IRIs."""

from __future__ import annotations

import dataclasses

import polars as pl
import pyoxigraph as ox
import pytest
from hypothesis import given

from largegnn.errors import InputError
from largegnn.export.iris import with_iris
from tests.export.nasty import INFO, name_lists, table_of

PREFIXES = {"dbr": "http://dbpedia.org/resource/", "http": "http://wrong.org/"}


def iris_of(names: list[str], **changes: object) -> list[str]:
    table = with_iris(table_of([(name, "http://x") for name in names]), dataclasses.replace(INFO, **changes))  # type: ignore[arg-type]
    return table["source_iri"].to_list()


def test_by_hand() -> None:
    names = [
        "http://a/é",
        "dbr:Paris",
        'dbr:"Heroes" 50%',
        "Q42",
        "_:b1",
        "AC/DC #1?",
        "http://a b",
        "",
        "urn:largegnn:x",
    ]
    packed = ["urn:largegnn:_%3Ab1", "urn:largegnn:http%3A//a%20b", "urn:largegnn:", "urn:largegnn:urn%3Alargegnn%3Ax"]
    assert iris_of(names, base_iri="http://b/", prefixes=PREFIXES) == [
        "http://a/é",
        "http://dbpedia.org/resource/Paris",
        "http://dbpedia.org/resource/%22Heroes%22%2050%",
        "http://b/Q42",
        packed[0],
        "http://b/AC/DC%20%231%3F",
        *packed[1:],
    ]
    assert iris_of(["Q42", "dbr:Paris"]) == ["urn:largegnn:Q42", "dbr:Paris"]


def test_each_side_may_have_its_base() -> None:
    info = dataclasses.replace(INFO, base_iri="http://s/", target_base_iri="http://t/")
    table = with_iris(table_of([("1", "1")]), info)
    assert table.select("source_iri", "target_iri").row(0) == ("http://s/1", "http://t/1")
    table = with_iris(table_of([("1", "2")]), dataclasses.replace(INFO, base_iri="http://s/"))
    assert table.select("source_iri", "target_iri").row(0) == ("http://s/1", "http://s/2")


def test_the_log_says_how_many_are_packed(caplog: pytest.LogCaptureFixture) -> None:
    iris_of(["a", "b", "http://c"])
    (record,) = caplog.records
    assert "2 of 6 names are not valid IRIs and are written as urn:largegnn:" in record.getMessage()
    caplog.clear()
    iris_of(["a", "b", "http://c"], base_iri="http://b/")
    assert not caplog.records


@pytest.mark.parametrize(
    "changes",
    [
        {"base_iri": "b"},
        {"target_base_iri": "http://a b"},
        {"prefixes": {"a b": "http://x/"}},
        {"prefixes": {"a": "x"}},
    ],
)
def test_what_is_no_iri_or_prefix_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match="not a valid"):
        dataclasses.replace(INFO, **changes)  # type: ignore[arg-type]


@given(name_lists)
def test_any_name_has_an_iri_of_its_own(pairs: list[tuple[str, str]]) -> None:
    names = sorted({name for pair in pairs for name in pair})
    iris = iris_of(names, base_iri="http://base.org/", prefixes=PREFIXES)
    text = "".join(f"<{iri}> <http://p> <http://o> .\n" for iri in iris)
    triples = list(ox.parse(text, format=ox.RdfFormat.N_TRIPLES, lenient=True))
    assert [str(triple.subject.value) for triple in triples] == iris
    others = [name for name in names if not name.startswith(("http:", "dbr:"))]
    assert len(set(iris_of(others, base_iri="http://base.org/"))) == len(others)
    assert pl.Series(iris_of(names)).is_unique().all()
