"""A finished run grows by triples and entities that came later, without training anew (`largegnn update`).

In: a run folder, files of added triples and links, a new folder. Out: a run folder like any other: the enlarged task,
its division, the trained model with rows for what is new, vectors of the whole enlarged graph, search, matching and
evaluation as in any run. Nothing is ever changed in the old folder; the new one is built beside its place and renamed.

The idea: relation rows and encoder stay as trained, new entities get a row (`new_rows`), and the encoder does the rest.
`update_cost` measures what that costs. A later `largegnn align --resume --force train` in the new folder trains anew on
everything. Cost: dividing, encoding (twice, where there are valid links), searching and matching; no training.

# Departs: not in the paper.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import shutil
from pathlib import Path

import numpy as np

from largegnn.artifacts import AlignmentTask, Mask, SubgraphSet, TaskNames, TrainedModel, to_plain
from largegnn.artifacts.literals import Literals
from largegnn.artifacts.update import UpdateReport
from largegnn.cluster.connecting import open_cluster
from largegnn.data.enlarge import Additions, EnlargedTask, enlarge_task
from largegnn.data.load import LoadSummary
from largegnn.embedding.new_rows import NewRows, fill_rows, grow_relation_rows
from largegnn.errors import InputError, StorageError
from largegnn.machine.locks import hold_place
from largegnn.runs.input_files import InputFile, InputFiles, describe_file, known_files, plain_files
from largegnn.runs.pipeline import put_stage, resume_input, run_pipeline
from largegnn.runs.run import Run
from largegnn.runs.store import RunStore
from largegnn.runs.update_cost import cost_of_adding
from largegnn.settings import PRESETS, Settings, resolve
from largegnn.stages.integrate import Integrated, IntegrateOutcome, integrate
from largegnn.stages.load import Loaded
from largegnn.stages.rounds import Refined, RoundsOutcome
from largegnn.stages.train import Trained, TrainOutcome
from largegnn.version import __version__

__all__ = ["enlarge_model", "update_run"]

_log = logging.getLogger(__name__)
_LARGE_GROWTH = 0.1  # share of entities training did not see from which it should be done anew


def update_run(
    folder: Path, added: Additions, out: Path, form: str = "auto", device: str | None = None, cluster: str | None = None
) -> None:
    """Build in `out` the run of `folder` enlarged by what was added."""
    _refuse_existing(out)  # before anything is read; and again once no other update can make it
    run = _finished_run(folder)
    literals = run.artifact("literals", Literals)
    grown = enlarge_task(
        run.artifact("task", AlignmentTask),
        run.artifact("names", TaskNames),
        added,
        form,
        literals if run.settings.keep_literals else None,
    )
    _warn_of_growth(run, grown)
    settings = _grown_settings(run.settings, run.artifact("task", AlignmentTask), grown.task, device, cluster)
    partial = out.with_name(f".{out.name}.partial")
    try:
        with hold_place(out):
            _refuse_existing(out)
            shutil.rmtree(partial, ignore_errors=True)  # what a killed update left
            try:
                partial.mkdir(parents=True)
                with open_cluster(settings.cluster, partial, settings.device):
                    _build(partial, run, grown, settings, _inputs(run, folder, added))
                partial.rename(out)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror or error}") from error


def enlarge_model(model: TrainedModel, old: AlignmentTask, grown: EnlargedTask) -> tuple[TrainedModel, NewRows]:
    """A trained model with rows for what was added; all that training saw keeps its row."""
    task = grown.task
    rows = np.zeros((task.num_entities, model.entity_rows.shape[1]), dtype=np.float32)
    rows[grown.entity_of_old] = model.entity_rows
    found = fill_rows(rows, _trained(old, grown), task.triples)
    relations = grow_relation_rows(model.relation_rows, grown.relation_of_old, task.num_relations)
    return dataclasses.replace(model, entity_rows=found.rows, relation_rows=relations), found


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise InputError(
            "the output folder is there already",
            where=str(out),
            fix="name a new folder: an update overwrites nothing, least of all the run it starts from",
        )


def _finished_run(folder: Path) -> Run:
    run = Run(resume_input(folder)[1], RunStore(folder))
    for stage in ("train", "match"):
        if stage not in run.finished():
            raise InputError(
                f"the run has no stage {stage}",
                where=str(folder),
                expected="a finished run of `largegnn align`",
                fix=f"finish it: largegnn align --resume --out {folder}",
            )
    return run


def _warn_of_growth(run: Run, grown: EnlargedTask) -> None:
    num_unseen = int((~_trained(run.artifact("task", AlignmentTask), grown)).sum())
    share = num_unseen / grown.task.num_entities
    if not any(grown.num_added_triples):
        _log.warning("nothing new: the run knows all these triples already")
    elif share > _LARGE_GROWTH:
        _log.warning(
            "training saw nothing of %.0f %% of the entities: pairs get worse, and by more than the estimate says; "
            "`largegnn align --resume --force train` in the new folder trains on everything",
            100 * share,
        )


def _build(folder: Path, old: Run, grown: EnlargedTask, settings: Settings, inputs: InputFiles) -> None:
    """Fill a new run folder; the stages an update does in its own way are put there as if they had been computed."""
    old_task, store = old.artifact("task", AlignmentTask), RunStore(folder)
    store.update_manifest(made_by=__version__, input=None, input_files=plain_files(inputs))
    summary = dataclasses.replace(old.outcome("load", LoadSummary), layout="update")
    put_stage(store, settings, inputs, "load", Loaded(grown.task, grown.names, grown.literals, summary))
    run = run_pipeline(folder, None, settings, last="subgraphs")
    task, subgraphs = run.task_without_test_links(), run.artifact("subgraphs", SubgraphSet)
    model, found = enlarge_model(old.final_model(), old_task, grown)
    put_stage(run.store, settings, inputs, "train", Trained(model, old.outcome("train", TrainOutcome)))
    work = folder / "work-integrate-update"
    made = integrate(task, model, subgraphs, settings.train, settings.integrate, settings.device, work).embeddings
    embeddings = dataclasses.replace(made, covered=made.covered & found.reached)
    outcome = IntegrateOutcome(int((~embeddings.covered).sum()), embeddings.vectors.shape[1])
    put_stage(run.store, settings, inputs, "integrate", Integrated(embeddings, outcome))
    rounds = old.outcome("rounds", RoundsOutcome)
    refined = Refined(model, embeddings, rounds) if settings.rounds.number else Refined(None, None, rounds)
    put_stage(run.store, settings, inputs, "rounds", refined)
    trained = _trained(old_task, grown)
    sides = tuple(side for side in (0, 1) if grown.num_added_entities[side]) or (0, 1)
    cost = cost_of_adding(task, model, trained, embeddings, subgraphs, settings, sides, work / "hidden")
    report = _report(old, task, trained, grown, found)
    run.store.update_manifest(update=to_plain(dataclasses.replace(report, cost=cost)))
    shutil.rmtree(work, ignore_errors=True)
    run_pipeline(folder, None, settings)


def _trained(old: AlignmentTask, grown: EnlargedTask) -> Mask:
    """Entities that keep their row, (n,): all old ones, but for those that had no triple in training and have now."""
    trained = np.zeros(grown.task.num_entities, dtype=bool)
    trained[grown.entity_of_old] = old.degrees() > 0
    still_isolated = grown.task.degrees()[grown.entity_of_old] == 0
    trained[grown.entity_of_old[still_isolated]] = True
    return trained


def _grown_settings(
    settings: Settings, old: AlignmentTask, new: AlignmentTask, device: str | None, cluster: str | None
) -> Settings:
    """The settings of the run; a cap given as a number grows with the graph, so that its parts still fit."""
    changes = [] if device is None else [f"device={device}"]
    changes += [] if cluster is None else [f"cluster.address={cluster}"]
    cap = settings.landmarks.cap
    if not isinstance(cap, str) and new.num_entities > old.num_entities:
        changes.append(f"landmarks.cap={math.ceil(cap * new.num_entities / old.num_entities)}")
    return resolve(Settings, PRESETS, overrides=changes, values=settings.model_dump(mode="json"))


def _inputs(run: Run, folder: Path, added: Additions) -> dict[str, InputFile]:
    """What the new run was made from: the old run's files, its model, and the added files."""
    inputs = known_files(run.store)
    inputs[f"{folder.resolve()} (model)"] = InputFile(run.store.stages["rounds"].fingerprint)
    return inputs | {str(path.resolve()): describe_file(path) for path in added.paths()}


def _report(old: Run, task: AlignmentTask, trained: Mask, grown: EnlargedTask, found: NewRows) -> UpdateReport:
    """What was added, and how the entities training did not see came to their rows."""
    unseen, split = ~trained, task.num_source_entities
    embedded, direct = unseen & found.reached, unseen & (found.num_known > 0)
    unreached, neighbors = unseen & ~found.reached, found.num_known[direct]

    def sides(mask: Mask) -> tuple[int, int]:
        return int(mask[:split].sum()), int(mask[split:].sum())

    return UpdateReport(
        run=str(old.folder.resolve()),
        entities=grown.num_added_entities,
        relations=grown.num_added_relations,
        triples=grown.num_added_triples,
        seeds=len(grown.task.train_links) - len(old.artifact("task", AlignmentTask).train_links),
        embedded=sides(embedded),
        beside_known=sides(direct),
        not_reached=sides(unreached),
        known_neighbors=float(neighbors.mean()) if len(neighbors) else 0.0,
        formerly_isolated=int(unseen.sum()) - sum(grown.num_added_entities),
        cost=None,
    )
