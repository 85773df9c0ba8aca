"""What a stage is handed: settings, artifacts and the like, by the names of its parameters.

    seed               the stage's own random seed, derived from the run's; `run_seed` is the run's
    device             the device of the settings
    given              the input files
    folder             the run folder
    work               a folder of the stage's own that survives a kill and goes when the stage is done
    divisions          the division of any number, number 0 being the one of the run folder
    task               the task without its test links; `task_with_test_links` has them, for `evaluate` alone
    final_embeddings   the vectors of the last round, or of the first training
    channels           the channels of the run; for auto, all that the data allow
    keep_literals      whether names and values are read
    summary            what the run is like so far
    settings           all settings, for a stage that runs others
    X_outcome          what the stage X found out
A settings section or an artifact is asked for by its own name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

from largegnn.artifacts import DivisionPlan, Partition
from largegnn.machine.devices import choose_device
from largegnn.planning.plan import divisions_of_training, epochs_between_divisions
from largegnn.runs.repartition import Repartitioner
from largegnn.runs.run import Run
from largegnn.stages import STAGES, Stage, derived_seed

__all__ = ["stage_arguments"]


def stage_arguments(run: Run, stage: Stage, work: Path) -> dict[str, object]:
    """The arguments of a stage's function."""
    special: dict[str, Callable[[], object]] = {
        "seed": lambda: derived_seed(run.settings.seed, stage.name),
        "run_seed": lambda: run.settings.seed,
        "device": lambda: run.settings.device,
        "given": lambda: run.given,
        "folder": lambda: run.folder,
        "work": lambda: work,
        "divisions": lambda: _divisions(run, work),
        "task": run.task_without_test_links,
        "task_with_test_links": run.task,
        "channels": run.channels,
        "keep_literals": lambda: run.settings.keep_literals,
        "membership": lambda: run.artifact("membership", Partition) if "landmarks" in run.finished() else None,
        "final_embeddings": run.final_embeddings,
        "summary": run.summary,
        "settings": lambda: run.settings,
    }
    kinds = {key: kind for known in STAGES for key, kind in known.makes.items()}
    arguments: dict[str, object] = {}
    for name, parameter in inspect.signature(stage.function).parameters.items():
        if name in special:
            arguments[name] = special[name]()
        elif name in kinds:
            arguments[name] = run.artifact(name, kinds[name])
        elif name.endswith("_outcome"):
            arguments[name] = run.outcome(name.removesuffix("_outcome"), object)
        elif name in type(run.settings).model_fields:
            arguments[name] = getattr(run.settings, name)
        elif parameter.default is inspect.Parameter.empty:
            raise TypeError(f"the stage {stage.name} asks for {name!r}, which nobody knows")
    return arguments


def _divisions(run: Run, work: Path) -> Repartitioner:
    task, train = run.task_without_test_links(), run.settings.train
    num_seeds = len(task.seeds(run.settings.protocol.seeds_from))
    on_gpu = train.repartition_every > 0 and choose_device(run.settings.device).type != "cpu"
    every = epochs_between_divisions(train, len(task.triples), num_seeds, on_gpu)
    num_divisions = train.members * divisions_of_training(train, every)
    plan = run.outcome("partition", DivisionPlan)
    return Repartitioner(run.store, work, run.settings, plan, derived_seed(run.settings.seed, "train"), num_divisions)
