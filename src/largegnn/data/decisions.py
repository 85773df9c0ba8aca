"""Read the decisions of reviewers: files of decisions, the verdict on each pair, and the resulting links.

In: a file that `largegnn review` appends to, or a table with the columns source, target and decision. Out: accepted
pairs become seeds, rejected pairs are forbidden. Lines are only appended, never rewritten: undoing a decision is a line
too. An incomplete line is skipped. If reviewers disagree, the pair is disputed, neither accepted nor rejected.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from largegnn.artifacts import IntArray, Mask
from largegnn.data.compression import first_bytes
from largegnn.data.shown import listed
from largegnn.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "DECISIONS",
    "Decision",
    "Verdict",
    "decision_ids",
    "decisions_of",
    "read_decisions",
    "read_entries",
    "verdicts",
]

_log = logging.getLogger(__name__)
DECISIONS = ("accept", "reject", "unsure")
_MAX_NAME_CHARS = 64


@dataclass(frozen=True)
class Decision:
    """One reviewer's decision on a pair; decisions with the same `action` are undone together."""

    source: str
    target: str
    decision: str
    reviewer: str = ""
    time: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"))
    action: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        if self.decision not in DECISIONS:
            raise InputError(f"there is no decision {self.decision[:40]!r}", expected=", ".join(DECISIONS))
        if not self.source or not self.target:
            raise InputError("a decision needs a source and a target")
        name = "".join(letter for letter in self.reviewer if letter.isprintable()).strip()[:_MAX_NAME_CHARS]
        object.__setattr__(self, "reviewer", name)


@dataclass(frozen=True)
class Verdict:
    """The decision on a pair (accept, reject, unsure, or disputed if reviewers disagree), by whom and when."""

    decision: str
    reviewers: tuple[str, ...]
    time: str


def verdicts(decisions: Iterable[Decision]) -> dict[tuple[str, str], Verdict]:
    """Find the verdict on each pair, from the last decision of each reviewer."""
    last: dict[tuple[str, str], dict[str, Decision]] = {}
    for decision in decisions:
        by_reviewer = last.setdefault((decision.source, decision.target), {})
        by_reviewer.pop(decision.reviewer, None)  # reviewers are listed in the order of their last decisions
        by_reviewer[decision.reviewer] = decision
    verdict_of = {}
    for pair, by_reviewer in last.items():
        definite = {decision.decision for decision in by_reviewer.values()} - {"unsure"}
        word = "disputed" if len(definite) > 1 else next(iter(definite), "unsure")
        verdict_of[pair] = Verdict(word, tuple(by_reviewer), max(decision.time for decision in by_reviewer.values()))
    return verdict_of


def decision_ids(path: Path, source: pl.Series, target: pl.Series, *, skip_unknown: bool) -> tuple[IntArray, IntArray]:
    """Read the accepted pairs (a, 2) and the rejected pairs (r, 2) of a file as ids, sorted.

    `source` and `target` are all names of either side, in the order of their ids.
    """
    import polars as pl

    from largegnn.data.vocabulary import lookup

    word_of = {pair: verdict.decision for pair, verdict in verdicts(read_decisions(path)).items()}
    kept = [pair for pair, word in word_of.items() if word in ("accept", "reject")]
    named = [pl.Series([pair[side] for pair in kept], dtype=pl.String) for side in (0, 1)]
    ids = np.stack([lookup(named[0], source), lookup(named[1], target)], axis=1).astype(np.int64)
    known: Mask = np.all(ids >= 0, axis=1)
    if not known.all() and not skip_unknown:
        unknown = [pair[int(ids[row, 0] >= 0)] for row, pair in enumerate(kept) if not known[row]]
        raise InputError(
            f"{len(unknown):,} of {len(kept):,} decisions name entities that are not in the graphs",
            where=str(path),
            found=listed(unknown),
            fix="check that source and target are those of the run that was reviewed; --skip-unknown leaves them out",
        )
    ids[:, 1] += len(source)
    is_accepted = np.array([word_of[pair] == "accept" for pair in kept], dtype=bool)
    accepted, rejected = (np.unique(ids[known & mask], axis=0) for mask in (is_accepted, ~is_accepted))
    return accepted.astype(np.int32), rejected.astype(np.int32)


def read_decisions(path: Path) -> list[Decision]:
    """Read a file of decisions: one that `review` appends to, or a table with the columns source, target, decision."""
    start = first_bytes(path, 1)
    return decisions_of(read_entries(path)) if start in (b"{", b"\n", b"") else _read_table(path)


def read_entries(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a file that decisions are appended to; other lines are skipped with a warning."""
    entries = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            _parse_entry(entry)  # raises if the line is not a decision
        except (ValueError, KeyError, TypeError, InputError):
            if number < len(lines):
                _log.warning("%s, line %d: not a decision, skipped", path, number)
            continue
        entries.append(entry)
    return entries


def _read_table(path: Path) -> list[Decision]:
    """Read a table as `review` exports it; other columns are ignored."""
    import polars as pl  # imported here, because a server that only appends decisions does not need it

    from largegnn.data.iri import decode_names

    rows = path.read_text(encoding="utf-8", errors="replace").split("\n")
    names = rows[0].rstrip("\r").lstrip("\ufeff").split("\t")
    if not {"source", "target", "decision"} <= set(names):
        raise InputError(
            "this is not a file of decisions",
            where=str(path),
            expected="what `largegnn review` writes, or a TSV file with the columns source, target and decision",
            found=f"the columns {', '.join(names)[:200]}",
        )
    decisions = []
    for number, row in enumerate(rows[1:], start=2):
        cells: Mapping[str, str] = dict(zip(names, row.rstrip("\r").split("\t"), strict=False))
        if row.strip() and cells.get("decision") != "disputed":
            try:
                source, target = decode_names(pl.Series([cells["source"], cells["target"]]))
                decisions.append(Decision(source, target, cells["decision"], cells.get("reviewer", "")))
            except (InputError, KeyError) as error:
                raise InputError(
                    "this row is not a decision", where=f"{path}, line {number}", found=str(error)
                ) from None
    return decisions


def _parse_entry(entry: dict[str, Any]) -> list[Decision]:
    """Return the decisions of a line; the line of an undo has none."""
    if isinstance(entry.get("undo"), str):
        return []
    return [Decision(**{key: str(value) for key, value in fields.items()}) for fields in entry["decisions"]]


def decisions_of(entries: list[dict[str, Any]]) -> list[Decision]:
    """Return the decisions of lines, without those that were undone."""
    undone = {entry["undo"] for entry in entries if "undo" in entry}
    kept: list[Decision] = []
    for entry in entries:
        with contextlib.suppress(KeyError):
            kept += [decision for decision in _parse_entry(entry) if decision.action not in undone]
    return kept
