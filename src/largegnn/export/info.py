"""What an exported file says about where it comes from, and what an exporter is.

In: what the caller knows of the run. Out: the same, in one value every exporter takes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import MappingProxyType

import polars as pl

from largegnn.errors import InputError

__all__ = ["TOOL", "ExportInfo", "Exporter"]

TOOL = "LargeGNN"
_IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\ufffe\uffff]*')
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ExportInfo:
    """Where an alignment comes from: the tool, the run, the two graphs, how pairs were judged, and what names mean."""

    tool_version: str
    title: str
    """What the run is called: its id, or the name of its folder."""
    source_name: str
    target_name: str
    protocol: str
    """Which links training saw and what was aligned, in words."""
    scoring: str
    """How pairs were scored."""
    selection: str
    """How pairs were selected by their scores."""
    threshold: float | None
    """What a pair had to reach to be accepted; None where every selected pair was accepted."""
    calibrated: bool
    """Whether confidence is a probability; where it is none, no file says that it is."""
    created: date
    base_iri: str | None = None
    """What to put before names that are no IRIs; None packs them into `urn:largegnn:`."""
    target_base_iri: str | None = None
    """The same for the target's names, where one name means another entity there."""
    prefixes: Mapping[str, str] = dataclasses.field(default_factory=lambda: MappingProxyType({}))
    """What prefixed names as `dbr:Paris` stand for: IRIs by prefix."""

    def __post_init__(self) -> None:
        for iri in (self.base_iri, self.target_base_iri, *self.prefixes.values()):
            if iri is not None and not _IRI.fullmatch(iri):
                raise InputError(
                    "this is no IRI", expected="for instance http://dbpedia.org/resource/", found=repr(iri[:200])
                )
        for prefix in self.prefixes:
            if not _PREFIX.fullmatch(prefix):
                raise InputError("this is no prefix", expected="for instance dbr", found=repr(prefix[:200]))

    @property
    def description(self) -> str:
        """All of it in one line."""
        bar = "no threshold" if self.threshold is None else f"threshold {self.threshold:g}"
        meaning = (
            "confidence is calibrated"
            if self.calibrated
            else "scores are not calibrated: they order the pairs, and are no probabilities"
        )
        return (
            f"Entities of {self.source_name} aligned with entities of {self.target_name}; "
            f"protocol: {self.protocol}; scoring: {self.scoring}; selection: {self.selection}, {bar}; {meaning}"
        )


@dataclass(frozen=True)
class Exporter:
    """A form in which an alignment can be written: an entry of the table `exporters`."""

    file_name: str
    """What the file is called where nobody names it."""
    write: Callable[[pl.DataFrame, Path, ExportInfo], int]
    """Takes a table as `alignment_table` makes it, a path and what is known of the run; returns the rows written."""
    accepted_only: bool
    """Whether the form can only say that two entities are the same, so that it is given accepted pairs alone."""
    description: str
