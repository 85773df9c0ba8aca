"""owl:sameAs annotated with its confidence: RDF 1.2 in Turtle, `<a> owl:sameAs <b> {| sssom:confidence 0.9 |}`.

In: a table. Out: a file that a reader of RDF 1.2 takes, as pyoxigraph is: one statement for each accepted pair, each
with what SSSOM calls its confidence, where it is calibrated, its score, and the tool. Readers of RDF 1.1 alone do not
know annotations: for them there is `sameas`. Names are IRIs or are made ones (`largegnn.export.iris`).
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from largegnn.export.info import TOOL, Exporter, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.same_as import write_lines
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["ANNOTATIONS"]

_ROWS = 250_000
_START = """VERSION "1.2"
PREFIX owl: <http://www.w3.org/2002/07/owl#>
PREFIX semapv: <https://w3id.org/semapv/vocab/>
PREFIX sssom: <https://w3id.org/sssom/>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
_JUSTIFICATION = "sssom:mapping_justification semapv:SemanticSimilarityThresholdMatching"


def _write_annotations(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a Turtle file."""
    named = with_iris(table, info)

    def write(sink: ByteSink) -> None:
        origin = f"{TOOL} {info.tool_version}, {info.created.isoformat()}, {info.title}: {info.description}"
        sink.write(f"# {' '.join(origin.split())}\n{_START}".encode())
        for part in named.iter_slices(_ROWS):
            write_lines(_statements(part, info), sink)

    write_files({path: write})
    return len(table)


def _statements(part: pl.DataFrame, info: ExportInfo) -> pl.Series:
    said = _JUSTIFICATION + _number("sssom:similarity_score", part["score"])
    if info.calibrated:
        said = _number("sssom:confidence", part["confidence"].clip(0, 1), before="") + " ; " + said
    ends = "<" + part["source_iri"] + "> owl:sameAs <" + part["target_iri"] + ">"
    return ends + " {| " + said + " |} ."


def _number(predicate: str, values: pl.Series, before: str = " ; ") -> pl.Series:
    text = values.fill_nan(0).cast(pl.String)
    return f'{before}{predicate} "' + text + '"^^xsd:float'


ANNOTATIONS = Exporter(
    "alignment.ttl", _write_annotations, accepted_only=True, description="owl:sameAs annotated with confidence, RDF 1.2"
)
