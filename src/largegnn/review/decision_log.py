"""The file of decisions, as they are taken: append-only, one JSON object in each line, flushed before an answer.

In: decisions. Out: those that count. Nothing is rewritten, so that a kill at any moment loses nothing, and two programs
may append to one file. Cost: one write and one flush for each action.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from largegnn.data.decisions import Decision, decisions_of, read_entries
from largegnn.errors import StorageError

__all__ = ["DecisionLog"]


class DecisionLog:
    """The decisions of a file, and more as they are taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._entries = read_entries(path) if path.exists() else []
        self._kept = decisions_of(self._entries)

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
            if "undo" in entry:
                self._kept = decisions_of(self._entries)
            else:
                self._kept += decisions_of([entry])
