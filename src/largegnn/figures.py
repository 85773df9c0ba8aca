"""Measure finished runs by their own test links or by others, and compare runs."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    Evaluation,
    IntArray,
    LiteralEvidence,
    Neighbors,
    Partition,
    TaskNames,
    are_among,
)
from largegnn.artifacts.alignment import Alignment
from largegnn.data.names import EntityNames
from largegnn.data.readers import read_links
from largegnn.errors import InputError
from largegnn.evaluation.evaluate import evaluate
from largegnn.pipeline import run_pipeline
from largegnn.run import Run, RunSummary
from largegnn.settings import flat_settings

__all__ = ["Comparison", "compare_runs", "evaluate_by", "evaluated_run"]

_log = logging.getLogger(__name__)
Figure = float | int | str | None
_PARTIAL = ("partial_precision", "recall", "partial_f1")  # where the test links are a part of the truth


def evaluated_run(folder: Path) -> Run:
    """Open a run and evaluate it if it was not evaluated before.

    An evaluated run is only read, so its folder may be read-only and its input missing.
    """
    run = Run.open(folder, needs="match")
    if "evaluate" in run.finished:
        return run
    return run_pipeline(folder, run.given, run.settings, first="evaluate")


def evaluate_by(run: Run, links: Path | None, gold: str | None, *, skip_unknown: bool = False) -> Evaluation:
    """Measure a run by other test links, or with another kind of gold; write nothing."""
    task, settings = run.task, run.settings
    if links is not None:
        seeds = task.seeds(settings.protocol.seeds_from)
        found = _link_ids(links, run, skip_unknown)
        known = are_among(found, seeds)
        if known.any():
            _log.info(
                "evaluate: %s of the %s links are seeds and are not judged", f"{known.sum():,}", f"{len(found):,}"
            )
        task = dataclasses.replace(task, test_links=np.unique(found[~known], axis=0))
    none = Neighbors.none(settings.search.k)
    keys = [f"{side}_neighbors" for side in _SIDES]
    near_targets, near_sources = (run.artifact(key, Neighbors) if run.has(key) else none for key in keys)
    return evaluate(
        task,
        run.embeddings,
        run.artifact("alignment", Alignment),
        near_targets,
        near_sources,
        run.artifact("membership", Partition) if run.has("membership") else None,
        run.artifact("literal_evidence", LiteralEvidence),
        settings.data,
        settings.protocol,
        run.channels,
        settings.match,
        settings.rounds,
        settings.evaluate if gold is None else settings.evaluate.model_copy(update={"gold": gold}),
        settings.search,
        settings.seed,
        device=settings.device,
    ).outcome


_SIDES = ("source", "target")


def _link_ids(path: Path, run: Run, skip_unknown: bool) -> IntArray:
    """Read the links of a file as ids (k, 2)."""
    read = read_links(path)
    named = {"source": read.sources.to_list(), "target": read.targets.to_list()}
    names = EntityNames(
        run.artifact("names", TaskNames).entities, run.artifact("task", AlignmentTask).num_source_entities
    )
    ids = np.stack([names.find_all(named[side], side) for side in _SIDES], axis=1)
    unknown = (ids < 0).any(axis=1)
    if unknown.any() and not skip_unknown:
        row = int(unknown.argmax())
        side = "source" if ids[row, 0] < 0 else "target"
        name = named[side][row]
        near = names.near(name)
        raise InputError(
            f"{int(unknown.sum()):,} of {len(ids):,} links name an entity that the run does not have",
            where=f"{path}, link {row + 1}",
            found=f"{name[:100]!r} as a {side}" + (f"; near names: {', '.join(near)}" if near else ""),
            fix="check that source and target are not swapped, or skip such links with --skip-unknown",
        )
    if unknown.any():
        _log.warning("evaluate: %s links name unknown entities and are skipped", f"{int(unknown.sum()):,}")
    return ids[~unknown].astype(np.int32)


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
    summaries = {str(folder): evaluated_run(folder).summary for folder in folders}
    flat = {name: flat_settings(summary.settings.plain()) for name, summary in summaries.items()}
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
