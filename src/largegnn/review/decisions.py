"""What reviewers decided: an append-only file, one JSON object in each line, flushed before anybody is answered.

In: decisions on pairs by name, and files of them. Out: the verdict on each pair. Nothing is ever rewritten: to undo is
a line of its own, so that a kill at any moment loses nothing, and two programs may append to one file. A line that was
cut off is skipped. Where reviewers disagree a pair is disputed, and nobody is believed.
Cost: one write and one flush for each decision; reading is linear in the decisions.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from largegnn.errors import InputError, StorageError

__all__ = ["DECISIONS", "Decision", "DecisionLog", "Verdict", "read_decisions", "verdicts"]

_log = logging.getLogger(__name__)
DECISIONS = ("accept", "reject", "unsure")
_LONGEST_NAME = 64


@dataclass(frozen=True)
class Decision:
    """One reviewer's word on a pair; those of one `action` were taken, and are undone, together."""

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
        name = "".join(letter for letter in self.reviewer if letter.isprintable()).strip()[:_LONGEST_NAME]
        object.__setattr__(self, "reviewer", name)


@dataclass(frozen=True)
class Verdict:
    """What is known of a pair: accept, reject, unsure, or disputed where reviewers disagree; by whom, and when."""

    decision: str
    reviewers: tuple[str, ...]
    time: str


def verdicts(decisions: Iterable[Decision]) -> dict[tuple[str, str], Verdict]:
    """The verdict on each pair, by the last word of each reviewer."""
    last: dict[tuple[str, str], dict[str, Decision]] = {}
    for one in decisions:
        said = last.setdefault((one.source, one.target), {})
        said.pop(one.reviewer, None)
        said[one.reviewer] = one
    found = {}
    for pair, said in last.items():
        words = {one.decision for one in said.values()}
        firm = words - {"unsure"}
        word = "disputed" if len(firm) > 1 else next(iter(firm), "unsure")
        found[pair] = Verdict(word, tuple(said), max(one.time for one in said.values()))
    return found


class DecisionLog:
    """The decisions of a file, and more as they are taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._entries = _read_lines(path) if path.exists() else []
        self._kept = _undone(self._entries)

    def decisions(self) -> list[Decision]:
        """All that were not undone, in order."""
        with self._lock:
            return list(self._kept)

    def add(self, *decisions: Decision) -> None:
        """Append decisions and flush them to disk; together they are one line, there whole or not at all."""
        self._append({"decisions": [asdict(one) for one in decisions]})

    def undo(self, reviewer: str) -> tuple[Decision, ...]:
        """Take back what a reviewer did last; returns that, or nothing."""
        with self._lock:
            last = next((one.action for one in reversed(self._kept) if one.reviewer == reviewer), None)
            gone = tuple(one for one in self._kept if one.action == last) if last is not None else ()
        if last is not None:
            self._append({"undo": last, "reviewer": reviewer})
        return gone

    def _append(self, entry: dict[str, Any]) -> None:
        line = (json.dumps(entry, ensure_ascii=False) + "\n").encode("utf-8", "replace")
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
                try:
                    size = os.fstat(descriptor).st_size
                    if size and os.pread(descriptor, 1, size - 1) != b"\n":
                        line = b"\n" + line  # what a killed program left of its last line stays a line of its own
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
            self._kept = _undone(self._entries) if "undo" in entry else [*self._kept, *_of(entry)]


def read_decisions(path: Path) -> list[Decision]:
    """The decisions of a file: what `review` appends to, or a table with the columns source, target and decision."""
    try:
        with path.open("rb") as file:
            start = file.read(1)
    except FileNotFoundError:
        raise InputError("the file does not exist", where=str(path), fix="check the path") from None
    except OSError as error:
        raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None
    return _undone(_read_lines(path)) if start in (b"{", b"\n", b"") else _read_table(path)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    entries = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            _of(entry)
        except (ValueError, KeyError, TypeError, InputError):
            if number < len(lines):
                _log.warning("%s, line %d: no decision, skipped", path, number)
            continue
        entries.append(entry)
    return entries


def _read_table(path: Path) -> list[Decision]:
    """A table as `review` exports it; other columns are not looked at."""
    import polars as pl  # here, as a server appends without it

    from largegnn.data.iri import decode_names

    rows = path.read_text(encoding="utf-8", errors="replace").split("\n")
    names = rows[0].rstrip("\r").lstrip("\ufeff").split("\t")
    if not {"source", "target", "decision"} <= set(names):
        raise InputError(
            "this is no file of decisions",
            where=str(path),
            expected="what `largegnn review` writes, or a TSV file with the columns source, target and decision",
            found=f"the columns {', '.join(names)[:200]}",
        )
    found = []
    for number, row in enumerate(rows[1:], start=2):
        cells: Mapping[str, str] = dict(zip(names, row.rstrip("\r").split("\t"), strict=False))
        if row.strip() and cells.get("decision") != "disputed":
            try:
                source, target = decode_names(pl.Series([cells["source"], cells["target"]]))
                found.append(Decision(source, target, cells["decision"], cells.get("reviewer", "")))
            except (InputError, KeyError) as error:
                raise InputError("this row is no decision", where=f"{path}, line {number}", found=str(error)) from None
    return found


def _of(entry: dict[str, Any]) -> list[Decision]:
    if isinstance(entry.get("undo"), str):
        return []
    return [Decision(**{key: str(value) for key, value in one.items()}) for one in entry["decisions"]]


def _undone(entries: list[dict[str, Any]]) -> list[Decision]:
    """The decisions that count."""
    gone = {entry["undo"] for entry in entries if "undo" in entry}
    kept: list[Decision] = []
    for entry in entries:
        with contextlib.suppress(KeyError):
            kept += [one for one in _of(entry) if one.action not in gone]
    return kept
