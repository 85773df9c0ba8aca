"""Run an alignment: typed calls in the order they happen. Read it from top to bottom.

In: files, settings, a folder. Out: the folder brought up to date, and a `Run` that reads it. Every call of `step`
reuses what the folder holds or computes it (`runfolder/steps.py`). A step depends on its positional arguments; those
by keyword (device, work folder) make no difference to its result. No step but `evaluate` receives the test links.
Self-training rounds, updates and the paper's systems call the same functions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, Neighbors, StringTable, TaskNames
from largegnn.artifacts.literals import Literals
from largegnn.cluster.connection import open_cluster
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.data.summary import LoadSummary
from largegnn.division.landmarks import landmarks
from largegnn.division.merge import merge_result
from largegnn.division.partition import partition
from largegnn.division.subgraphs import subgraphs
from largegnn.embedding.encode import integrate
from largegnn.embedding.train import train
from largegnn.errors import InputError
from largegnn.evaluation.evaluate import evaluate
from largegnn.literals.compare import compare_literals
from largegnn.matching.match import match
from largegnn.matching.nearest import find_nearest
from largegnn.planning.plan import plan_for, seeds_warning
from largegnn.repartition import Repartitioner
from largegnn.review.pages import report
from largegnn.rounds import advise_rounds, run_rounds
from largegnn.run import Run, channels_of_data
from largegnn.runfolder.inputs import InputFile, RunInput, find_input, manifest_entries
from largegnn.runfolder.steps import LastStepError, Steps, derived_seed
from largegnn.runfolder.store import RunStore
from largegnn.settings import STEPS, DataSettings, Settings, to_toml
from largegnn.version import __version__

__all__ = ["LoadResult", "load", "run_pipeline", "run_task"]

_log = logging.getLogger(__name__)


def run_pipeline(
    folder: Path,
    given: DataInput | None,
    settings: Settings,
    *,
    force: str | None = None,
    first: str | None = None,
    last: str | None = None,
    input_files: Mapping[str, InputFile] | None = None,
    overrides: Mapping[str, Callable[..., Any]] | None = None,
) -> Run:
    """Bring a run folder up to the step `last`, computing only what is missing, changed by `force`, or damaged.

    `overrides` replaces the functions of some steps: a task that is already in memory, an update. `input_files` then
    stand for the input that the first step would have read.
    """
    store = _open_store(folder)
    with store.lock(), contextlib.ExitStack() as stack:
        step = Steps(store, STEPS, first=first, last=last, force=force, overrides=overrides)
        inputs = RunInput(None, input_files) if input_files is not None else find_input(given, settings.data, store)
        step.before_computing = partial(_record_start, store, inputs, settings)
        stack.enter_context(open_cluster(settings.cluster, store.folder, settings.device))
        with contextlib.suppress(LastStepError):
            _align(step, store, inputs, settings)
        if not step.computed:
            # Settings that no step depends on may have changed: record them.
            _record_start(store, inputs, settings)
        if "train" in step.computed and overrides is None and store.manifest.get("update") is not None:
            store.update_manifest(update=None)  # trained from scratch, so it is no longer an update
    return Run(settings, store, inputs.given)


def run_task(
    folder: str | PathLike[str],
    task: AlignmentTask,
    names: TaskNames | None = None,
    settings: Settings | Mapping[str, object] | None = None,
    *,
    last: str | None = None,
) -> Run:
    """Run a task that is in memory, not in files; without `names` its entities cannot be exported by name."""
    empty = StringTable.from_strings(())
    loaded = LoadResult(task, names or TaskNames(empty, empty), Literals.empty(), LoadSummary.of_task(task))
    input_files = {"task": InputFile(_checksum(task, names))}
    overrides = {"load": lambda *_: loaded}
    return run_pipeline(
        Path(folder), None, Settings.of(settings), last=last, input_files=input_files, overrides=overrides
    )


def _checksum(task: AlignmentTask, names: TaskNames | None) -> str:
    """One checksum over everything that would be in the files."""
    digest = hashlib.sha256()
    tables = () if names is None else (names.entities, names.relations)
    arrays = [task.triples, task.train_links, task.valid_links, task.test_links, task.forbidden]
    for array in (*arrays, *(part for table in tables for part in (table.data, table.data_ptr))):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _align(step: Steps, store: RunStore, inputs: RunInput, settings: Settings) -> None:
    """Call all steps in order; `step` raises `LastStepError` after the last one that was asked for."""
    device, protocol = settings.device, settings.protocol
    seed_of = partial(derived_seed, settings.seed)

    # Files become numbers. Names and values give candidates, and pairs to start from where seeds are few.
    loaded = step("load", load, inputs, settings.data, settings.keep_literals)
    names, literals = loaded.names, loaded.literals
    channels = channels_of_data(loaded.task, names, literals, settings)
    task_without_test = loaded.task.without_test_links()
    evidence = step(
        "literals",
        compare_literals,
        task_without_test,
        names,
        literals,
        channels,
        protocol,
        settings.compare,
        seed_of("literals"),
    ).literal_evidence
    task = task_without_test.with_anchors(evidence.anchors)

    membership = None
    embeddings = EntityEmbeddings.none(task.num_entities)
    nearest_targets = nearest_sources = Neighbors.none(settings.search.k)
    if "structure" in channels:
        # One graph out of two, divided into subgraphs that share landmarks.
        warning = seeds_warning(task, protocol.seeds_from)
        if warning is not None:
            _log.warning("%s", warning)
        merged = step("merge", merge_result, task, protocol.seeds_from).merged
        partitioned = step(
            "partition",
            partition,
            task,
            merged,
            protocol,
            settings.division,
            settings.landmarks,
            seed_of("partition"),
            plan=plan_for(task, settings.division, settings.landmarks, device),
        )
        parts, plan = partitioned.parts, partitioned.outcome
        membership = step("landmarks", landmarks, task, merged, parts, plan, protocol, settings.landmarks).membership
        divided = step("subgraphs", subgraphs, task, merged, parts, membership, protocol).subgraphs

        # One encoder, trained subgraph by subgraph; then one vector for each entity.
        train_seed, train_folder = seed_of("train"), step.work_folder("train")
        with Repartitioner(store, train_folder, settings, plan, train_seed, task) as divisions:
            model = step(
                "train",
                train,
                task,
                divided,
                protocol,
                settings.train,
                settings.integrate,
                train_seed,
                divisions=divisions,
                device=device,
                work=train_folder,
            ).model
        embeddings = step(
            "integrate",
            integrate,
            task,
            model,
            divided,
            settings.train,
            settings.integrate,
            device=device,
            work=step.work_folder("integrate"),
        ).embeddings
        if settings.rounds.number:
            embeddings = step(
                "rounds",
                run_rounds,
                task,
                model,
                embeddings,
                plan,
                evidence,
                channels,
                settings.only("protocol", "division", "landmarks", "train", "integrate", "search", "match", "rounds"),
                seed_of("rounds"),
                device=device,
                work=step.work_folder("rounds"),
            ).refined_embeddings
        else:
            advise_rounds(task, channels, protocol)
        nearest = step(
            "search", find_nearest, task, embeddings, protocol, settings.search, seed_of("search"), device=device
        )
        nearest_targets, nearest_sources = nearest.source_neighbors, nearest.target_neighbors

    # Candidates of all channels, one decision.
    matched = step(
        "match",
        match,
        task,
        embeddings,
        nearest_targets,
        nearest_sources,
        protocol,
        channels,
        settings.match,
        evidence,
        device=device,
    )
    evaluated = step(
        "evaluate",
        evaluate,
        loaded.task.with_anchors(evidence.anchors),
        embeddings,
        matched.alignment,
        nearest_targets,
        nearest_sources,
        membership,
        evidence,
        settings.data,
        protocol,
        channels,
        settings.match,
        settings.rounds,
        settings.evaluate,
        settings.search,
        settings.seed,
        device=device,
    )
    step(
        "report",
        report,
        task,
        names,
        literals,
        evidence,
        matched.alignment,
        matched.relations,
        evaluated.outcome,
        settings.report,
        summary=Run(settings, store).summary,
        folder=store.folder,
    )


@dataclass(frozen=True)
class LoadResult:
    """Two graphs and their links as numbers, the names of the numbers, literals, and what was read and dropped."""

    task: AlignmentTask
    names: TaskNames
    literals: Literals
    outcome: LoadSummary


def load(inputs: RunInput, data: DataSettings, keep_literals: bool) -> LoadResult:
    """Read the input files; without literals the task is that of the structure alone."""
    if inputs.given is None:
        raise InputError("the run has no step load, and no input to make it from", fix="give the input again")
    pair = load_pair(inputs.given, data, keep_literals=keep_literals)
    return LoadResult(pair.task, pair.names, pair.literals, pair.summary)


def _open_store(folder: Path) -> RunStore:
    """Open the store of a new, empty or run folder; refuse anything else."""
    store = RunStore(folder)
    if store.manifest or not folder.exists():
        return store
    if not folder.is_dir():
        raise InputError("the output folder is a file", where=str(folder), fix="name another folder")
    if any(entry.name != ".lock" and not entry.name.endswith(".partial") for entry in folder.iterdir()):
        raise InputError(
            "the output folder holds something that is not a run",
            where=str(folder),
            expected="a new or empty folder, or a run folder",
            fix="name another folder",
        )
    return store


def _record_start(store: RunStore, inputs: RunInput, settings: Settings) -> None:
    """Write what the run is made from, so that it can be resumed and understood."""
    given = store.manifest.get("input")
    if inputs.given is not None:
        paths = dataclasses.asdict(inputs.given)
        given = {key: str(Path(value).resolve()) for key, value in paths.items() if value is not None}
    store.update_manifest(
        made_by=__version__,
        input=given,
        input_files=manifest_entries(inputs.files),
        settings=settings.model_dump(mode="json"),
        machine={"python": platform.python_version(), "numpy": np.__version__, "system": platform.platform()},
    )
    store.write_text("config.toml", to_toml(settings))
