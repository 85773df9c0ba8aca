"""What is measured on the test links, and which files a run leaves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from largegnn.seams.tables import MEASURES, PAGES
from largegnn.settings.parts import PartsOf
from largegnn.settings.section import Section

__all__ = ["EvaluateSettings", "ReportSettings"]


class EvaluateSettings(Section):
    """What is measured on the test links (stage `evaluate`)."""

    gold: Literal["auto", "full", "partial"] = Field(
        "auto",
        description="full: test links are complete. partial: judge only pairs that touch one. auto: as the links look.",
    )
    measures: Annotated[tuple[str, ...], PartsOf(MEASURES)] = Field(
        ("hits@1", "hits@5", "hits@10", "mrr"), description="Measures of the ranks of the test links."
    )


class ReportSettings(Section):
    """Which files a finished run leaves in its folder (stage `report`)."""

    pages: Annotated[tuple[str, ...], PartsOf(PAGES, least=0)] = Field(
        ("alignment.tsv", "alignment.parquet", "unmatched.tsv", "duplicates.tsv", "report.json"),
        description="Files written into the run folder.",
    )
