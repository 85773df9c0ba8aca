"""The pipeline: every stage in the order data flows. Only this file knows the order.

A stage is the function of its own name in the file of its own name. It takes exactly the settings sections and the
artifacts it needs, by name, and returns a frozen dataclass: the artifacts it made, and `outcome`, what it found out.
Besides these a stage may ask for what `runs/arguments.py` lists: its own random seed, the device, a folder that
survives a kill, the outcome of an earlier stage. Test links are handed to `evaluate` alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    LiteralEvidence,
    MergedGraph,
    Neighbors,
    Partition,
    RelationAlignment,
    SubgraphSet,
    TaskNames,
    TrainedModel,
)
from largegnn.artifacts.literals import Literals
from largegnn.errors import InputError
from largegnn.settings import Settings

__all__ = ["STAGES", "STAGE_NAMES", "Stage", "derived_seed", "stage_index"]


@dataclass(frozen=True)
class Stage:
    """One step: the stages it needs, the settings it reads, the artifacts it makes.

    `outcome` is the address of its type, which is read without importing the stage. `idle_sections` are those that make
    no difference with the settings at hand: changing them costs nothing. A stage of one `channel` is left out where
    that channel is off.
    """

    name: str
    version: int
    needs: tuple[str, ...]
    sections: tuple[str, ...]
    outcome: str
    makes: dict[str, type] = field(default_factory=dict)
    idle_sections: Callable[[Settings], tuple[str, ...]] = lambda settings: ()
    channel: str | None = None

    @property
    def function(self) -> Callable[..., Any]:
        """The stage itself; imported when it is asked for, as PyTorch takes seconds."""
        found: Callable[..., Any] = getattr(importlib.import_module(f"largegnn.stages.{self.name}"), self.name)
        return found

    @property
    def outcome_type(self) -> type:
        """What the stage finds out, as a type."""
        module, _, name = self.outcome.partition(":")
        found: type = getattr(importlib.import_module(module), name)
        return found

    def settings_read(self, settings: Settings) -> dict[str, Any]:
        """The settings that make a difference, by section; one outside the sections stands under its own name."""
        values, idle = settings.model_dump(mode="json"), self.idle_sections(settings)
        read = {section: values[section] for section in self.sections if section not in idle}
        return read | ({"keep_literals": settings.keep_literals} if self.name == "load" else {})


_ROUNDS = ("seed", "protocol", "division", "landmarks", "train", "integrate", "search", "channels", "match", "rounds")

STAGES: tuple[Stage, ...] = (
    Stage(
        "load",
        3,
        (),
        ("data",),
        "largegnn.data.load:LoadSummary",
        {"task": AlignmentTask, "names": TaskNames, "literals": Literals},
    ),
    Stage(
        "literals",
        2,
        ("load",),
        ("seed", "protocol", "channels", "compare"),
        "largegnn.stages.literals:LiteralsOutcome",
        {"literal_evidence": LiteralEvidence},
    ),
    Stage(
        "merge",
        2,
        ("load", "literals"),
        ("protocol",),
        "largegnn.stages.merge:MergeOutcome",
        {"merged": MergedGraph},
        channel="structure",
    ),
    Stage(
        "partition",
        3,
        ("load", "merge"),
        # The cap is part of the plan, so the division is made anew when it changes.
        ("seed", "protocol", "division", "landmarks"),
        "largegnn.artifacts:DivisionPlan",
        {"parts": Partition},
        channel="structure",
    ),
    Stage(
        "landmarks",
        2,
        ("load", "merge", "partition"),
        ("protocol", "landmarks"),
        "largegnn.stages.landmarks:LandmarksOutcome",
        {"membership": Partition},
        channel="structure",
    ),
    Stage(
        "subgraphs",
        2,
        ("load", "merge", "partition", "landmarks"),
        ("protocol",),
        "largegnn.artifacts:PartitionQuality",
        {"subgraphs": SubgraphSet},
        channel="structure",
    ),
    Stage(
        "train",
        4,
        ("load", "merge", "partition", "subgraphs"),
        ("seed", "protocol", "train", "integrate"),
        "largegnn.stages.train:TrainOutcome",
        {"model": TrainedModel},
        channel="structure",
    ),
    Stage(
        "integrate",
        2,
        ("load", "subgraphs", "train"),
        ("train", "integrate"),
        "largegnn.stages.integrate:IntegrateOutcome",
        {"embeddings": EntityEmbeddings},
        channel="structure",
    ),
    Stage(
        "rounds",
        4,
        ("load", "literals", "partition", "train", "integrate"),
        _ROUNDS,
        "largegnn.stages.rounds:RoundsOutcome",
        {"refined_model": TrainedModel, "refined_embeddings": EntityEmbeddings},
        # Without rounds nothing is trained or matched here: a new threshold must not cost a new search.
        lambda settings: () if settings.rounds.number else tuple(name for name in _ROUNDS if name != "rounds"),
        channel="structure",
    ),
    Stage(
        "search",
        2,
        ("load", "integrate", "rounds"),
        ("seed", "protocol", "search"),
        "largegnn.stages.search:SearchOutcome",
        {"source_neighbors": Neighbors, "target_neighbors": Neighbors},
    ),
    Stage(
        "match",
        4,
        ("load", "literals", "integrate", "rounds", "search"),
        ("protocol", "channels", "match"),
        "largegnn.stages.match:MatchOutcome",
        {"alignment": Alignment, "relations": RelationAlignment},
    ),
    Stage(
        "evaluate",
        4,
        ("load", "literals", "landmarks", "integrate", "rounds", "search", "match"),
        ("seed", "data", "protocol", "channels", "match", "rounds", "evaluate", "search"),
        "largegnn.artifacts:Evaluation",
    ),
    Stage("report", 4, ("load", "literals", "match", "evaluate"), ("report",), "largegnn.stages.report:ReportOutcome"),
)
STAGE_NAMES = tuple(stage.name for stage in STAGES)


def stage_index(name: str) -> int:
    """The number of a stage in the order; an unknown name is refused."""
    if name not in STAGE_NAMES:
        raise InputError(f"no stage is called {name[:100]!r}", expected=f"one of {', '.join(STAGE_NAMES)}")
    return STAGE_NAMES.index(name)


def derived_seed(seed: int, stage: str) -> int:
    """A seed of a stage's own, the same wherever the run's seed is the same."""
    return int(np.random.SeedSequence([seed, *stage.encode()]).generate_state(1)[0])
