"""The format of the Alignment API, RDF/XML: what the ontology matching community exchanges.

In: a table. Out: an Alignment of level 0, one Cell for each accepted pair: two entities, the relation `=`, and a
measure from 0 to 1, which the format asks for: the confidence where it is calibrated. Where it is not, it is the share
of the pairs that score no higher, which says their order and nothing else; the description says so. The two ontologies
are called what the run calls the graphs. Entities have IRIs or are given some (`largegnn.export.iris`). `type` is `??`
(no entity twice on either side) or `**`, as found in the pairs.
"""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import polars as pl

from largegnn.data.iri import encode_names
from largegnn.export.info import TOOL, Exporter, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.same_as import write_lines
from largegnn.export.table import share_no_higher
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["ALIGNMENT_API"]

_ROWS = 250_000
_FLOAT = "http://www.w3.org/2001/XMLSchema#float"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_START = """<?xml version="1.0" encoding="utf-8"?>
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
_ORDER = "measure: the share of the cells whose score is no higher"
_END = "</Alignment>\n</rdf:RDF>\n"


def _write_alignment_api(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write an Alignment API file."""
    measure = table["confidence"].clip(0, 1) if info.calibrated else share_no_higher(table["score"])
    named = with_iris(table.with_columns(measure=measure), info)

    def write(sink: ByteSink) -> None:
        sink.write(_start(table, info).encode("utf-8"))
        for part in named.iter_slices(_ROWS):
            write_lines(_cells(part), sink)
        sink.write(_END.encode("utf-8"))

    write_files({path: write})
    return len(table)


def _start(table: pl.DataFrame, info: ExportInfo) -> str:
    one_to_one = all(table[side].is_unique().all() for side in ("source", "target"))
    source_iri, target_iri = encode_names(pl.Series([info.source_name, info.target_name]), keep_blank=False)
    return _START.format(
        arity="??" if one_to_one else "**",
        title=_text(info.title),
        description=_text(info.description if info.calibrated else f"{info.description}; {_ORDER}"),
        creator=_text(f"{TOOL} {info.tool_version}"),
        created=info.created.isoformat(),
        source_iri=quoteattr(source_iri),
        target_iri=quoteattr(target_iri),
        source_name=_text(info.source_name),
        target_name=_text(info.target_name),
    )


def _text(text: str) -> str:
    """Text for an element; characters XML has no way to say become question marks."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _cells(part: pl.DataFrame) -> pl.Series:
    # An IRI, packed or not, holds neither quotes nor brackets: the ampersand is all there is to escape.
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


ALIGNMENT_API = Exporter(
    "alignment.rdf", _write_alignment_api, accepted_only=True, description="the Alignment API's RDF/XML"
)
