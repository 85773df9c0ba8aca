"""Test SSSOM files with the sssom package, which is imported where it is used, because the import takes seconds."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from largegnn.data.decisions import Decision
from largegnn.data.iri import PACKED, decode_names, encode_names
from largegnn.errors import InputError
from largegnn.export import export
from largegnn.export.curies import choose_prefixes, shorten
from largegnn.review.decisions import decisions_sssom
from tests.export.nasty import INFO, NASTY, UNCALIBRATED, name_lists, nasty_pairs, table_of

# The package uses functions that pandas deprecates. Any other warning is still an error.
uses_sssom = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def parsed(path: Path) -> Any:
    """Read a file with the sssom package, and validate it."""
    from sssom.parsers import parse_sssom_table
    from sssom.validators import validate

    # Not strict=True: sssom 0.4.21 then refuses exactly the valid headers. It logs the problems it finds.
    mappings = parse_sssom_table(path)
    reports = validate(mappings)
    assert all(not report.results for report in reports.values())
    return mappings


def names_of(mappings: Any, role: str) -> list[str]:
    """The names in the user's files: unpacked from the id, or the label, or the expanded id."""
    frame = mappings.df
    labels = list(frame[f"{role}_label"]) if f"{role}_label" in frame else [None] * len(frame)
    found = []
    for curie, label in zip(frame[f"{role}_id"], labels, strict=True):
        iri = mappings.converter.expand(curie)
        named = iri if iri.startswith(PACKED) or not isinstance(label, str) or not label else label
        found.append(decode_names(pl.Series([named]))[0])
    return found


def rows_of(mappings: Any) -> list[tuple[str, str, float, float]]:
    """Subject, object, confidence and similarity, sorted because the package does not keep the order."""
    confidence, similarity = (
        np.array(mappings.df[column], dtype=np.float32).tolist() for column in ("confidence", "similarity_score")
    )
    subjects, objects = names_of(mappings, "subject"), names_of(mappings, "object")
    return sorted(zip(subjects, objects, confidence, similarity, strict=True))


@uses_sssom
def test_nasty_names_come_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(nasty_pairs(NASTY))
    assert export("sssom", table, tmp_path / "out.sssom.tsv", INFO) == len(table)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        mappings = parsed(tmp_path / "out.sssom.tsv")
    assert not caplog.records
    found = rows_of(mappings)
    assert [row[:2] for row in found] == sorted(nasty_pairs(NASTY))
    assert set(mappings.df["predicate_id"]) == {"skos:exactMatch"}
    assert set(mappings.df["mapping_justification"]) == {"semapv:SemanticSimilarityThresholdMatching"}
    expected = table.select("source", "target", "confidence", pl.col("cosine").clip(0, 1))
    assert found == sorted(expected.rows())
    assert set(mappings.df["mapping_tool_version"]) == {"0.1.0"}
    assert mappings.metadata["mapping_set_title"] == INFO.title
    assert mappings.metadata["mapping_set_id"].startswith("urn:uuid:")


@uses_sssom
@settings(max_examples=15)
@given(name_lists)
def test_any_names_make_a_valid_file(pairs: list[tuple[str, str]]) -> None:
    table = table_of(pairs)
    with TemporaryDirectory() as folder:
        export("sssom", table, Path(folder, "out.sssom.tsv"), INFO)
        mappings = parsed(Path(folder, "out.sssom.tsv"))
        assert [row[:2] for row in rows_of(mappings)] == sorted(pairs)


@uses_sssom
def test_without_calibration_there_is_no_confidence(tmp_path: Path) -> None:
    table = table_of([("http://a", "http://A"), ("http://b", "http://B")])
    export("sssom", table, tmp_path / "out.sssom.tsv", UNCALIBRATED)
    mappings = parsed(tmp_path / "out.sssom.tsv")
    assert "confidence" not in mappings.df
    assert "scores are not calibrated" in mappings.metadata["mapping_set_description"]
    assert set(mappings.df["similarity_measure"]) == {"cosine similarity of entity embeddings"}
    assert len(mappings.df["similarity_score"]) == 2


@uses_sssom
def test_a_run_without_cosines_says_the_order(tmp_path: Path) -> None:
    table = table_of([("http://a", "http://A"), ("http://b", "http://B")]).drop("cosine")
    table = table.with_columns(score=pl.Series([7.5, -3.0], dtype=pl.Float32))
    export("sssom", table, tmp_path / "out.sssom.tsv", UNCALIBRATED)
    mappings = parsed(tmp_path / "out.sssom.tsv")
    assert dict(zip(mappings.df["subject_id"], mappings.df["similarity_score"], strict=True)) == {
        "ns1:a": 1.0,
        "ns1:b": 0.5,
    }
    assert "score is no higher; score: csls" in mappings.df["similarity_measure"][0]


