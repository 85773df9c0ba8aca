from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pyoxigraph as ox
import pytest
from hypothesis import given

from largegnn.data.iri import decode_names
from largegnn.data.links import read_named_links
from largegnn.export import export
from tests.export.nasty import INFO, NASTY, OTHER_NAMES, UNCALIBRATED, VALID_IRIS, name_lists, nasty_pairs, table_of

ALIGN = "{http://knowledgeweb.semanticweb.org/heterogeneity/alignment#}"
RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
SAME_AS = ox.NamedNode("http://www.w3.org/2002/07/owl#sameAs")


def unpacked(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    columns = [decode_names(pl.Series(column, dtype=pl.String)).to_list() for column in zip(*pairs, strict=True)]
    return list(zip(*columns, strict=True))


def same_as_pairs(path: Path, lenient: bool = True) -> list[tuple[str, str]]:
    triples = list(ox.parse(path=str(path), format=ox.RdfFormat.N_TRIPLES, lenient=lenient))
    assert {triple.predicate for triple in triples} == {SAME_AS}
    return unpacked([(str(triple.subject.value), str(triple.object.value)) for triple in triples])


def cells(path: Path) -> list[tuple[str, str, str, float]]:
    found = []
    for cell in ElementTree.parse(path).iter(f"{ALIGN}Cell"):
        ends = [cell.find(f"{ALIGN}entity{number}") for number in (1, 2)]
        source, target = (end.attrib[f"{RDF}resource"] for end in ends if end is not None)
        measure = cell.find(f"{ALIGN}measure")
        assert measure is not None
        assert measure.attrib[f"{RDF}datatype"] == "http://www.w3.org/2001/XMLSchema#float"
        found.append((source, target, str(cell.findtext(f"{ALIGN}relation")), float(str(measure.text))))
    return found


def test_same_as_is_valid_n_triples(tmp_path: Path) -> None:
    pairs = nasty_pairs(VALID_IRIS + OTHER_NAMES)
    assert export("sameas", table_of(pairs), tmp_path / "out.nt", INFO) == len(pairs)
    assert same_as_pairs(tmp_path / "out.nt", lenient=False) == pairs


def test_iris_stand_as_they_are(tmp_path: Path) -> None:
    export("sameas", table_of([("http://a/é(b),c", "_:b1")]), tmp_path / "out.nt", INFO)
    _, line = (tmp_path / "out.nt").read_text(encoding="utf-8").splitlines()
    assert line == "<http://a/é(b),c> <http://www.w3.org/2002/07/owl#sameAs> <urn:largegnn:_%3Ab1> ."


def test_same_as_is_a_seed_file(tmp_path: Path) -> None:
    pairs = nasty_pairs(NASTY)
    export("sameas", table_of(pairs), tmp_path / "out.nt", INFO)
    assert sorted(read_named_links(tmp_path / "out.nt").frame.rows()) == sorted(pairs)


@given(name_lists)
def test_any_names_come_back_from_rdf(pairs: list[tuple[str, str]]) -> None:
    table = table_of(pairs)
    with TemporaryDirectory() as folder:
        export("sameas", table, Path(folder, "out.nt"), INFO)
        export("alignment-api", table, Path(folder, "out.rdf"), INFO)
        assert same_as_pairs(Path(folder, "out.nt")) == pairs
        assert unpacked([cell[:2] for cell in cells(Path(folder, "out.rdf"))]) == pairs


@pytest.mark.parametrize("form", ["sameas", "alignment-api"])
def test_only_accepted_pairs_are_said_to_be_the_same(tmp_path: Path, form: str) -> None:
    table = table_of([("a", "A"), ("b", "B"), ("c", "C")], [True, False, True])
    assert export(form, table, tmp_path / "out", INFO) == 2
    text = (tmp_path / "out").read_text(encoding="utf-8")
    assert "urn:largegnn:c" in text
    assert "urn:largegnn:b" not in text


def test_alignment_api_as_xml(tmp_path: Path) -> None:
    pairs = nasty_pairs(NASTY)
    table = table_of(pairs)
    assert export("alignment-api", table, tmp_path / "out.rdf", INFO) == len(pairs)
    found = cells(tmp_path / "out.rdf")
    assert unpacked([cell[:2] for cell in found]) == pairs
    assert {relation for _, _, relation, _ in found} == {"="}
    assert np.array([measure for *_, measure in found], dtype=np.float32).tolist() == table["confidence"].to_list()
    root = ElementTree.parse(tmp_path / "out.rdf").getroot()
    alignment = root.find(f"{ALIGN}Alignment")
    assert alignment is not None
    assert [alignment.findtext(f"{ALIGN}{name}") for name in ("xml", "level", "type")] == ["yes", "0", "??"]
    ontologies = [alignment.find(f"{ALIGN}onto{number}/{ALIGN}Ontology") for number in (1, 2)]
    iris = [ontology.attrib[f"{RDF}about"] for ontology in ontologies if ontology is not None]
    assert iris == ["urn:largegnn:source%20file.nt", "http://dbpedia.org/?a&b"]
    assert [element.text for element in root.iter(f"{ALIGN}location")] == [INFO.source_name, INFO.target_name]


def test_alignment_api_as_rdf(tmp_path: Path) -> None:
    pairs = nasty_pairs(VALID_IRIS + OTHER_NAMES)
    export("alignment-api", table_of(pairs), tmp_path / "out.rdf", INFO)
    store = ox.Store()
    store.load(path=str(tmp_path / "out.rdf"), format=ox.RdfFormat.RDF_XML)
    rows = store.query(
        "PREFIX : <http://knowledgeweb.semanticweb.org/heterogeneity/alignment#> SELECT ?source ?target { "
        "?alignment a :Alignment ; :level '0' ; :onto1 [ a :Ontology ] ; :map ?cell . "
        "?cell a :Cell ; :entity1 ?source ; :entity2 ?target ; :relation '=' ; :measure ?measure }"
    )
    assert isinstance(rows, ox.QuerySolutions)
    found = [(str(row["source"].value), str(row["target"].value)) for row in rows]
    assert sorted(unpacked(found)) == sorted(pairs)


def test_alignment_api_says_when_it_is_not_one_to_one(tmp_path: Path) -> None:
    export("alignment-api", table_of([("a", "A"), ("a", "B")]), tmp_path / "out.rdf", INFO)
    assert "<type>**</type>" in (tmp_path / "out.rdf").read_text(encoding="utf-8")


def test_alignment_api_without_calibration_says_the_order(tmp_path: Path) -> None:
    table = table_of([("http://a", "http://A"), ("http://b", "http://B"), ("http://c", "http://C")])
    table = table.with_columns(score=pl.Series([-2.0, 9.0, 0.5], dtype=pl.Float32))
    for columns in (table, table.drop("confidence")):
        export("alignment-api", columns, tmp_path / "out.rdf", UNCALIBRATED)
        measures = [measure for *_, measure in cells(tmp_path / "out.rdf")]
        assert measures == pytest.approx([1 / 3, 1, 2 / 3])
        text = (
            ElementTree.parse(tmp_path / "out.rdf")
            .getroot()
            .findtext(".//{http://purl.org/dc/elements/1.1/}description")
        )
        assert "scores are not calibrated" in str(text)
        assert "measure: the share of the cells whose score is no higher" in str(text)
