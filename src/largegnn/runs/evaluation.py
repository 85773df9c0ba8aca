"""A finished run, measured: by its own test links, or by links given later."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import numpy as np

from largegnn.artifacts import AlignmentTask, Evaluation, IntArray, TaskNames, are_among
from largegnn.data.names import EntityNames
from largegnn.data.readers import read_links
from largegnn.errors import InputError
from largegnn.runs.arguments import stage_arguments
from largegnn.runs.pipeline import resume_input, run_pipeline
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore
from largegnn.stages import STAGES, stage_index

__all__ = ["evaluate_by", "evaluated_run", "matched_run"]

_log = logging.getLogger(__name__)


def matched_run(folder: Path) -> Run:
    """A run that has pairs; one that has none is refused with the command that finishes it."""
    given, settings = resume_input(folder)
    run = Run(settings, RunStore(folder), given)
    done = run.finished()
    if "match" not in done:
        raise InputError(
            "the run has no pairs to measure yet",
            where=str(folder),
            found=f"stages up to {done[-1]}" if done else "no stage",
            fix=f"finish it: largegnn align --resume --out {folder}",
        )
    return run


def evaluated_run(folder: Path) -> Run:
    """A run whose evaluation is made if it is not there yet.

    What was measured is only read: a folder may be looked at while it cannot be written, and without its input.
    """
    run = matched_run(folder)
    if "evaluate" in run.finished():
        return run
    return run_pipeline(folder, run.given, run.settings, first="evaluate")


def evaluate_by(run: Run, links: Path | None, gold: str | None, *, skip_unknown: bool = False) -> Evaluation:
    """The figures of a run by other test links, or by another reading of its own; nothing is written."""
    task = run.artifact("task", AlignmentTask)
    if links is not None:
        seeds = task.seeds(run.settings.protocol.seeds_from)
        found = _link_ids(links, run, skip_unknown)
        known = are_among(found, seeds)
        if known.any():
            _log.info(
                "evaluate: %s of the %s links are seeds and are not judged", f"{known.sum():,}", f"{len(found):,}"
            )
        task = dataclasses.replace(task, test_links=np.unique(found[~known], axis=0))
    stage = STAGES[stage_index("evaluate")]
    arguments = stage_arguments(run, stage, run.folder)
    settings = run.settings.evaluate if gold is None else run.settings.evaluate.model_copy(update={"gold": gold})
    arguments |= {"task_with_test_links": task, "evaluate": settings}
    made: Evaluation = stage.function(**arguments).outcome
    return made


def _link_ids(path: Path, run: Run, skip_unknown: bool) -> IntArray:
    """The links of a file as ids (k, 2)."""
    read = read_links(path)
    named = {"source": read.sources.to_list(), "target": read.targets.to_list()}
    names = EntityNames(
        run.artifact("names", TaskNames).entities, run.artifact("task", AlignmentTask).num_source_entities
    )
    ids = np.stack([names.find_all(named[side], side) for side in ("source", "target")], axis=1)
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
            fix="check that source and target are not swapped, or leave such links out with --skip-unknown",
        )
    if unknown.any():
        _log.warning("evaluate: %s links name unknown entities and are left out", f"{int(unknown.sum()):,}")
    return ids[~unknown].astype(np.int32)
