"""Runs over a task that is at hand and not in files, and what such runs give back.

The task is put into a run folder as if it had been loaded; everything else is the pipeline.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    Cost,
    DivisionPlan,
    EntityEmbeddings,
    EpochRecord,
    Partition,
    PartitionQuality,
    StringTable,
    SubgraphSet,
    TaskNames,
    TrainedModel,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.load import LoadSummary
from largegnn.division.subgraphs import share_kept
from largegnn.errors import InputError
from largegnn.runs.input_files import InputFile, plain_files
from largegnn.runs.pipeline import open_store, put_stage, run_pipeline, stage_fingerprints
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore
from largegnn.settings import Settings
from largegnn.stages.load import Loaded

__all__ = ["Division", "Training", "division_of", "run_task"]


@dataclass(frozen=True)
class Division:
    """A divided task: the subgraphs, how much they keep, and what each step cost."""

    num_parts: int
    cap: int
    parts: Partition
    membership: Partition
    subgraphs: SubgraphSet
    quality: PartitionQuality
    costs: Mapping[str, Cost]

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each step."""
        return {name: cost.seconds for name, cost in self.costs.items()}

    @property
    def peak_memory_mb(self) -> float:
        """The largest peak of any step."""
        return max(cost.peak_memory_mb for cost in self.costs.values())


@dataclass(frozen=True)
class Training:
    """A trained model, the vectors of all entities, and what every epoch was like."""

    model: TrainedModel
    embeddings: EntityEmbeddings
    history: tuple[EpochRecord, ...]


def division_of(run: Run) -> Division:
    """The division a run holds; the share of test links it keeps is counted here, as no stage before sees them."""
    plan, membership = run.outcome("partition", DivisionPlan), run.artifact("membership", Partition)
    kept = share_kept(run.artifact("task", AlignmentTask).test_links, membership)
    return Division(
        num_parts=plan.num_parts,
        cap=plan.cap,
        parts=run.artifact("parts", Partition),
        membership=membership,
        subgraphs=run.artifact("subgraphs", SubgraphSet),
        quality=dataclasses.replace(run.outcome("subgraphs", PartitionQuality), test_kept=kept),
        costs={name: run.cost(name) for name in ("merge", "partition", "landmarks", "subgraphs")},
    )


def run_task(
    folder: str | PathLike[str],
    task: AlignmentTask,
    names: TaskNames | None = None,
    settings: Settings | Mapping[str, object] | None = None,
    *,
    last: str | None = None,
) -> Run:
    """Run a task in a run folder, up to the stage `last`; without `names` its entities cannot be exported by name."""
    store, chosen = open_store(Path(folder)), Settings.of(settings)
    inputs = {"task": InputFile(_checksum(task, names))}
    nothing = StringTable.from_strings(())
    loaded = Loaded(task, names or TaskNames(nothing, nothing), Literals.empty(), LoadSummary.of_task(task))
    with store.lock():
        _refuse_other_task(store, stage_fingerprints(chosen, inputs)["load"])
        store.update_manifest(input=None, input_files=plain_files(inputs))
        if not store.is_intact("load"):
            put_stage(store, chosen, inputs, "load", loaded)
    return run_pipeline(store.folder, None, chosen, last=last)


def _checksum(task: AlignmentTask, names: TaskNames | None) -> str:
    """One checksum over all that would be in the files."""
    digest = hashlib.sha256()
    tables = () if names is None else (names.entities, names.relations)
    arrays = [task.triples, task.train_links, task.valid_links, task.test_links, task.forbidden]
    for array in (*arrays, *(part for table in tables for part in (table.data, table.data_ptr))):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _refuse_other_task(store: RunStore, expected: str) -> None:
    known = store.stages.get("load")
    if known is not None and known.fingerprint != expected:
        raise InputError(
            "the output folder holds another run",
            where=str(store.folder),
            found="a task or settings of `data` that are not these",
            fix="name another folder",
        )
