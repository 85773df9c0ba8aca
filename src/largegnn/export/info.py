"""Describe an exporter and the run it exports, and write text in parts.

`Exporter` is an entry of the table of exporters; `ExportInfo` holds the facts about the run that every exporter gets.
`write_parts` writes a file part by part, so that the text of a table of millions of rows is never in memory at once.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType

import polars as pl

from largegnn.errors import InputError
from largegnn.machine.atomic import ByteSink, write_files

__all__ = ["ROWS_PER_PART", "TOOL", "ExportInfo", "Exporter", "parts_of", "write_lines", "write_parts"]

TOOL = "LargeGNN"
ROWS_PER_PART = 250_000
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\ufffe\uffff]*')
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ExportInfo:
    """The origin of an alignment (tool, run, graphs, scoring, selection), and how names become IRIs."""

    tool_version: str
    title: str
    """The id of the run, or the name of its folder."""
    source_name: str
    target_name: str
    protocol: str
    """The links used for training, and what was aligned, in words."""
    scoring: str
    """How pairs were scored."""
    selection: str
    """How pairs were selected by their scores."""
    threshold: float | None
    """The minimum confidence of an accepted pair; None where every selected pair was accepted."""
    calibrated: bool
    """Whether confidence is a probability; if it is not, no file holds a confidence."""
    created: date
    base_iri: str | None = None
    """The beginning of the IRIs of names that are not IRIs; None packs these names into `urn:largegnn:`."""
    target_base_iri: str | None = None
    """The beginning for target names, where equal names of the two sides mean different entities; None: `base_iri`."""
    prefixes: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """Namespaces by prefix, to expand prefixed names such as `dbr:Paris`."""

    def __post_init__(self) -> None:
        for iri in (self.base_iri, self.target_base_iri, *self.prefixes.values()):
            if iri is not None and not _IRI.fullmatch(iri):
                raise InputError(
                    "not a valid IRI", expected="for instance http://dbpedia.org/resource/", found=repr(iri[:200])
                )
        for prefix in self.prefixes:
            if not _PREFIX.fullmatch(prefix):
                raise InputError("not a valid prefix", expected="for instance dbr", found=repr(prefix[:200]))

    @property
    def description(self) -> str:
        """The facts about the run in one line."""
        threshold = "no threshold" if self.threshold is None else f"threshold {self.threshold:g}"
        meaning = (
            "confidence is calibrated"
            if self.calibrated
            else "scores are not calibrated: they rank the pairs, and are not probabilities"
        )
        return (
            f"Entities of {self.source_name} aligned with entities of {self.target_name}; "
            f"protocol: {self.protocol}; scoring: {self.scoring}; selection: {self.selection}, {threshold}; {meaning}"
        )

    @property
    def comment(self) -> str:
        """The origin as a comment line of N-Triples or Turtle."""
        origin = f"{TOOL} {self.tool_version}, {self.created.isoformat()}, {self.title}: {self.description}"
        return f"# {' '.join(origin.split())}\n"


@dataclass(frozen=True)
class Exporter:
    """A form in which an alignment can be written: an entry of the table `exporters`."""

    file_name: str
    """The default name of the file."""
    write: Callable[[pl.DataFrame, Path, ExportInfo], int]
    """Write a table made by `alignment_table` to a path; returns the number of rows written."""
    accepted_only: bool
    """Whether the form can only state that two entities are the same, and so gets only accepted pairs."""
    description: str


def parts_of(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split a table into slices of rows."""
    return table.iter_slices(ROWS_PER_PART)


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text file in UTF-8, a part at a time."""

    def write(sink: ByteSink) -> None:
        for part in parts:
            sink.write(part.encode("utf-8"))

    write_files({path: write})


def write_lines(
    table: pl.DataFrame, path: Path, lines_of: Callable[[pl.DataFrame], pl.Series], start: str = "", end: str = ""
) -> int:
    """Write a start, a line for each row of a table, and an end; returns the number of rows."""
    parts = ((lines_of(part) + "\n").str.join().item() for part in parts_of(table))
    write_parts(path, itertools.chain([start], parts, [end]))
    return len(table)
