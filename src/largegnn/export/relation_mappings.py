"""Relations that answer to each other, in SSSOM.

In: a table of relations, as `largegnn.review.tables` makes it. Out: a TSV file with a header in YAML, one row for
each pair that says more than that the two are related: `skos:exactMatch`, `skos:broadMatch` where the target relation
is the broader one, `skos:narrowMatch` where it is the narrower one, `owl:inverseOf` where the ends are exchanged and
each is there where the other is. Other inverse pairs have no predicate of their own and are left out.
The justification is semapv's for mappings that follow from instances; the similarity is the score.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import polars as pl

from largegnn.export.curies import CONTROL, choose_prefixes, shorten
from largegnn.export.info import ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.sssom import sssom_header
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["RELATION_FORMS", "export_relations"]

RELATION_FORMS = {"sssom-relations": "relations.sssom.tsv"}
_PREDICATES = {
    ("exact", False): "skos:exactMatch",
    ("narrower", False): "skos:broadMatch",
    ("broader", False): "skos:narrowMatch",
    ("exact", True): "owl:inverseOf",
}
_JUSTIFICATION = "semapv:InstanceBasedMatching"
_MEASURE = "likelihood that both relations join the same matched entities"


def export_relations(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write the mappings of relations; returns the rows written."""
    kinds = zip(table["mapping"].to_list(), table["inverse"].to_list(), strict=True)
    predicates = pl.Series("predicate", [_PREDICATES.get(kind) for kind in kinds], dtype=pl.String)
    named = with_iris(table.with_columns(predicates).drop_nulls("predicate"), info)
    prefixes = choose_prefixes((named[f"{side}_iri"] for side in ("source", "target")), info.prefixes)
    rows = _rows(named, prefixes)
    titled = dataclasses.replace(info, title=f"{info.title}: relations")

    def write(sink: ByteSink) -> None:
        facts = {"mapping_set_title": titled.title, "mapping_set_description": titled.description}
        sink.write(sssom_header(titled, prefixes, facts, {"similarity_measure": _MEASURE}).encode("utf-8"))
        sink.write(rows.write_csv(separator="\t", quote_style="necessary").encode("utf-8"))

    write_files({path: write})
    return len(rows)


def _rows(named: pl.DataFrame, prefixes: dict[str, str]) -> pl.DataFrame:
    columns: dict[str, pl.Series | pl.Expr] = {}
    for side, role in (("source", "subject"), ("target", "object")):
        short = shorten(named[side], named[f"{side}_iri"], prefixes)
        labelled = short.rewritten & ~named[side].str.contains(CONTROL)
        columns[f"{role}_id"], columns[f"{role}_label"] = short.curies, pl.when(labelled).then(named[side])
    return named.select(
        columns["subject_id"].alias("subject_id"),
        columns["subject_label"].alias("subject_label"),
        pl.col("predicate").alias("predicate_id"),
        columns["object_id"].alias("object_id"),
        columns["object_label"].alias("object_label"),
        pl.lit(_JUSTIFICATION).alias("mapping_justification"),
        pl.col("score").clip(0, 1).alias("similarity_score"),
        (pl.col("count").cast(pl.String) + pl.lit(" matched triples")).alias("comment"),
    )
