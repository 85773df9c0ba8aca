"""Write pairs of entities, or of relations, as SSSOM: a TSV file with a header in YAML.

In: a table. Out: a file that the `sssom` package parses and validates. SSSOM is the Simple Standard for Sharing
Ontological Mappings. A pair of entities is a `skos:exactMatch`, with the confidence if it is calibrated, and with the
cosine as similarity score (0 if it is negative, since SSSOM allows 0 to 1); a run without cosines has the share of the
pairs that score no higher. `_RELATION_PREDICATES` are the predicates for relations; relations that are only related,
or inverse and not equivalent, are not written. The licence is unspecified, because the owner of the graphs chooses it.

`subject_id` and `object_id` are CURIEs (`largegnn.export.curies`) of the entities' IRIs (`largegnn.export.iris`). Where
a CURIE does not expand to the very name in the user's files, `subject_label` or `object_label` holds that name. Packed
names are unpacked by `largegnn.data.iri.decode_names`; names with control characters have no label.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from largegnn.export.curies import CONTROL, choose_prefixes, shorten
from largegnn.export.info import TOOL, Exporter, ExportInfo, parts_of, write_parts
from largegnn.export.iris import with_iris
from largegnn.export.table import share_no_higher

__all__ = ["RELATION_FORMS", "SSSOM", "export_relations", "sssom_parts"]

RELATION_FORMS = {"sssom-relations": "relations.sssom.tsv"}
_ROLES = {"source": "subject", "target": "object"}
# By the mapping, and whether the relations are inverse.
_RELATION_PREDICATES = {
    ("exact", False): "skos:exactMatch",
    ("narrower", False): "skos:broadMatch",
    ("broader", False): "skos:narrowMatch",
    ("exact", True): "owl:inverseOf",
}
_RELATION_MEASURE = "likelihood that both relations join the same matched entities"
_NO_LICENCE = "https://w3id.org/sssom/license/unspecified"
_SCHEMA_VERSION = "1.1"  # the first version with a similarity measure in the header


def _write_sssom(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write pairs of entities."""
    if "cosine" in table.columns:
        similarity, measure = table["cosine"].fill_nan(None).clip(0, 1), "cosine similarity of entity embeddings"
    else:
        similarity = share_no_higher(table["score"])
        measure = f"share of the mappings whose score is no higher; score: {info.scoring}"
    confidence = [pl.col("confidence").fill_nan(None).clip(0, 1)] if info.calibrated else []
    mappings = table.select(
        "source",
        "target",
        pl.lit("skos:exactMatch").alias("predicate_id"),
        pl.lit("semapv:SemanticSimilarityThresholdMatching").alias("mapping_justification"),
        *confidence,
        similarity.alias("similarity_score"),
    )
    return _write(mappings, path, info, info.title, measure)


def export_relations(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write the table `relations_table` of `largegnn.review.tables`; returns the number of rows written."""
    kinds = zip(table["mapping"].to_list(), table["inverse"].to_list(), strict=True)
    predicates = pl.Series("predicate_id", [_RELATION_PREDICATES.get(kind) for kind in kinds], dtype=pl.String)
    mappings = table.select(
        "source",
        "target",
        predicates,
        pl.lit("semapv:InstanceBasedMatching").alias("mapping_justification"),
        pl.col("score").clip(0, 1).alias("similarity_score"),
        (pl.col("count").cast(pl.String) + pl.lit(" matched triples")).alias("comment"),
    )
    return _write(mappings.drop_nulls("predicate_id"), path, info, f"{info.title}: relations", _RELATION_MEASURE)


def _write(mappings: pl.DataFrame, path: Path, info: ExportInfo, title: str, measure: str) -> int:
    facts = {"mapping_set_title": title, "mapping_set_description": info.description}
    write_parts(path, sssom_parts(mappings, info, facts, {"similarity_measure": measure}))
    return len(mappings)


def sssom_parts(
    mappings: pl.DataFrame, info: ExportInfo, first: Mapping[str, str], last: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Make the text of a file in parts; `mappings` has the names of source and target, and then columns of the file.

    `first` and `last` are facts about the set, which the header holds before and after the origin of the file.
    """
    named = with_iris(mappings, info)
    prefixes = choose_prefixes((named[f"{side}_iri"] for side in _ROLES), info.prefixes)
    predicates = [name for name in mappings.columns if name.startswith("predicate")]
    other_columns = [name for name in mappings.columns if name not in (*_ROLES, *predicates)]

    def rows(part: pl.DataFrame) -> pl.DataFrame:
        subject, target = (_ends(part, side, role, prefixes) for side, role in _ROLES.items())
        return part.select(*subject, *predicates, *target, *other_columns)

    yield _header(info, prefixes, first, last or {})
    yield "\t".join(rows(named.clear()).columns) + "\n"
    for part in parts_of(named):
        yield rows(part).write_csv(separator="\t", include_header=False, quote_style="necessary")


def _ends(named: pl.DataFrame, side: str, role: str, prefixes: dict[str, str]) -> list[pl.Series | pl.Expr]:
    """Make the columns of a side, CURIE and label, from a table with names and IRIs."""
    short = shorten(named[side], named[f"{side}_iri"], prefixes)
    is_labelled = short.rewritten & ~named[side].str.contains(CONTROL)
    return [short.curies.alias(f"{role}_id"), pl.when(is_labelled).then(named[side]).alias(f"{role}_label")]


def _header(info: ExportInfo, prefixes: Mapping[str, str], first: Mapping[str, str], last: Mapping[str, str]) -> str:
    """Make the header: facts about the set, its origin, further facts, and the prefixes."""
    origin = "\0".join([info.tool_version, *first.values(), info.created.isoformat()])
    facts = {
        "sssom_version": _SCHEMA_VERSION,
        "mapping_set_id": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, origin)}",
        **first,
        "license": _NO_LICENCE,
        "mapping_tool": TOOL,
        "mapping_tool_version": info.tool_version,
        "mapping_date": info.created.isoformat(),
        **last,
    }
    lines = [f"#{key}: {_yaml_text(value)}" for key, value in facts.items()]
    lines += ["#curie_map:", *(f"#  {prefix}: {_yaml_text(iri)}" for prefix, iri in prefixes.items())]
    return "\n".join(lines) + "\n"


def _yaml_text(text: str) -> str:
    """Write a string in double quotes, on one line whatever it holds."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)
    return f'"{escaped}"'


SSSOM = Exporter("alignment.sssom.tsv", _write_sssom, accepted_only=True, description="SSSOM, skos:exactMatch in TSV")
