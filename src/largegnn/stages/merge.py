"""The stage `merge`: the two graphs become one at the seeds."""

from __future__ import annotations

import logging

from largegnn.artifacts import AlignmentTask
from largegnn.division.merge import MergeOutcome, MergeResult, merge_result
from largegnn.planning.seeds import seeds_warning
from largegnn.settings import ProtocolSettings

__all__ = ["MergeOutcome", "MergeResult", "merge"]

_log = logging.getLogger(__name__)


def merge(task: AlignmentTask, protocol: ProtocolSettings) -> MergeResult:
    """Warn of too few seeds, and contract every seed pair to one node."""
    warning = seeds_warning(task, protocol.seeds_from)
    if warning is not None:
        _log.warning("merge: %s", warning)
    return merge_result(task, protocol.seeds_from)
