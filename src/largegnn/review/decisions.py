"""Keep the decisions of reviewers in an append-only file, and write them as files for others.

In: decisions. Out: the decisions that were not undone; a table; SSSOM with the reviewers as authors. The file has one
JSON object in each line, flushed to disk before the page answers. No line is ever rewritten, so that a kill at any
moment loses nothing and two programs may append to one file. In SSSOM an accepted pair is `skos:exactMatch`, a rejected
pair the same with the modifier `Not`; unsure and disputed pairs are in the table alone.
Cost: one write and one flush for each action.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from largegnn.data.decisions import Decision, Verdict, decisions_of, read_entries, verdicts
from largegnn.errors import StorageError
from largegnn.export.curies import CONTROL, choose_prefixes, shorten
from largegnn.export.info import TOOL, ExportInfo
from largegnn.export.iris import with_iris
from largegnn.export.sssom import sssom_header
from largegnn.export.tabular import plain_names
from largegnn.machine.atomic import write_text

__all__ = ["DecisionLog", "decisions_sssom", "decisions_tsv", "write_decisions"]

_COLUMNS = ("source", "target", "decision", "reviewer", "time")


class DecisionLog:
    """The decisions in a file, to which more are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._entries = read_entries(path) if path.exists() else []
        self._kept = decisions_of(self._entries)

    def decisions(self) -> list[Decision]:
        """The decisions that were not undone, in order."""
        with self._lock:
            return list(self._kept)

    def add(self, *decisions: Decision) -> None:
        """Append decisions and flush them to disk; together they are one line, written whole or not at all."""
        self._append({"decisions": [asdict(one) for one in decisions]})

    def undo(self, reviewer: str) -> tuple[Decision, ...]:
        """Undo the last action of a reviewer; returns its decisions, or nothing."""
        with self._lock:
            last = next((one.action for one in reversed(self._kept) if one.reviewer == reviewer), None)
            undone = tuple(one for one in self._kept if one.action == last) if last is not None else ()
        if last is not None:
            self._append({"undo": last, "reviewer": reviewer})
        return undone

    def _append(self, entry: dict[str, Any]) -> None:
        line = (json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                try:
                    size = os.fstat(descriptor).st_size
                    if size and os.pread(descriptor, 1, size - 1) != b"\n":
                        line = b"\n" + line  # the incomplete last line of a killed program stays a line of its own
                    if os.write(descriptor, line) != len(line):
                        raise OSError("the disk is full")
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
            except OSError as error:
                raise StorageError(
                    f"the decision could not be saved in {self.path}: {error.strerror or error}"
                ) from error
            self._entries.append(entry)
            if "undo" in entry:
                self._kept = decisions_of(self._entries)
            else:
                self._kept += decisions_of([entry])


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
        "mapping_set_description": f"Pairs proposed by {TOOL}, as decided by reviewers",
    }
    return sssom_header(info, prefixes, facts) + rows.write_csv(separator="\t", quote_style="necessary")


def write_decisions(decisions: Iterable[Decision], path: Path, info: ExportInfo) -> None:
    """Write one of the two forms, by the file's name."""
    kept = list(decisions)
    write_text(path, decisions_sssom(kept, info) if path.name.endswith(".sssom.tsv") else decisions_tsv(kept))


def _row(pair: tuple[str, str], found: Verdict) -> tuple[str, str, str | None, str, str]:
    modifier = "Not" if found.decision == "reject" else None
    return (*pair, modifier, "|".join(name or "reviewer" for name in found.reviewers), found.time[:10])
