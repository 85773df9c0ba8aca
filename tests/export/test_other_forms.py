"""Test that other programs read the files: rdflib, pyshacl, pyoxigraph, and readers of CSV."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyoxigraph as ox
import pytest

from largegnn.data.iri import decode_names
from largegnn.errors import InputError
from largegnn.export import export
from tests.export.nasty import INFO, NASTY, OTHER_NAMES, UNCALIBRATED, VALID_IRIS, nasty_pairs, table_of

SSSOM = "https://w3id.org/sssom/"
REIFIES = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies")


def annotated(path: Path, lenient: bool = False) -> dict[tuple[str, str], dict[str, float]]:
    """Read the statements of an RDF 1.2 file with the numbers of their annotations."""
    quads = list(ox.parse(path=str(path), format=ox.RdfFormat.TURTLE, lenient=lenient))
    about: dict[Any, dict[str, float]] = {}
    for quad in quads:
        if isinstance(quad.object, ox.Literal):
            name = str(quad.predicate.value).removeprefix(SSSOM)
            about.setdefault(quad.subject, {})[name] = float(quad.object.value)
    found = {}
    for quad in quads:
        if quad.predicate == REIFIES:
            triple: Any = quad.object
            names = decode_names(pl.Series([triple.subject.value, triple.object.value])).to_list()
            found[names[0], names[1]] = about[quad.subject]
    return found


def test_confidence_as_annotations(tmp_path: Path) -> None:
    pairs = nasty_pairs(VALID_IRIS + OTHER_NAMES)
    table = table_of(pairs)
    assert export("rdf12", table, tmp_path / "out.ttl", INFO) == len(pairs)
    found = annotated(tmp_path / "out.ttl")
    assert list(found) == pairs
    assert [one["confidence"] for one in found.values()] == pytest.approx(table["confidence"].to_list())
    assert [one["similarity_score"] for one in found.values()] == pytest.approx(table["score"].to_list())
    export("rdf12", table, tmp_path / "out.ttl", UNCALIBRATED)
    assert all(one.keys() == {"similarity_score"} for one in annotated(tmp_path / "out.ttl").values())


def test_relationships_for_neo4j(tmp_path: Path) -> None:
    pairs = nasty_pairs(NASTY)
    table = table_of(pairs)
    assert export("neo4j", table, tmp_path / "out.csv", INFO) == len(pairs)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header[:3] == [":START_ID(source)", ":END_ID(target)", ":TYPE"]
    assert {"confidence:float", "score:float", "mutual:boolean", "cosine:float"} <= set(header)
    names = [decode_names(pl.Series([row[side] for row in rows])).to_list() for side in (0, 1)]
    assert list(zip(*names, strict=True)) == pairs
    assert {row[2] for row in rows} == {"SAME_AS"}
    found = np.array([float(row[header.index("confidence:float")]) for row in rows])
    assert found == pytest.approx(table["confidence"].to_numpy())
    assert len((tmp_path / "out.csv").read_bytes().split(b"\n")) == len(pairs) + 2, "no line breaks inside a row"


def test_quickstatements(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    wikidata = "http://www.wikidata.org/entity/"
    pairs = [
        (f"{wikidata}Q42", "http://dbpedia.org/resource/Douglas_Adams"),
        ("http://x.org/a", "wd:Q7"),
        ("http://x.org/b", "http://y.org/b"),
        (f"{wikidata}Q1", f"{wikidata}Q2"),
    ]
    assert export("quickstatements", table_of(pairs), tmp_path / "out.tsv", INFO) == 2
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8") == (
        'Q42\tP2888\t"http://dbpedia.org/resource/Douglas_Adams"\nQ7\tP2888\t"http://x.org/a"\n'
    )
    assert "2 of 4 pairs have no item of Wikidata, or two" in caplog.text
    with pytest.raises(InputError, match="no pair has an item of Wikidata"):
        export("quickstatements", table_of(pairs[2:3]), tmp_path / "none.tsv", INFO)
    assert not (tmp_path / "none.tsv").exists()


def test_rdflib_reads_what_we_write(tmp_path: Path) -> None:
    import rdflib

    pairs = [("http://a.org/é", "http://b.org/1"), ("http://a.org/x?q=1&r=2", "http://b.org/2"), ("no iri", "_:b")]
    table = table_of(pairs)
    export("sameas", table, tmp_path / "out.nt", INFO)
    graph = rdflib.Graph().parse(tmp_path / "out.nt", format="nt")
    assert {(str(one), str(other)) for one, _, other in graph} == {
        *pairs[:2],
        ("urn:largegnn:no%20iri", "urn:largegnn:_%3Ab"),
    }
    export("alignment-api", table, tmp_path / "out.rdf", INFO)
    cells = rdflib.Graph().parse(tmp_path / "out.rdf", format="xml")
    space = rdflib.Namespace("http://knowledgeweb.semanticweb.org/heterogeneity/alignment#")
    measures = sorted(float(str(value)) for value in cells.objects(None, space.measure))
    assert measures == pytest.approx(sorted(table["confidence"].to_list()))


def test_shapes_hold(tmp_path: Path) -> None:
    """pyshacl confirms that every cell has two entities, a relation and a measure from 0 to 1."""
    pyshacl: Any = pytest.importorskip("pyshacl")
    import rdflib

    export(
        "alignment-api", table_of([(f"http://a/{row}", f"http://b/{row}") for row in range(20)]), tmp_path / "out", INFO
    )
    data = rdflib.Graph().parse(tmp_path / "out", format="xml")
    shapes = rdflib.Graph().parse(
        data="""
        @prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
        @prefix a: <http://knowledgeweb.semanticweb.org/heterogeneity/alignment#> .
        a:CellShape a sh:NodeShape ; sh:targetClass a:Cell ;
          sh:property [ sh:path a:entity1 ; sh:minCount 1 ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] ,
            [ sh:path a:entity2 ; sh:minCount 1 ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] ,
            [ sh:path a:relation ; sh:hasValue "=" ] ,
            [ sh:path a:measure ; sh:minCount 1 ; sh:datatype xsd:float ; sh:minInclusive 0.0 ; sh:maxInclusive 1.0 ] .
        """
    )
    conforms, _, text = pyshacl.validate(data, shacl_graph=shapes)
    assert conforms, text
    space = rdflib.Namespace("http://knowledgeweb.semanticweb.org/heterogeneity/alignment#")
    data.remove((next(data.subjects(space.measure)), space.measure, None))
    assert not pyshacl.validate(data, shacl_graph=shapes)[0], "the shapes can fail"
