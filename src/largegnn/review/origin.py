"""What a file says about the run it comes from."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING

from largegnn.export.info import ExportInfo
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.stages.report import RunSummary

__all__ = ["export_info"]


def export_info(
    summary: RunSummary,
    title: str,
    *,
    base_iri: str | None = None,
    target_base_iri: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> ExportInfo:
    """Where an alignment comes from, for the head of its files; `base_iri` and `prefixes` are for RDF forms."""
    settings, match = summary.settings, summary.match
    assert match is not None, "only a run with pairs is exported"
    return ExportInfo(
        tool_version=__version__,
        title=title,
        source_name="source",
        target_name="target",
        protocol=f"seeds from {settings.protocol.seeds_from}, all other entities are candidates, "
        f"channels {', '.join(settings.channels)}",
        scoring=settings.match.scoring,
        selection=settings.match.selection,
        threshold=match.threshold.threshold,
        calibrated=match.calibration.is_calibrated,
        created=datetime.datetime.now(datetime.UTC).date(),
        base_iri=base_iri,
        target_base_iri=target_base_iri,
        prefixes=dict(prefixes or {}),
    )
