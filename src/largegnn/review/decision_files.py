"""Decisions as files for others: a table, and SSSOM with the reviewers as authors.

In: decisions, and what is known of the run. Out: text. In SSSOM an accepted pair is `skos:exactMatch`, a rejected one
the same with the modifier `Not`; pairs that are unsure or disputed are in the table alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from largegnn.data.decisions import Decision, Verdict, verdicts
from largegnn.export.curies import CONTROL, choose_prefixes, shorten
from largegnn.export.info import TOOL, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.sssom import sssom_header
from largegnn.export.tabular import plain_names
from largegnn.machine.atomic import write_text

__all__ = ["decisions_sssom", "decisions_tsv", "write_decisions"]

_COLUMNS = ("source", "target", "decision", "reviewer", "time")


def decisions_tsv(decisions: Iterable[Decision]) -> str:
    """The verdict on each pair, in a table that `align --decisions` reads."""
    found = verdicts(decisions)
    names = [plain_names(pl.Series([pair[side] for pair in found], dtype=pl.String)) for side in (0, 1)]
    lines = ["\t".join(_COLUMNS)]
    for source, target, one in zip(*names, found.values(), strict=True):
        lines.append("\t".join((source, target, one.decision, ", ".join(one.reviewers), one.time)))
    return "\n".join(lines) + "\n"


def decisions_sssom(decisions: Iterable[Decision], info: ExportInfo) -> str:
    """Accepted and rejected pairs as SSSOM TSV."""
    found = [(pair, one) for pair, one in verdicts(decisions).items() if one.decision in ("accept", "reject")]
    table = pl.DataFrame(
        [_row(pair, one) for pair, one in found],
        schema=dict.fromkeys(("source", "target", "modifier", "author", "date"), pl.String),
        orient="row",
    )
    named = with_iris(table, info)
    prefixes = choose_prefixes((named[f"{side}_iri"] for side in ("source", "target")), info.prefixes)
    columns: list[pl.Expr | pl.Series] = []
    for side, role in (("source", "subject"), ("target", "object")):
        short = shorten(named[side], named[f"{side}_iri"], prefixes)
        labelled = short.rewritten & ~named[side].str.contains(CONTROL)
        columns += [short.curies.alias(f"{role}_id"), pl.when(labelled).then(named[side]).alias(f"{role}_label")]
    rows = named.select(
        columns[0],
        columns[1],
        pl.lit("skos:exactMatch").alias("predicate_id"),
        pl.col("modifier").alias("predicate_modifier"),
        columns[2],
        columns[3],
        pl.lit("semapv:ManualMappingCuration").alias("mapping_justification"),
        pl.col("author").alias("author_label"),
        pl.col("date").alias("mapping_date"),
    )
    facts = {
        "mapping_set_title": f"{info.title}: decisions of reviewers",
        "mapping_set_description": f"Pairs that {TOOL} proposed, as reviewers decided",
    }
    return sssom_header(info, prefixes, facts) + rows.write_csv(separator="\t", quote_style="necessary")


def write_decisions(decisions: Iterable[Decision], path: Path, info: ExportInfo) -> None:
    """Write one of the two forms, by the file's name."""
    kept = list(decisions)
    write_text(path, decisions_sssom(kept, info) if path.name.endswith(".sssom.tsv") else decisions_tsv(kept))


def _row(pair: tuple[str, str], found: Verdict) -> tuple[str, str, str | None, str, str]:
    modifier = "Not" if found.decision == "reject" else None
    return (*pair, modifier, "|".join(name or "reviewer" for name in found.reviewers), found.time[:10])
