"""SSSOM, the Simple Standard for Sharing Ontological Mappings: a TSV file with a header in YAML.

In: a table. Out: a file that the `sssom` package parses and validates, one row for each accepted pair:
`skos:exactMatch`, with the confidence where it is calibrated, and the cosine as similarity score (a negative one as 0:
SSSOM knows no less); a run without cosines has the share of the pairs that score no higher. The justification is
semapv's generic one for a similarity above a threshold. The licence is said to be unspecified, since it is for the
owner of the graphs to give one.

`subject_id` and `object_id` are CURIEs (`largegnn.export.curies`) of the entities' IRIs (`largegnn.export.iris`). Where
one does not expand to the very name in the user's files, `subject_label` or `object_label` holds that name. Names that
are packed in the id `largegnn.data.iri.decode_names` unpacks; those with control characters have no label.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from largegnn.export.curies import CONTROL, choose_prefixes, shorten
from largegnn.export.info import TOOL, Exporter, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.table import share_no_higher
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["SSSOM", "sssom_header"]

_ROWS = 250_000
_SIDES = {"source": "subject", "target": "object"}
_PREDICATE = "skos:exactMatch"
_JUSTIFICATION = "semapv:SemanticSimilarityThresholdMatching"
_NO_LICENCE = "https://w3id.org/sssom/license/unspecified"
_SCHEMA_VERSION = "1.1"  # the first that takes the similarity measure in the header


def _write_sssom(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write an SSSOM TSV file."""
    measured, measure = _similarity(table, info)
    named = with_iris(measured, info)
    prefixes = choose_prefixes((named[f"{side}_iri"] for side in _SIDES), info.prefixes)

    def write(sink: ByteSink) -> None:
        sink.write(_header(info, prefixes, measure).encode("utf-8"))
        columns = _rows(named.clear(), prefixes, info).columns
        sink.write(("\t".join(columns) + "\n").encode("utf-8"))
        for part in named.iter_slices(_ROWS):
            rows = _rows(part, prefixes, info)
            text = rows.write_csv(separator="\t", include_header=False, quote_style="necessary")
            sink.write(text.encode("utf-8"))

    write_files({path: write})
    return len(table)


def _similarity(table: pl.DataFrame, info: ExportInfo) -> tuple[pl.DataFrame, str]:
    """The table with a column `similarity` from 0 to 1, and what it is."""
    if "cosine" in table.columns:
        similarity = table["cosine"].fill_nan(None).clip(0, 1)
        return table.with_columns(similarity=similarity), "cosine similarity of entity embeddings"
    measure = f"share of the mappings whose score is no higher; score: {info.scoring}"
    return table.with_columns(similarity=share_no_higher(table["score"])), measure


def _rows(part: pl.DataFrame, prefixes: dict[str, str], info: ExportInfo) -> pl.DataFrame:
    columns: dict[str, pl.Series | pl.Expr] = {}
    for side, role in _SIDES.items():
        short = shorten(part[side], part[f"{side}_iri"], prefixes)
        labelled = short.rewritten & ~part[side].str.contains(CONTROL)
        columns[f"{role}_id"] = short.curies
        columns[f"{role}_label"] = pl.when(labelled).then(part[side])
    confidence = [pl.col("confidence").fill_nan(None).clip(0, 1)] if info.calibrated else []
    return part.select(
        columns["subject_id"].alias("subject_id"),
        columns["subject_label"].alias("subject_label"),
        pl.lit(_PREDICATE).alias("predicate_id"),
        columns["object_id"].alias("object_id"),
        columns["object_label"].alias("object_label"),
        pl.lit(_JUSTIFICATION).alias("mapping_justification"),
        *confidence,
        pl.col("similarity").alias("similarity_score"),
    )


def _header(info: ExportInfo, prefixes: dict[str, str], measure: str) -> str:
    facts = {"mapping_set_title": info.title, "mapping_set_description": info.description}
    return sssom_header(info, prefixes, facts, {"similarity_measure": measure})


def sssom_header(
    info: ExportInfo, prefixes: Mapping[str, str], first: Mapping[str, str], last: Mapping[str, str] | None = None
) -> str:
    """The header of an SSSOM file: what the set is (`first`), where it comes from, what else is said (`last`)."""
    origin = "\0".join([info.tool_version, info.title, first["mapping_set_description"], info.created.isoformat()])
    facts = {
        "sssom_version": _SCHEMA_VERSION,
        "mapping_set_id": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, origin)}",
        **first,
        "license": _NO_LICENCE,
        "mapping_tool": TOOL,
        "mapping_tool_version": info.tool_version,
        "mapping_date": info.created.isoformat(),
        **(last or {}),
    }
    lines = [f"#{key}: {_yaml_text(value)}" for key, value in facts.items()]
    lines += ["#curie_map:", *(f"#  {prefix}: {_yaml_text(iri)}" for prefix, iri in prefixes.items())]
    return "\n".join(lines) + "\n"


def _yaml_text(text: str) -> str:
    """A string between double quotes, on one line whatever is in it."""
    escaped = [f"\\{char}" if char in '"\\' else char if char.isprintable() else f"\\U{ord(char):08x}" for char in text]
    return f'"{"".join(escaped)}"'


SSSOM = Exporter("alignment.sssom.tsv", _write_sssom, accepted_only=True, description="SSSOM, skos:exactMatch in TSV")
