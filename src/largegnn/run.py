"""Read a run folder: its settings, the artifacts of its finished steps, and the outcome of each step.

Everything is read when it is used, and kept; arrays are mapped from the files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    Cost,
    DivisionPlan,
    EntityEmbeddings,
    Evaluation,
    LiteralEvidence,
    PartitionQuality,
    TaskNames,
    TrainedModel,
    UpdatePairs,
    UpdateReport,
    are_among,
    from_plain,
    to_plain,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.inputs import DataInput
from largegnn.data.summary import LoadSummary
from largegnn.errors import InputError
from largegnn.literals.texts import class_relations, iris_are_words
from largegnn.runfolder.store import RunStore
from largegnn.settings import PRESETS, Settings, resolve
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.embedding.train import TrainOutcome
    from largegnn.literals.compare import LiteralsOutcome
    from largegnn.matching.match import MatchOutcome
    from largegnn.matching.nearest import SearchOutcome
    from largegnn.rounds import RoundsOutcome

__all__ = ["Run", "RunSummary", "channels_of_data"]

_Artifact = TypeVar("_Artifact")
_Outcome = TypeVar("_Outcome")
_TRIPLES_PER_ENTITY = 0.3  # fewer join too few entities to learn from


@dataclasses.dataclass(frozen=True)
class RunSummary:
    """A run in figures: its settings, and the cost and the outcome of each finished step; None for the other steps."""

    settings: Settings
    costs: Mapping[str, Cost]
    load: LoadSummary | None = None
    literals: LiteralsOutcome | None = None
    plan: DivisionPlan | None = None
    quality: PartitionQuality | None = None
    training: TrainOutcome | None = None
    rounds: RoundsOutcome | None = None
    search: SearchOutcome | None = None
    match: MatchOutcome | None = None
    evaluation: Evaluation | None = None
    update: UpdateReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values of the summary: the content of `report.json`."""
        evaluation, match = self.evaluation, self.match
        quality = to_plain(self.quality)
        if quality is not None and evaluation is not None:
            quality["test_kept"] = evaluation.test_kept
        return {
            "largegnn": __version__,
            "protocol": None if evaluation is None else to_plain(evaluation.protocol),
            "ideal": None if evaluation is None else to_plain(evaluation.ideal),
            "real": None if evaluation is None else to_plain(evaluation.real),
            "reliability": {
                "valid": None if match is None else to_plain(match.reliability),
                "test": None if evaluation is None else to_plain(evaluation.reliability),
            },
            "threshold": None if match is None else to_plain(match.threshold),
            "calibrated": None if match is None else match.calibration.is_calibrated,
            "calibration": None if match is None else to_plain(match.calibration),
            "pairs": None if match is None else match.num_accepted,
            "candidates": None if match is None else match.num_candidates,
            "evidence": None if match is None else list(match.evidence),
            "reasons": None if match is None else dict(match.reasons),
            "relations": None if match is None else to_plain(match.relations),
            "load": to_plain(self.load),
            "literals": to_plain(self.literals),
            "plan": to_plain(self.plan),
            "partition": quality,
            "cluster": None if self.training is None else to_plain(self.training.cluster),
            "history": None if self.training is None else to_plain(self.training.history),
            "rounds": None if self.rounds is None else to_plain(self.rounds.history),
            "search": to_plain(self.search),
            "stages": to_plain(self.costs),
            "settings": self.settings.model_dump(mode="json"),
            **({} if self.update is None else {"update": to_plain(self.update)}),
        }