@uses_sssom
def test_given_prefixes_and_bases_are_used(tmp_path: Path) -> None:
    prefixes = {"dbr": "http://dbpedia.org/resource/", "ns1": "http://example.org/é/"}
    info = dataclasses.replace(INFO, base_iri="http://wikidata.org/entity/", prefixes=prefixes)
    pairs = [("dbr:Paris", "Q90"), ("http://dbpedia.org/resource/Rome", "Q220"), ("ns1:x", "http://other.org/y")]
    export("sssom", table_of(pairs), tmp_path / "out.sssom.tsv", info)
    mappings = parsed(tmp_path / "out.sssom.tsv")
    assert {mappings.converter.expand(curie) for curie in mappings.df["subject_id"]} == {
        "http://dbpedia.org/resource/Paris",
        "http://dbpedia.org/resource/Rome",
        "http://example.org/é/x",
    }
    assert set(mappings.df["subject_id"]) == {"dbr:Paris", "dbr:Rome", "ns1:x"}
    assert {mappings.converter.expand(curie) for curie in mappings.df["object_id"]} == {
        "http://wikidata.org/entity/Q90",
        "http://wikidata.org/entity/Q220",
        "http://other.org/y",
    }
    assert "Q90" in set(mappings.df["object_label"])
    with pytest.raises(InputError, match="prefix owl is reserved"):
        export("sssom", table_of(pairs), tmp_path / "x", dataclasses.replace(INFO, prefixes={"owl": "http://o.org/"}))
    assert not (tmp_path / "x").exists()


@uses_sssom
def test_accepted_pairs_alone(tmp_path: Path) -> None:
    table = table_of([("a", "A"), ("b", "B"), ("c", "C")], [True, False, True])
    assert export("sssom", table, tmp_path / "out.sssom.tsv", INFO) == 2
    assert names_of(parsed(tmp_path / "out.sssom.tsv"), "subject") == ["a", "c"]


@uses_sssom
def test_a_file_without_pairs_is_valid(tmp_path: Path) -> None:
    table = table_of([("a", "A")], [False])
    assert export("sssom", table, tmp_path / "out.sssom.tsv", INFO) == 0
    assert len(parsed(tmp_path / "out.sssom.tsv").df) == 0


def short_of(names: list[str]) -> tuple[list[str], dict[str, str], list[bool]]:
    column = pl.Series(names, dtype=pl.String)
    iris = encode_names(column, keep_blank=False)
    prefixes = choose_prefixes([iris])
    short = shorten(column, iris, prefixes)
    return short.curies.to_list(), prefixes, short.rewritten.to_list()


def test_curies_by_hand() -> None:
    names = [
        "http://d.org/r/Paris",
        "http://d.org/r/Rome",
        "http://d.org/r/AC/DC",
        "http://d.org/r/É%C3%89%",
        "http://g.org/1/",
        "http://g.org/2/",
        "http://alone.org/x#y",
        "http://www.w3.org/2002/07/owl#Thing",
        "Plain name",
    ]
    curies, prefixes, rewritten = short_of(names)
    assert {name: prefixes[name] for name in ("ns1", "ns2", "ns3", "lg")} == {
        "ns1": "http://d.org/r/",
        "ns2": "http://g.org/",
        "ns3": "http://",
        "lg": "urn:largegnn:",
    }
    assert curies == [
        "ns1:Paris",
        "ns1:Rome",
        "ns1:AC/DC",
        "ns1:%C3%89%C3%89%25",
        "ns2:1/",
        "ns2:2/",
        "ns3:alone.org/x%23y",
        "owl:Thing",
        "lg:Plain%20name",
    ]
    assert rewritten == [False, False, False, True, False, False, True, False, True]


@given(pairs=name_lists)
def test_curies_expand_to_what_was_shortened(pairs: list[tuple[str, str]]) -> None:
    names = [name for pair in pairs for name in pair]
    curies, prefixes, rewritten = short_of(names)
    for name, curie, was_rewritten in zip(names, curies, rewritten, strict=True):
        assert curie.isascii()
        prefix, _, local = curie.partition(":")
        expanded = prefixes[prefix] + local
        assert (expanded == name) is not was_rewritten
        if expanded.startswith(PACKED):
            assert decode_names(pl.Series([expanded])).to_list() == [name]


def test_more_schemes_than_prefixes_are_packed() -> None:
    names = [f"scheme{number}:thing" for number in range(40)]
    curies, prefixes, _ = short_of(names)
    assert len(prefixes) < 30
    assert sum(curie.startswith("lg:") for curie in curies) == 40 - 15


@uses_sssom
def test_decisions_of_reviewers(tmp_path: Path) -> None:
    given = [
        Decision("http://x.org/a", "http://y.org/A", "accept", "ann"),
        Decision("http://x.org/b", "http://y.org/B", "reject", "ben"),
    ]
    (tmp_path / "out.sssom.tsv").write_text(decisions_sssom(given, INFO), encoding="utf-8")
    frame = parsed(tmp_path / "out.sssom.tsv").df.sort_values("subject_id")
    assert frame["author_label"].tolist() == ["ann", "ben"]
    assert (frame["predicate_modifier"] == "Not").tolist() == [False, True]
