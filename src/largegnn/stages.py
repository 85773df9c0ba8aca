"""The stages in the order data flows: what each needs, which settings it reads, what it makes and how.

A stage is a function of a `Run`, which hands it settings and the artifacts of earlier stages, and returns its own
artifacts with a few facts for the manifest. Only this file knows the order; no stage imports another.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    MergedGraph,
    Neighbors,
    Partition,
    SubgraphSet,
    TaskNames,
    TrainedModel,
)
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.division import add_landmarks, build_subgraphs, check_cap, measure_quality, share_kept
from largegnn.division.merge import count_merge, merge
from largegnn.errors import InputError
from largegnn.machine.devices import memory_budget
from largegnn.planning.sizes import DivisionPlan, plan_division
from largegnn.runs.repartition import FreshDivisions, divide_once
from largegnn.runs.store import RunStore
from largegnn.seams.tables import PARTITIONERS
from largegnn.settings import Settings

__all__ = ["STAGES", "STAGE_NAMES", "Run", "Stage", "StageOutcome", "derived_seed", "plan_for"]

_log = logging.getLogger(__name__)
_Artifact = TypeVar("_Artifact")


@dataclasses.dataclass(frozen=True)
class Stage:
    """One step: what it reads, what it makes, and how."""

    name: str
    version: int
    needs: tuple[str, ...]
    sections: tuple[str, ...]
    makes: dict[str, type]
    run: Callable[[Run], tuple[dict[str, Any], dict[str, Any]]]
    idle_sections: Callable[[Settings], tuple[str, ...]] = lambda settings: ()

    def settings_read(self, settings: Settings) -> dict[str, Any]:
        """The settings that make a difference, by section; one outside the sections stands under its own name."""
        values, idle = settings.model_dump(), self.idle_sections(settings)
        return {section: values[section] for section in self.sections if section not in idle}


@dataclasses.dataclass(frozen=True)
class StageOutcome:
    """What a finished stage cost and found out."""

    seconds: float
    peak_memory_mb: float
    facts: dict[str, Any]
    peak_gpu_mb: float | None = None


class Run:
    """Settings, input, and what the stages done so far made and found; in a run folder, or in memory alone."""

    def __init__(self, settings: Settings, given: DataInput | None = None, store: RunStore | None = None) -> None:
        self.settings, self.given, self.store = settings, given, store
        self.work_folder: Path | None = None  # where the stage at work keeps what it needs to go on after a kill
        self._made: dict[str, Any] = {}
        self._outcomes: dict[str, StageOutcome] = {}

    def artifact(self, key: str, kind: type[_Artifact]) -> _Artifact:
        """An artifact by name, from this process if it was made here, else mapped from the folder."""
        if key not in self._made:
            stage = next(stage for stage in STAGES if key in stage.makes)
            if self.store is None or stage.name not in self.store.stages:
                where = None if self.store is None else str(self.store.folder)
                raise InputError(f"the run has no stage {stage.name}", where=where, fix="run that stage first")
            self._made[key] = self.store.load(stage.name, key, kind)
        return cast(_Artifact, self._made[key])

    def hidden_task(self) -> AlignmentTask:
        """The task without its test links: all that any stage but the last may see."""
        task = self.artifact("task", AlignmentTask)
        return dataclasses.replace(task, test_links=task.test_links[:0])

    def final_embeddings(self) -> EntityEmbeddings:
        """The vectors to align by: those of the last round, or of the first training."""
        return self.artifact("refined_embeddings" if self.settings.rounds.number else "embeddings", EntityEmbeddings)

    def outcome(self, stage: str) -> StageOutcome:
        """What a finished stage cost and found out."""
        if stage not in self._outcomes and self.store is not None:
            record = self.store.stages[stage]
            self._outcomes[stage] = StageOutcome(
                record.seconds, record.peak_memory_mb, record.facts, record.peak_gpu_mb
            )
        return self._outcomes[stage]

    def finished(self) -> list[str]:
        """The stages that are done, in order."""
        stored = {} if self.store is None else self.store.stages
        return [name for name in STAGE_NAMES if name in self._outcomes or name in stored]

    def keep(self, artifacts: Mapping[str, Any], stage: str | None = None, outcome: StageOutcome | None = None) -> None:
        """Hold what was just made."""
        self._made |= artifacts
        if stage is not None and outcome is not None:
            self._outcomes[stage] = outcome


def _run_load(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    if run.given is None:
        raise InputError("the run has no stage load, and no input to make it from", fix="give the input again")
    loaded = load_pair(run.given, run.settings.data)
    return {"task": loaded.task, "names": loaded.names}, dataclasses.asdict(loaded.summary)


def _run_merge(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    graph = merge(run.hidden_task(), run.settings.protocol.seeds_from)
    counts = count_merge(graph)
    facts = {"num_nodes": graph.num_nodes, "num_edges": graph.num_edges, **dataclasses.asdict(counts)}
    return {"merged": graph}, facts


def _run_partition(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    settings, task = run.settings, run.hidden_task()
    plan = plan_for(task, settings)
    _log.info("partition: %d parts, cap %s: %s", plan.num_parts, f"{plan.cap:,}", plan.reason)
    partition = PARTITIONERS[settings.division.partitioner](
        task,
        run.artifact("merged", MergedGraph),
        settings.protocol.seeds_from,
        plan.num_parts,
        derived_seed(settings.seed, "partition"),
    )
    if settings.landmarks.enabled:
        check_cap(partition, plan.cap)
    return {"parts": partition}, dataclasses.asdict(plan)


def _run_landmarks(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    settings, parts = run.settings, run.artifact("parts", Partition)
    if not settings.landmarks.enabled:
        return {"cover": parts}, {"num_landmarks": 0}
    cover = add_landmarks(
        run.artifact("merged", MergedGraph),
        parts,
        run.hidden_task().seeds(settings.protocol.seeds_from),
        run.outcome("partition").facts["cap"],
        eta=settings.landmarks.eta,
        decay=settings.landmarks.decay,
        hops=settings.landmarks.hops,
    )
    return {"cover": cover}, {"num_landmarks": len(cover.entities) - len(parts.entities)}


def _run_subgraphs(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    task, cover = run.hidden_task(), run.artifact("cover", Partition)
    subgraphs = build_subgraphs(task, task.seeds(run.settings.protocol.seeds_from), cover)
    # Measured here and not on demand, so that a finished division always says how good it is.
    quality = measure_quality(task, run.artifact("merged", MergedGraph), cover, run.artifact("parts", Partition))
    if quality.num_uncovered:
        _log.warning("subgraphs: %s entities are in no subgraph", f"{quality.num_uncovered:,}")
    return {"subgraphs": subgraphs}, dataclasses.asdict(quality)


def _run_train(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    # Imported here: PyTorch takes seconds, and the stages before this one do without it.
    from largegnn.training import history_facts, train

    settings, task = run.settings, run.hidden_task()
    seed = derived_seed(settings.seed, "train")
    if run.store is None or run.work_folder is None:
        facts, graph = run.outcome("partition").facts, run.artifact("merged", MergedGraph)

        def subgraphs_of_round(number: int) -> SubgraphSet:
            if number == 0:
                return run.artifact("subgraphs", SubgraphSet)
            return divide_once(task, graph, settings, facts["num_parts"], facts["cap"], seed + number)

        model, history = train(task, settings, subgraphs_of_round, seed)
        return {"model": model}, history_facts(history)
    every = settings.train.refresh_every
    num_rounds = -(-settings.train.epochs // every) if every else 1
    with FreshDivisions(run.store, run.work_folder, settings, seed, num_rounds) as divisions:
        model, history = train(task, settings, divisions, seed, run.work_folder)
    return {"model": model}, history_facts(history)


def _run_integrate(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    from largegnn.training import integrate

    embeddings = integrate(
        run.hidden_task(),
        run.artifact("model", TrainedModel),
        run.artifact("subgraphs", SubgraphSet),
        run.settings,
        run.work_folder,
    )
    num_uncovered = int((~embeddings.covered).sum())
    if num_uncovered:
        _log.warning("integrate: %s entities are not covered", f"{num_uncovered:,}")
    return {"embeddings": embeddings}, {"num_uncovered": num_uncovered, "dim": embeddings.vectors.shape[1]}


def _run_rounds(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    settings = run.settings
    if not settings.rounds.number:
        return {}, {"history": []}
    from largegnn.rounds import run_rounds

    model, embeddings, history = run_rounds(
        run.hidden_task(),
        run.artifact("model", TrainedModel),
        run.artifact("embeddings", EntityEmbeddings),
        settings,
        run.outcome("partition").facts,
        derived_seed(settings.seed, "rounds"),
        run.store,
        run.work_folder,
    )
    return {"refined_model": model, "refined_embeddings": embeddings}, {"history": history}


def _run_search(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    from largegnn.aligning import search
    from largegnn.training import choose_device

    device, seed = choose_device(run.settings.device), derived_seed(run.settings.seed, "search")
    near_targets, near_sources, facts = search(run.hidden_task(), run.final_embeddings(), run.settings, device, seed)
    return {"source_neighbors": near_targets, "target_neighbors": near_sources}, facts


def _run_match(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    from largegnn.aligning import match
    from largegnn.training import choose_device

    alignment, facts = match(
        run.hidden_task(),
        run.final_embeddings(),
        run.artifact("source_neighbors", Neighbors),
        run.artifact("target_neighbors", Neighbors),
        run.settings,
        choose_device(run.settings.device),
    )
    return {"alignment": alignment}, facts


def _run_evaluate(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    from largegnn.evaluating import evaluate
    from largegnn.training import choose_device

    task = run.artifact("task", AlignmentTask)
    report = evaluate(
        task,
        run.final_embeddings(),
        run.artifact("alignment", Alignment),
        run.artifact("source_neighbors", Neighbors),
        run.artifact("target_neighbors", Neighbors),
        run.settings,
        choose_device(run.settings.device),
    )
    kept = share_kept(task.test_links, run.artifact("cover", Partition))
    partition = {**run.outcome("subgraphs").facts, "test_kept": kept}
    return {}, {**report, "partition": partition}


def plan_for(task: AlignmentTask, settings: Settings) -> DivisionPlan:
    """How many parts and how large, from the settings and, where they say auto, from the task and the device."""
    parts, cap = settings.division.parts, settings.landmarks.cap if settings.landmarks.enabled else "auto"
    if parts != "auto" or cap != "auto":
        known_parts, known_cap = (None if isinstance(value, str) else value for value in (parts, cap))
        return plan_division(task.num_entities, len(task.triples), known_parts, known_cap)
    budget = memory_budget(settings.device)
    return plan_division(task.num_entities, len(task.triples), None, None, budget.mb, budget.owner)


def derived_seed(seed: int, stage: str) -> int:
    """A seed of a stage's own, the same wherever the run's seed is the same."""
    return int(np.random.SeedSequence([seed, *stage.encode()]).generate_state(1)[0])


STAGES: tuple[Stage, ...] = (
    Stage("load", 1, (), ("data",), {"task": AlignmentTask, "names": TaskNames}, _run_load),
    Stage("merge", 1, ("load",), ("protocol",), {"merged": MergedGraph}, _run_merge),
    # The cap is part of the plan, so the division is made anew when it changes.
    Stage("partition", 1, ("load", "merge"), ("seed", "division", "landmarks"), {"parts": Partition}, _run_partition),
    Stage("landmarks", 1, ("merge", "partition"), ("landmarks",), {"cover": Partition}, _run_landmarks),
    Stage("subgraphs", 1, ("load", "landmarks"), ("protocol",), {"subgraphs": SubgraphSet}, _run_subgraphs),
    Stage("train", 1, ("load", "merge", "subgraphs"), ("seed", "train"), {"model": TrainedModel}, _run_train),
    Stage(
        "integrate", 1, ("load", "subgraphs", "train"), ("integrate",), {"embeddings": EntityEmbeddings}, _run_integrate
    ),
    Stage(
        "rounds",
        1,
        ("load", "integrate"),
        ("seed", "rounds", "search", "match"),
        {"refined_model": TrainedModel, "refined_embeddings": EntityEmbeddings},
        _run_rounds,
        # Without rounds nothing is searched or matched here: a new threshold must not cost a new search.
        lambda settings: () if settings.rounds.number else ("search", "match"),
    ),
    Stage(
        "search",
        1,
        ("load", "integrate", "rounds"),
        ("seed", "search"),
        {"source_neighbors": Neighbors, "target_neighbors": Neighbors},
        _run_search,
    ),
    Stage("match", 1, ("load", "search"), ("protocol", "match"), {"alignment": Alignment}, _run_match),
    Stage("evaluate", 1, ("load", "match"), ("protocol", "match"), {}, _run_evaluate),
)
STAGE_NAMES = tuple(stage.name for stage in STAGES)