class Run:
    """A run folder with its settings."""

    def __init__(self, settings: Settings, store: RunStore, given: DataInput | None = None) -> None:
        self.settings, self.store, self.given = settings, store, given
        self._artifacts: dict[str, object] = {}

    @classmethod
    def open(cls, folder: Path, *, needs: str | None = None) -> Run:
        """Open a run with its input and settings; `needs` names a step that must be finished."""
        store = RunStore(folder)
        if not store.manifest:
            raise InputError("the folder is not a run", where=str(folder), expected="a folder with a manifest.json")
        entry = store.manifest.get("input")
        given = DataInput(**{key: Path(value) for key, value in entry.items()}) if entry else None
        run = cls(resolve(Settings, PRESETS, values=store.manifest["settings"]), store, given)
        if needs is not None and needs not in store.steps:
            raise run._unfinished(needs)
        return run

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.store.folder

    @property
    def finished(self) -> list[str]:
        """The steps that are done, in order."""
        return list(self.store.steps)

    def has(self, key: str) -> bool:
        """Whether a finished step made this artifact."""
        return self.store.step_of(key) is not None

    def artifact(self, key: str, kind: type[_Artifact]) -> _Artifact:
        """An artifact by name, mapped from the folder."""
        if key not in self._artifacts:
            step = self.store.step_of(key)
            if step is None:
                raise self._unfinished(key)
            self._artifacts[key] = self.store.load(step, key, kind)
        return cast(_Artifact, self._artifacts[key])

    def outcome(self, step: str, kind: type[_Outcome]) -> _Outcome:
        """The outcome of a finished step."""
        if step not in self.store.steps:
            raise self._unfinished(step)
        return from_plain(kind, self.store.steps[step].facts)

    @cached_property
    def task(self) -> AlignmentTask:
        """The task, with the anchors that names and values gave it where seeds are few."""
        task = self.artifact("task", AlignmentTask)
        if not self.has("literal_evidence"):
            return task
        return task.with_anchors(self.artifact("literal_evidence", LiteralEvidence).anchors)

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """The channels of the settings; for auto, all that the data allow."""
        if self.settings.channels != ("auto",):
            return self.settings.channels
        task, names = self.artifact("task", AlignmentTask), self.artifact("names", TaskNames)
        return channels_of_data(task, names, self.artifact("literals", Literals), self.settings)

    @property
    def embeddings(self) -> EntityEmbeddings:
        """The vectors to align by: those of the last round or of the training; none without the channel structure."""
        if "structure" not in self.channels:
            return EntityEmbeddings.none(self.artifact("task", AlignmentTask).num_entities)
        return self.artifact("refined_embeddings" if self.settings.rounds.number else "embeddings", EntityEmbeddings)

    @property
    def model(self) -> TrainedModel:
        """The parameters behind `embeddings`."""
        return self.artifact("refined_model" if self.settings.rounds.number else "model", TrainedModel)

    @property
    def pages(self) -> dict[str, int]:
        """The files for people in the run folder, with the rows in each."""
        return dict(self.store.steps["report"].facts["pages"]) if "report" in self.store.steps else {}

    def costs(self) -> dict[str, Cost]:
        """The cost of each finished step."""
        records = self.store.steps.items()
        return {name: Cost(record.seconds, record.peak_memory_mb, record.peak_gpu_mb) for name, record in records}

    @property
    def summary(self) -> RunSummary:
        """The summary of the steps finished so far."""
        from largegnn.embedding.train import TrainOutcome
        from largegnn.literals.compare import LiteralsOutcome
        from largegnn.matching.match import MatchOutcome
        from largegnn.matching.nearest import SearchOutcome
        from largegnn.rounds import RoundsOutcome

        def found(step: str, kind: type[_Outcome]) -> _Outcome | None:
            return self.outcome(step, kind) if step in self.store.steps else None

        return RunSummary(
            self.settings,
            self.costs(),
            load=found("load", LoadSummary),
            literals=found("literals", LiteralsOutcome),
            plan=found("partition", DivisionPlan),
            quality=found("subgraphs", PartitionQuality),
            training=found("train", TrainOutcome),
            rounds=found("rounds", RoundsOutcome),
            search=found("search", SearchOutcome),
            match=found("match", MatchOutcome),
            evaluation=found("evaluate", Evaluation),
            update=self._update() if "match" in self.store.steps else None,
        )

    def _update(self) -> UpdateReport | None:
        """The additions of an update and how many new entities were matched; None for any other run."""
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

    def _unfinished(self, what: str) -> InputError:
        done = self.finished
        return InputError(
            f"the run has no {what} yet",
            where=str(self.folder),
            found=f"steps up to {done[-1]}" if done else "no finished step",
            fix=f"finish it: largegnn align --resume --out {self.folder}",
        )


def channels_of_data(task: AlignmentTask, names: TaskNames, literals: Literals, settings: Settings) -> tuple[str, ...]:
    """The channels of the settings; for auto, all that the data allow, in the order they propose candidates."""
    if settings.channels != ("auto",):
        return settings.channels
    sides = (0, task.num_source_entities), (task.num_source_entities, task.num_target_entities)
    has_literals = bool(np.bincount(literals.entities >= task.num_source_entities, minlength=2).all())
    has_names = settings.compare.identifiers != "off" and all(iris_are_words(names.entities, *side) for side in sides)
    structure, rules = (("structure",), ("rules",)) if _has_structure(task) else ((), ())
    texts = ("literals",) if has_literals or has_names else ()
    return (*structure, *texts, *rules) or ("structure",)


def _has_structure(task: AlignmentTask) -> bool:
    """Whether the triples of both graphs join entities, rather than only give their classes."""
    at = task.num_source_triples
    sides = ((task.triples[:at], task.num_source_entities), (task.triples[at:], task.num_target_entities))
    return all(
        len(triples) - int(np.isin(triples[:, 1], list(class_relations(triples))).sum()) >= _TRIPLES_PER_ENTITY * count
        for triples, count in sides
    )
