"""Enlarge a finished run by later triples and entities, without training again (`largegnn update`).

In: a run folder, files of added triples and links, a new folder. Out: a run folder like any other: the enlarged task,
its division, the trained model with rows for what is new, vectors of the whole enlarged graph, search, matching and
evaluation as in any run. The old folder never changes; the new one is built in the background and renamed.

The idea: relation rows and encoder stay as trained, new entities get a row (`new_rows`), and the encoder does the rest.
What that costs against training on everything is measured on the run itself: some entities of valid links are given
rows as if they had come later, and it is counted how many of their links are still found.
A later `largegnn align --resume --force train` in the new folder trains anew on everything.
Cost: dividing, encoding (twice, where there are valid links), searching and matching; no training.

# Departs: not in the paper.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.artifacts import (
    AddedEntityRecall,
    AlignmentTask,
    EntityEmbeddings,
    Mask,
    SubgraphSet,
    TaskNames,
    TrainedModel,
    UpdateReport,
    to_plain,
)
from largegnn.artifacts.literals import Literals
from largegnn.data.enlarge import Additions, EnlargedTask, enlarge_task
from largegnn.data.summary import LoadSummary
from largegnn.embedding.encode import IntegrateOutcome, IntegrateResult, integrate
from largegnn.embedding.new_rows import NewRows, fill_rows, grow_relation_rows
from largegnn.embedding.train import TrainOutcome, TrainResult
from largegnn.errors import InputError, StorageError
from largegnn.evaluation.metrics import rank_links
from largegnn.machine.devices import choose_device
from largegnn.machine.locks import hold_place
from largegnn.pipeline import LoadResult, run_pipeline
from largegnn.rounds import RoundsOutcome, RoundsResult
from largegnn.run import Run
from largegnn.runfolder.inputs import InputFile, describe_file, known_files
from largegnn.runfolder.steps import derived_seed
from largegnn.runfolder.store import RunStore
from largegnn.settings import PRESETS, IntegrateSettings, Settings, TrainSettings, resolve

__all__ = ["cost_of_adding", "enlarge_model", "update_run"]

_log = logging.getLogger(__name__)
_LARGE_GROWTH = 0.1  # share of entities training did not see from which it should be done anew
_SIDES = ("source", "target")
# Entities given a row as if they were new: enough to measure, few enough to leave most neighbours known.
_HIDDEN_SHARE, _FEWEST_HIDDEN = 0.05, 50
_MOST_LINKS = 10_000  # valid links the measurement ranks among


def update_run(
    folder: Path, added: Additions, out: Path, form: str = "auto", device: str | None = None, cluster: str | None = None
) -> None:
    """Build the run of `folder`, enlarged by the additions, in `out`."""
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
                _build(partial, run, grown, settings, _inputs(run, folder, added))
                partial.rename(out)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror or error}") from error


def enlarge_model(model: TrainedModel, old: AlignmentTask, grown: EnlargedTask) -> tuple[TrainedModel, NewRows]:
    """Add rows for new entities and relations to a trained model; known entities keep their rows."""
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
    run = Run.open(folder, needs="match")
    if not run.has("model"):
        raise InputError(
            "the run has no trained model to embed new entities with",
            where=str(folder),
            expected="a finished run with the channel structure",
            fix="align the enlarged graphs anew",
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


def _build(folder: Path, old: Run, grown: EnlargedTask, settings: Settings, inputs: dict[str, InputFile]) -> None:
    """Fill a new run folder by the pipeline, computing some steps from the old run."""
    old_task = old.artifact("task", AlignmentTask)
    found: NewRows | None = None
    report: UpdateReport | None = None

    def load(*_: object) -> LoadResult:
        summary = dataclasses.replace(old.outcome("load", LoadSummary), layout="update")
        return LoadResult(grown.task, grown.names, grown.literals, summary)

    def train(*_: object, **__: object) -> TrainResult:
        nonlocal found
        model, found = enlarge_model(old.model, old_task, grown)
        return TrainResult(model, old.outcome("train", TrainOutcome))

    def encode(
        task: AlignmentTask,
        model: TrainedModel,
        subgraphs: SubgraphSet,
        train: TrainSettings,
        method: IntegrateSettings,
        *,
        device: str,
        work: Path | None = None,
    ) -> IntegrateResult:
        nonlocal report
        assert found is not None
        made = integrate(task, model, subgraphs, train, method, device=device, work=work).embeddings
        embeddings = dataclasses.replace(made, covered=made.covered & found.reached)
        trained = _trained(old_task, grown)
        sides = tuple(side for side in (0, 1) if grown.num_added_entities[side]) or (0, 1)
        cost = cost_of_adding(task, model, trained, embeddings, subgraphs, settings, sides, work)
        report = dataclasses.replace(_report(old, task, trained, grown, found), cost=cost)
        outcome = IntegrateOutcome(int((~embeddings.covered).sum()), embeddings.vectors.shape[1])
        return IntegrateResult(embeddings, outcome)

    def keep_rounds(
        _: AlignmentTask, model: TrainedModel, embeddings: EntityEmbeddings, *__: object, **___: object
    ) -> RoundsResult:
        return RoundsResult(model, embeddings, old.outcome("rounds", RoundsOutcome))

    overrides: dict[str, Callable[..., Any]] = {
        "load": load,
        "train": train,
        "integrate": encode,
        "rounds": keep_rounds,
    }
    run_pipeline(folder, None, settings, input_files=inputs, overrides=overrides, last="integrate")
    RunStore(folder).update_manifest(update=to_plain(report))  # before the pages are written, which show it
    run_pipeline(folder, None, settings, overrides=overrides)


def _trained(old: AlignmentTask, grown: EnlargedTask) -> Mask:
    """Mark the entities that keep their row, (n,): all old ones except those without any triple in training."""
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
    """List the inputs of the new run: the files of the old run, its model, and the added files."""
    inputs = known_files(run.store)
    inputs[f"{folder.resolve()} (model)"] = InputFile(run.store.steps["match"].fingerprint)
    return inputs | {str(path.resolve()): describe_file(path) for path in added.paths()}


def _report(old: Run, task: AlignmentTask, trained: Mask, grown: EnlargedTask, found: NewRows) -> UpdateReport:
    """Count the additions, and how entities that were not in training got their rows."""
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


def cost_of_adding(
    task: AlignmentTask,
    model: TrainedModel,
    trained: Mask,
    embeddings: EntityEmbeddings,
    subgraphs: SubgraphSet,
    settings: Settings,
    sides: tuple[int, ...],
    work: Path | None = None,
) -> AddedEntityRecall | None:
    """Count the valid links found by CSLS with trained rows, and with one end treated as a later entity.

    `trained` (n,) are the entities training saw, `sides` where the ends that are hidden lie. None where there are no
    valid links, or where they are seeds.
    """
    links = task.held_out(settings.protocol.seeds_from)
    usable = (trained & embeddings.covered & (task.degrees() > 0))[links].all(axis=1)
    rng = np.random.default_rng(derived_seed(settings.seed, "update"))
    links = rng.permutation(links[usable])[:_MOST_LINKS]
    if not len(links):
        return None
    share = _HIDDEN_SHARE * min(task.num_source_entities, task.num_target_entities)
    rows = np.arange(min(len(links), max(_FEWEST_HIDDEN, int(share))))
    # One end of a link only, in turn on either side: rows that are not trained are alike, so two hidden ends would find
    # each other too easily.
    columns = np.resize(np.array(sides), len(rows))
    known = trained.copy()
    known[links[rows, columns]] = False
    _hide_as_many(known, task, settings, sides, rng)
    found = fill_rows(model.entity_rows, known, task.triples)
    hidden = dataclasses.replace(model, entity_rows=found.rows)
    scratch = None if work is None else work / "hidden"
    sections = settings.train, settings.integrate
    made = integrate(task, hidden, subgraphs, *sections, device=settings.device, work=scratch).embeddings
    as_new = dataclasses.replace(made, covered=made.covered & found.reached)
    ranks = [
        rank_links(
            vectors.vectors[links[:, 0]],
            vectors.vectors[links[:, 1]],
            "csls",
            settings.match.csls_k,
            source_covered=np.asarray(vectors.covered[links[:, 0]]),
            target_covered=np.asarray(vectors.covered[links[:, 1]]),
            device=choose_device(settings.device),
        )
        for vectors in (embeddings, as_new)
    ]
    before, after = (
        int((np.where(columns == 0, rank.source_to_target[rows], rank.target_to_source[rows]) == 1).sum())
        for rank in ranks
    )
    return AddedEntityRecall(tuple(_SIDES[side] for side in sides), len(links), len(rows), before, after)


def _hide_as_many(
    known: Mask, task: AlignmentTask, settings: Settings, sides: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Hide as many more entities of each side as are new there, since a new entity has new neighbours too."""
    split, is_taken = task.num_source_entities, np.zeros(task.num_entities, dtype=bool)
    is_taken[task.seeds(settings.protocol.seeds_from).ravel()] = True
    is_taken[task.valid_links.ravel()] = True
    for side in sides:
        inside = np.arange(split) if side == 0 else np.arange(split, task.num_entities)
        free = inside[known[inside] & ~is_taken[inside]]
        num_new = int((~known[inside]).sum())
        known[rng.permutation(free)[:num_new]] = False
