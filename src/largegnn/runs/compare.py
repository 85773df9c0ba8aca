"""Runs side by side: the settings that differ, and the figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from largegnn.errors import InputError
from largegnn.runs.evaluation import evaluated_run
from largegnn.settings import flat_settings
from largegnn.stages.report import RunSummary

__all__ = ["Comparison", "compare_runs"]

Figure = float | int | str | None
_PARTIAL = ("partial_precision", "recall", "partial_f1")  # where the test links are a part of the truth


@dataclass(frozen=True)
class Comparison:
    """The runs by folder, the settings in which they differ, and their figures, each by run."""

    summaries: Mapping[str, RunSummary]
    settings: Mapping[str, Mapping[str, object]]
    figures: Mapping[str, Mapping[str, Figure]]


def compare_runs(folders: Sequence[Path]) -> Comparison:
    """Compare two or more run folders."""
    if len({folder.resolve() for folder in folders}) < 2:
        raise InputError("there is nothing to compare", expected="two or more run folders", found=str(len(folders)))
    summaries = {str(folder): evaluated_run(folder).summary() for folder in folders}
    flat = {name: flat_settings(summary.settings.model_dump(mode="json")) for name, summary in summaries.items()}
    keys = sorted({key for values in flat.values() for key in values})
    different = [key for key in keys if len({json.dumps(values.get(key)) for values in flat.values()}) > 1]
    figures = {name: _figures(summary) for name, summary in summaries.items()}
    labels = list(dict.fromkeys(label for found in figures.values() for label in found))
    return Comparison(
        summaries,
        {key: {name: flat[name].get(key) for name in summaries} for key in different},
        {label: {name: figures[name].get(label) for name in summaries} for label in labels},
    )


def _figures(summary: RunSummary) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    evaluation, match = summary.evaluation, summary.match
    if evaluation is not None:
        protocol = evaluation.protocol
        found |= {"seeds from": protocol.seeds_from, "test links": protocol.num_test_links, "gold": protocol.gold}
        for name, ranks in (evaluation.ideal or {}).items():
            found |= {f"{measure} {name}": value for measure, value in ranks.source_to_target.items()}
        keys = _PARTIAL if protocol.gold == "partial" else ("precision", "recall", "f1")
        for name, pairs in (evaluation.real or {}).items():
            found |= {f"{key.replace('_', ' ')} {name}": getattr(pairs, key) for key in keys}
    if match is not None:
        found |= {"expected precision": match.threshold.expected_precision, "pairs": match.num_accepted}
    if "train" in summary.costs:
        cost = summary.costs["train"]
        found |= {"seconds of training": cost.seconds, "peak MB of training": cost.peak_memory_mb}
    return found
