"""Keep the decisions of reviewers in an append-only file, and export them as a table or as SSSOM.

In: decisions. Out: the decisions that were not undone; a table; SSSOM with the reviewers as authors. The file has one
JSON object in each line, flushed to disk before the page answers. No line is ever rewritten, so no decision is lost if
the program is killed, and two programs may append to one file. In SSSOM an accepted pair is a `skos:exactMatch`, and a
rejected pair is a `skos:exactMatch` with the modifier `Not`; unsure and disputed pairs are only in the table.
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

from largegnn.data.decisions import Decision, decisions_of, read_entries, verdicts
from largegnn.errors import StorageError
from largegnn.export.info import TOOL, ExportInfo
from largegnn.export.sssom import sssom_parts
from largegnn.export.tabular import plain_names
from largegnn.machine.atomic import write_text

__all__ = ["DecisionLog", "decisions_sssom", "decisions_tsv", "write_decisions"]

_COLUMNS = ("source", "target", "decision", "reviewer", "time")
_SSSOM_COLUMNS = (
    "source",
    "target",
    "predicate_id",
    "predicate_modifier",
    "mapping_justification",
    "author_label",
    "mapping_date",
)


class DecisionLog:
    """The decisions in a file, to which new decisions are appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._kept = decisions_of(read_entries(path)) if path.exists() else []

    def decisions(self) -> list[Decision]:
        """The decisions that were not undone, in order."""
        with self._lock:
            return list(self._kept)

    def add(self, *decisions: Decision) -> None:
        """Append decisions and flush them to disk; together they are one line, written whole or not at all."""
        with self._lock:
            self._append({"decisions": [asdict(decision) for decision in decisions]})
            self._kept += decisions

    def undo(self, reviewer: str) -> tuple[Decision, ...]:
        """Undo the last action of a reviewer; returns its decisions, an empty tuple if there is none."""
        with self._lock:
            last = next((entry.action for entry in reversed(self._kept) if entry.reviewer == reviewer), None)
            if last is None:
                return ()
            self._append({"undo": last, "reviewer": reviewer})
            undone = tuple(decision for decision in self._kept if decision.action == last)
            self._kept = [decision for decision in self._kept if decision.action != last]
        return undone

    def _append(self, entry: dict[str, Any]) -> None:
        line = (json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b", buffering=0) as file:
                size = file.seek(0, os.SEEK_END)
                if size and os.pread(file.fileno(), 1, size - 1) != b"\n":
                    line = b"\n" + line  # the incomplete last line of a killed program stays a line of its own
                if file.write(line) != len(line):
                    raise OSError("the disk is full")
                os.fsync(file.fileno())
        except OSError as error:
            problem = f"the decision could not be saved in {self.path}: {error.strerror or error}"
            raise StorageError(problem) from error


def decisions_tsv(decisions: Iterable[Decision]) -> str:
    """Write the verdicts on the pairs as a table, which `align --decisions` reads."""
    verdict_of_pair = verdicts(decisions)
    names = [plain_names(pl.Series([pair[side] for pair in verdict_of_pair], dtype=pl.String)) for side in (0, 1)]
    lines = ["\t".join(_COLUMNS)]
    for source, target, verdict in zip(*names, verdict_of_pair.values(), strict=True):
        lines.append("\t".join((source, target, verdict.decision, ", ".join(verdict.reviewers), verdict.time)))
    return "\n".join(lines) + "\n"


def decisions_sssom(decisions: Iterable[Decision], info: ExportInfo) -> str:
    """Write the accepted and the rejected pairs as SSSOM TSV."""
    rows = [
        (
            *pair,
            "skos:exactMatch",
            "Not" if verdict.decision == "reject" else None,
            "semapv:ManualMappingCuration",
            "|".join(name or "reviewer" for name in verdict.reviewers),
            verdict.time[:10],  # the date
        )
        for pair, verdict in verdicts(decisions).items()
        if verdict.decision in ("accept", "reject")
    ]
    table = pl.DataFrame(rows, schema=dict.fromkeys(_SSSOM_COLUMNS, pl.String), orient="row")
    facts = {
        "mapping_set_title": f"{info.title}: decisions of reviewers",
        "mapping_set_description": f"Pairs proposed by {TOOL}, as decided by reviewers",
    }
    return "".join(sssom_parts(table, info, facts))


def write_decisions(decisions: Iterable[Decision], path: Path, info: ExportInfo) -> None:
    """Write decisions to a file: SSSOM if its name ends with `.sssom.tsv`, else the table."""
    kept = list(decisions)
    write_text(path, decisions_sssom(kept, info) if path.name.endswith(".sssom.tsv") else decisions_tsv(kept))
