"""Write accepted pairs as RDF: owl:sameAs in N-Triples or annotated in RDF 1.2, and the Alignment API's RDF/XML.

Names that are not IRIs are converted to IRIs (`largegnn.export.iris`). So are blank nodes, because `_:b1` of one graph
must not become `_:b1` of the other graph.

- N-Triples: any RDF tool loads the file, and `largegnn` reads it as seeds.
- RDF 1.2 in Turtle: `<a> owl:sameAs <b> {| sssom:confidence 0.9 |}`, with the confidence if it is calibrated, and the
  score. Tools that read only RDF 1.1 do not know annotations; they need N-Triples.
- Alignment API, level 0, the exchange format of the ontology matching community: a Cell for each pair, with a measure
  from 0 to 1: the confidence if it is calibrated, else the share of the pairs that score no higher, which only orders
  the pairs; the description says so. `type` is `??` where the pairs are one-to-one, else `**`.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from largegnn.data.iri import encode_names
from largegnn.export.info import TOOL, Exporter, ExportInfo, write_lines
from largegnn.export.iris import with_iris
from largegnn.export.table import share_no_higher

__all__ = ["ALIGNMENT_API", "ANNOTATIONS", "SAME_AS"]

_SAME_AS = "http://www.w3.org/2002/07/owl#sameAs"
_TURTLE_START = """VERSION "1.2"
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX semapv: <https://w3id.org/semapv/vocab/>
PREFIX sssom: <https://w3id.org/sssom/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
_JUSTIFICATION = "sssom:mapping_justification semapv:SemanticSimilarityThresholdMatching"
_FLOAT = "http://www.w3.org/2001/XMLSchema#float"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_ALIGNMENT_START = """<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns="http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
         xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
         xmlns:dc="http://purl.org/dc/elements/1.1/">
<Alignment>
<xml>yes</xml>
<level>0</level>
<type>{arity}</type>
<dc:title>{title}</dc:title>
<dc:description>{description}</dc:description>
<dc:creator>{creator}</dc:creator>
<dc:date>{created}</dc:date>
<onto1><Ontology rdf:about={source_iri}><location>{source_name}</location></Ontology></onto1>
<onto2><Ontology rdf:about={target_iri}><location>{target_name}</location></Ontology></onto2>
"""
_MEASURE_NOTE = "measure: the share of the cells whose score is no higher"
_ALIGNMENT_END = "</Alignment>\n</rdf:RDF>\n"


def _write_same_as(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write N-Triples; IRIs hold no character that would have to be escaped."""

    def statements(part: pl.DataFrame) -> pl.Series:
        return "<" + part["source_iri"] + f"> <{_SAME_AS}> <" + part["target_iri"] + "> ."

    return write_lines(with_iris(table, info), path, statements, info.comment)


def _write_annotations(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write annotated statements in Turtle."""

    def statements(part: pl.DataFrame) -> pl.Series:
        notes = _JUSTIFICATION + _number(" ; sssom:similarity_score", part["score"])
        if info.calibrated:
            notes = _number("sssom:confidence", part["confidence"].clip(0, 1)) + " ; " + notes
        return "<" + part["source_iri"] + "> owl:sameAs <" + part["target_iri"] + "> {| " + notes + " |} ."

    return write_lines(with_iris(table, info), path, statements, info.comment + _TURTLE_START)


def _number(predicate: str, values: pl.Series) -> pl.Series:
    return f'{predicate} "' + values.fill_nan(0).cast(pl.String) + '"^^xsd:float'


def _write_alignment_api(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write an Alignment API file."""
    measure = table["confidence"].clip(0, 1) if info.calibrated else share_no_higher(table["score"])
    named = with_iris(table.with_columns(measure=measure), info)
    return write_lines(named, path, _cells, _alignment_start(table, info), _ALIGNMENT_END)


def _alignment_start(table: pl.DataFrame, info: ExportInfo) -> str:
    one_to_one = all(table[side].is_unique().all() for side in ("source", "target"))
    source_iri, target_iri = encode_names(pl.Series([info.source_name, info.target_name]), keep_blank=False)
    return _ALIGNMENT_START.format(
        arity="??" if one_to_one else "**",
        title=_text(info.title),
        description=_text(info.description if info.calibrated else f"{info.description}; {_MEASURE_NOTE}"),
        creator=_text(f"{TOOL} {info.tool_version}"),
        created=info.created.isoformat(),
        source_iri=quoteattr(source_iri),
        target_iri=quoteattr(target_iri),
        source_name=_text(info.source_name),
        target_name=_text(info.target_name),
    )


def _text(text: str) -> str:
    """Text for an element; characters that XML cannot hold become replacement characters."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _cells(part: pl.DataFrame) -> pl.Series:
    # An IRI, packed or not, holds neither quotes nor brackets: only the ampersand is to be escaped.
    source, target = (part[f"{side}_iri"].str.replace_all("&", "&amp;", literal=True) for side in ("source", "target"))
    return (
        '<map><Cell><entity1 rdf:resource="'
        + source
        + '"/><entity2 rdf:resource="'
        + target
        + f'"/><relation>=</relation><measure rdf:datatype="{_FLOAT}">'
        + part["measure"].cast(pl.String)
        + "</measure></Cell></map>"
    )


SAME_AS = Exporter("sameas.nt", _write_same_as, accepted_only=True, description="owl:sameAs in N-Triples")
ANNOTATIONS = Exporter(
    "alignment.ttl", _write_annotations, accepted_only=True, description="owl:sameAs annotated with confidence, RDF 1.2"
)
ALIGNMENT_API = Exporter(
    "alignment.rdf", _write_alignment_api, accepted_only=True, description="the Alignment API's RDF/XML"
)
