"""A run: its settings, its folder, and what the stages done so far made and found out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    Cost,
    EntityEmbeddings,
    LiteralEvidence,
    TaskNames,
    TrainedModel,
    UpdatePairs,
    UpdateReport,
    are_among,
    from_plain,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.inputs import DataInput
from largegnn.errors import InputError
from largegnn.literals.texts import class_relations, is_readable
from largegnn.runs.store import RunStore
from largegnn.settings import Settings
from largegnn.stages import STAGE_NAMES, STAGES, stage_index
from largegnn.stages.report import ReportOutcome, RunSummary

__all__ = ["Run"]

_Artifact = TypeVar("_Artifact")
_Outcome = TypeVar("_Outcome")
_TRIPLES_PER_ENTITY = 0.3  # fewer join too few entities to learn from
# Where the outcome of a stage stands in a summary.
_IN_SUMMARY = {
    "load": "load",
    "literals": "literals",
    "partition": "plan",
    "subgraphs": "quality",
    "train": "training",
    "rounds": "rounds",
    "search": "search",
    "match": "match",
    "evaluate": "evaluation",
}


class Run:
    """A run folder with its settings; artifacts and outcomes are read when they are asked for, and kept."""

    def __init__(self, settings: Settings, store: RunStore, given: DataInput | None = None) -> None:
        self.settings, self.store, self.given = settings, store, given
        self._mapped: dict[str, object] = {}
        self._outcomes: dict[str, object] = {}
        self._channels: tuple[str, ...] | None = None

    @property
    def folder(self) -> Path:
        """Where the run is."""
        return self.store.folder

    def artifact(self, key: str, kind: type[_Artifact]) -> _Artifact:
        """An artifact by name, mapped from the folder: what no stage looks at takes no memory."""
        if key not in self._mapped:
            stage = next(stage for stage in STAGES if key in stage.makes)
            if stage.name not in self.store.stages:
                raise InputError(
                    f"the run has no stage {stage.name}",
                    where=str(self.folder),
                    fix=f"finish it: largegnn align --resume --out {self.folder}",
                )
            self._mapped[key] = self.store.load(stage.name, key, kind)
        return cast(_Artifact, self._mapped[key])

    def task(self) -> AlignmentTask:
        """The task, with the anchors that names and values gave it where seeds are few."""
        task = self.artifact("task", AlignmentTask)
        if "literals" not in self.store.stages:
            return task
        return task.with_anchors(self.artifact("literal_evidence", LiteralEvidence).anchors)

    def task_without_test_links(self) -> AlignmentTask:
        """The task as every stage but `evaluate` may see it."""
        return self.task().without_test_links()

    def channels(self) -> tuple[str, ...]:
        """The channels of the settings; for auto, all that the data allow, in the order they are asked."""
        if self._channels is None:
            self._channels = self.settings.channels if self.settings.channels != ("auto",) else self._allowed()
        return self._channels

    def _allowed(self) -> tuple[str, ...]:
        task, names = self.artifact("task", AlignmentTask), self.artifact("names", TaskNames)
        literals = self.artifact("literals", Literals)
        structure = ("structure",) if _has_structure(task) else ()
        sides = np.bincount(literals.entities >= task.num_source_entities, minlength=2)
        readable = self.settings.compare.identifiers != "off" and all(
            is_readable(names.entities, first, count)
            for first, count in ((0, task.num_source_entities), (task.num_source_entities, task.num_target_entities))
        )
        texts = ("literals",) if bool(sides.all()) or readable else ()
        return (*structure, *texts, *(("rules",) if structure else ())) or ("structure",)

    def final_embeddings(self) -> EntityEmbeddings:
        """The vectors to align by: those of the last round, or of the first training."""
        if "structure" not in self.channels():
            num_entities = self.artifact("task", AlignmentTask).num_entities
            return EntityEmbeddings(np.zeros((num_entities, 1), dtype=np.float32), np.zeros(num_entities, dtype=bool))
        return self.artifact("refined_embeddings" if self.settings.rounds.number else "embeddings", EntityEmbeddings)

    def final_model(self) -> TrainedModel:
        """The parameters behind `final_embeddings`."""
        return self.artifact("refined_model" if self.settings.rounds.number else "model", TrainedModel)

    def outcome(self, stage: str, kind: type[_Outcome]) -> _Outcome:
        """What a finished stage found out."""
        if stage not in self._outcomes:
            if stage not in self.store.stages:
                raise InputError(f"the run has no stage {stage}", where=str(self.folder), fix="run that stage first")
            self._outcomes[stage] = from_plain(STAGES[stage_index(stage)].outcome_type, self.store.stages[stage].facts)
        return cast(_Outcome, self._outcomes[stage])

    def cost(self, stage: str) -> Cost:
        """What a finished stage took."""
        record = self.store.stages[stage]
        return Cost(record.seconds, record.peak_memory_mb, record.peak_gpu_mb)

    def finished(self) -> list[str]:
        """The stages that are done, in order."""
        return [name for name in STAGE_NAMES if name in self.store.stages]

    def pages(self) -> dict[str, int]:
        """The files that the report left in the run folder, with the rows in each."""
        return dict(self.outcome("report", ReportOutcome).files) if "report" in self.store.stages else {}

    def summary(self) -> RunSummary:
        """What the run is like so far."""
        done = self.finished()
        found: dict[str, Any] = {
            field: self.outcome(stage, object) for stage, field in _IN_SUMMARY.items() if stage in done
        }
        costs = {name: self.cost(name) for name in done}
        return RunSummary(self.settings, costs, **found, update=self._update() if "match" in done else None)

    def _update(self) -> UpdateReport | None:
        """What an update added, and what became of the new entities; None for a run that is none."""
        entry = self.store.manifest.get("update")
        if entry is None:
            return None
        report, task = from_plain(UpdateReport, entry), self.artifact("task", AlignmentTask)
        is_new = np.zeros(task.num_entities, dtype=bool)
        for end, count in zip((task.num_source_entities, task.num_entities), report.entities, strict=True):
            is_new[end - count : end] = True
        alignment = self.artifact("alignment", Alignment)
        pairs = alignment.pairs[alignment.accepted]
        new_pairs = pairs[is_new[pairs].any(axis=1)]
        new_links = task.test_links[is_new[task.test_links].any(axis=1)]
        found = UpdatePairs(
            pairs=len(new_pairs),
            pairs_both_new=int(is_new[new_pairs].all(axis=1).sum()),
            test_links=len(new_links),
            test_links_found=int(are_among(new_links, pairs).sum()),
        )
        return dataclasses.replace(report, pairs=found)

    def forget_artifacts(self, keys: Iterable[str]) -> None:
        """Let go of artifacts that were made anew; they are mapped from the folder when they are asked for."""
        for key in keys:
            self._mapped.pop(key, None)

    def forget_outcomes(self, stages: Iterable[str]) -> None:
        """Let go of what these stages found out before they are computed again."""
        for stage in stages:
            self._outcomes.pop(stage, None)


def _has_structure(task: AlignmentTask) -> bool:
    """Whether the triples of both graphs join entities, rather than only say of what class they are."""
    at = task.num_source_triples
    sides = ((task.triples[:at], task.num_source_entities), (task.triples[at:], task.num_target_entities))
    return all(
        len(triples) - int(np.isin(triples[:, 1], list(class_relations(triples))).sum()) >= _TRIPLES_PER_ENTITY * count
        for triples, count in sides
    )


def artifacts_of(made: object) -> dict[str, object]:
    """The artifacts a stage returned, by name; those it did not make are left out."""
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    values = {field.name: getattr(made, field.name) for field in fields if field.name != "outcome"}
    return {name: value for name, value in values.items() if value is not None}
