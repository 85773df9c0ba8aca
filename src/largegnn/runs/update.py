"""A finished run grows by triples and entities that came later, without training anew (`largegnn update`).

In: a run folder, files of added triples and links, a new folder. Out: a run folder like any other: the enlarged task,
its division, the trained model with rows for what is new, vectors of the whole enlarged graph, search, matching and
evaluation as in any run. Nothing is ever changed in the old folder; the new one is built beside its place and renamed.

The idea: relation rows and encoder stay as trained, new entities get a row (`new_rows`), and the encoder does the rest.
What that costs is measured on the run itself: some entities of valid links are given rows as if they had come later,
and it is counted how many of their links are still found.
A later `largegnn align --resume --force train` in the new folder trains anew on everything.
Cost: dividing, encoding (twice, where there are valid links), searching and matching; no training.

# Departs: not in the paper.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    IntArray,
    SubgraphSet,
    TaskNames,
    TrainedModel,
    are_among,
)
from largegnn.data.enlarge import Additions, EnlargedTask, enlarge_task
from largegnn.embedding.new_rows import NewRows, fill_rows, grow_relation_rows
from largegnn.errors import InputError, StorageError
from largegnn.evaluation.metrics import rank_links
from largegnn.machine.metering import Meter
from largegnn.runs.pipeline import resume_input, run_pipeline, stage_fingerprints
from largegnn.runs.store import RunStore, file_checksum
from largegnn.settings import PRESETS, Settings, resolve
from largegnn.stages import STAGE_NAMES, STAGES, Run, derived_seed
from largegnn.training import choose_device, integrate
from largegnn.version import __version__

__all__ = ["cost_of_adding", "enlarge_model", "update_facts", "update_run"]

Mask = npt.NDArray[np.bool_]
_log = logging.getLogger(__name__)
_SIDES = ("source", "target")
# Entities given a row as if they were new: enough to measure, few enough to leave most neighbours known.
_HIDDEN_SHARE, _FEWEST_HIDDEN = 0.05, 50
_LARGE_GROWTH = 0.1  # share of entities training did not see from which it should be done anew
_MOST_LINKS = 10_000  # valid links the measurement ranks among


def update_run(folder: Path, added: Additions, out: Path, form: str = "auto", device: str | None = None) -> None:
    """Build in `out` the run of `folder` enlarged by what was added."""
    run = _finished_run(folder)
    if out.exists():
        raise InputError(
            "the output folder is there already",
            where=str(out),
            fix="name a new folder: an update overwrites nothing, least of all the run it starts from",
        )
    grown = enlarge_task(run.artifact("task", AlignmentTask), run.artifact("names", TaskNames), added, form)
    _warn_of_growth(run, grown)
    settings = _grown_settings(run.settings, run.artifact("task", AlignmentTask), grown.task, device)
    partial = out.with_name(f".{out.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # what a killed update left
        partial.mkdir(parents=True)
        _build(partial, run, grown, settings, _inputs(run, folder, added))
        partial.rename(out)
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def enlarge_model(model: TrainedModel, old: AlignmentTask, grown: EnlargedTask) -> tuple[TrainedModel, NewRows]:
    """A trained model with rows for what was added; all that training saw keeps its row."""
    task = grown.task
    rows = np.zeros((task.num_entities, model.entity_rows.shape[1]), dtype=np.float32)
    rows[grown.entity_of_old] = model.entity_rows
    found = fill_rows(rows, _trained(old, grown), task.triples)
    relations = grow_relation_rows(model.relation_rows, grown.relation_of_old, task.num_relations)
    return dataclasses.replace(model, entity_rows=found.rows, relation_rows=relations), found


def cost_of_adding(
    task: AlignmentTask,
    model: TrainedModel,
    trained: Mask,
    embeddings: EntityEmbeddings,
    subgraphs: SubgraphSet,
    settings: Settings,
    sides: tuple[int, ...],
    folder: Path | None = None,
) -> dict[str, Any] | None:
    """How many valid links are found by CSLS with trained rows, and with a row as if one end had come later.

    `trained` (n,) are the entities training saw, `sides` where the ends that are hidden lie. None where there are no
    valid links, or where they are seeds.
    """
    links = task.valid_links
    if settings.protocol.seeds_from != "train":
        return None
    usable = (trained & embeddings.covered & (_degrees(task) > 0))[links].all(axis=1)
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
    as_new = integrate(task, dataclasses.replace(model, entity_rows=found.rows), subgraphs, settings, folder)
    as_new = dataclasses.replace(as_new, covered=as_new.covered & found.reached)
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
    return {
        "hidden_sides": [_SIDES[side] for side in sides],
        "candidates": len(links),
        "links": len(rows),
        "found_trained": before,
        "found_added": after,
        "ratio": after / before if before else None,
    }


def _hide_as_many(
    known: Mask, task: AlignmentTask, settings: Settings, sides: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Forget so many more entities of each side as are new there: a new entity has new neighbours too."""
    split, spoken_for = task.num_source_entities, np.zeros(task.num_entities, dtype=bool)
    spoken_for[task.seeds(settings.protocol.seeds_from).ravel()] = True
    spoken_for[task.valid_links.ravel()] = True
    for side in sides:
        inside = np.arange(split) if side == 0 else np.arange(split, task.num_entities)
        free = inside[known[inside] & ~spoken_for[inside]]
        num_new = int((~known[inside]).sum())
        known[rng.permutation(free)[:num_new]] = False


def update_facts(run: Run) -> dict[str, Any]:
    """What an update added, what became of it, and what it costs against a full run."""
    loaded = run.outcome("load").facts.get("update")
    trained = run.outcome("train").facts.get("update")
    if loaded is None or trained is None:
        raise InputError("the run was not made by `largegnn update`", fix="see `largegnn evaluate` for its figures")
    task, alignment = run.artifact("task", AlignmentTask), run.artifact("alignment", Alignment)
    is_new = np.zeros(task.num_entities, dtype=bool)
    for end, count in zip((task.num_source_entities, task.num_entities), loaded["entities"], strict=True):
        is_new[end - count : end] = True
    pairs = alignment.pairs[alignment.accepted]
    new_pairs = pairs[is_new[pairs].any(axis=1)]
    new_links = task.test_links[is_new[task.test_links].any(axis=1)]
    return {
        **loaded,
        **trained,
        "pairs": len(new_pairs),
        "pairs_both_new": int(is_new[new_pairs].all(axis=1).sum()),
        "test_links": len(new_links),
        "test_links_found": int(are_among(new_links, pairs).sum()),
        "cost": run.outcome("integrate").facts.get("cost"),
    }


def _finished_run(folder: Path) -> Run:
    run = Run(resume_input(folder)[1], store=RunStore(folder))
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


def _build(folder: Path, old: Run, grown: EnlargedTask, settings: Settings, inputs: dict[str, Any]) -> None:
    """Fill a new run folder; the stages an update does in its own way are put there as if they had been computed."""
    store, meter, old_task = RunStore(folder), Meter(), old.artifact("task", AlignmentTask)
    store.update_manifest(made_by=__version__, input=None, input_files=inputs)
    desk = _Desk(store, settings, stage_fingerprints(settings, inputs))
    desk.put(
        "load", {"task": grown.task, "names": grown.names}, {"layout": "update", **_added_facts(old, grown)}, meter
    )
    run = run_pipeline(folder, None, settings, last="subgraphs")
    task, subgraphs = run.hidden_task(), run.artifact("subgraphs", SubgraphSet)
    assert run.store is not None
    desk.store, meter = run.store, Meter()
    model = old.artifact("refined_model" if settings.rounds.number else "model", TrainedModel)
    model, found = enlarge_model(model, old_task, grown)
    history = old.outcome("train").facts.get("history", [])
    trained = _trained(old_task, grown)
    desk.put("train", {"model": model}, {"history": history, "update": _row_facts(task, trained, grown, found)}, meter)
    meter, work = Meter(), folder / "work-integrate-update"
    embeddings = integrate(task, model, subgraphs, settings, work)
    embeddings = dataclasses.replace(embeddings, covered=embeddings.covered & found.reached)
    facts = {"num_uncovered": int((~embeddings.covered).sum()), "dim": embeddings.vectors.shape[1]}
    sides = tuple(side for side in (0, 1) if grown.num_added_entities[side]) or (0, 1)
    cost = cost_of_adding(task, model, trained, embeddings, subgraphs, settings, sides, work / "hidden")
    desk.put("integrate", {"embeddings": embeddings}, {**facts, "cost": cost}, meter)
    meter, refined = Meter(), {"refined_model": model, "refined_embeddings": embeddings}
    rounds = old.outcome("rounds").facts
    desk.put("rounds", refined if settings.rounds.number else {}, rounds, meter)
    shutil.rmtree(work, ignore_errors=True)
    run_pipeline(folder, None, settings)


@dataclasses.dataclass
class _Desk:
    """Where stages made elsewhere are put into a run folder, under the fingerprints the pipeline expects."""

    store: RunStore
    settings: Settings
    prints: dict[str, str]

    def put(self, name: str, artifacts: dict[str, Any], facts: dict[str, Any], meter: Meter) -> None:
        usage = meter.read()
        stage = STAGES[STAGE_NAMES.index(name)]
        record = {
            "fingerprint": self.prints[name],
            "settings": stage.settings_read(self.settings),
            "facts": facts,
            "seconds": round(usage.seconds, 3),
            "peak_memory_mb": round(usage.peak_memory_mb, 1),
            "peak_gpu_mb": usage.peak_gpu_mb,
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        self.store.save_stage(name, STAGE_NAMES.index(name) + 1, artifacts, record)


def _trained(old: AlignmentTask, grown: EnlargedTask) -> Mask:
    """Entities that keep their row, (n,): all old ones, but for those that had no triple in training and have now."""
    trained = np.zeros(grown.task.num_entities, dtype=bool)
    trained[grown.entity_of_old] = _degrees(old) > 0
    still_isolated = _degrees(grown.task)[grown.entity_of_old] == 0
    trained[grown.entity_of_old[still_isolated]] = True
    return trained


def _degrees(task: AlignmentTask) -> IntArray:
    degrees: IntArray = np.bincount(task.triples[:, (0, 2)].ravel(), minlength=task.num_entities)
    return degrees


def _grown_settings(settings: Settings, old: AlignmentTask, new: AlignmentTask, device: str | None) -> Settings:
    """The settings of the run; a cap given as a number grows with the graph, so that its parts still fit."""
    changes = [] if device is None else [f"device={device}"]
    cap = settings.landmarks.cap
    if not isinstance(cap, str) and new.num_entities > old.num_entities:
        changes.append(f"landmarks.cap={math.ceil(cap * new.num_entities / old.num_entities)}")
    return resolve(Settings, PRESETS, overrides=changes, values=settings.model_dump())


def _inputs(run: Run, folder: Path, added: Additions) -> dict[str, Any]:
    """What the new run was made from: the old run's files, its model, and the added files."""
    assert run.store is not None
    inputs = dict(run.store.manifest.get("input_files", {}))
    inputs[f"{folder.resolve()} (model)"] = {"sha256": run.store.stages["rounds"].fingerprint}
    for path in added.paths():
        try:
            status = path.stat()
            identity = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
            inputs[str(path.resolve())] = {**identity, "sha256": file_checksum(path)}
        except OSError as error:
            raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None
    return inputs


def _added_facts(old: Run, grown: EnlargedTask) -> dict[str, Any]:
    before = old.artifact("task", AlignmentTask)
    assert old.store is not None
    return {
        "layout": "update",
        "update": {
            "run": str(old.store.folder.resolve()),
            "entities": grown.num_added_entities,
            "relations": grown.num_added_relations,
            "triples": grown.num_added_triples,
            "seeds": len(grown.task.train_links) - len(before.train_links),
        },
    }


def _row_facts(task: AlignmentTask, trained: Mask, grown: EnlargedTask, found: NewRows) -> dict[str, Any]:
    """How the entities training did not see came to their rows, (source, target)."""
    unseen, split = ~trained, task.num_source_entities
    embedded, direct = unseen & found.reached, unseen & (found.num_known > 0)
    neighbors = found.num_known[direct]
    return {
        "embedded": (int(embedded[:split].sum()), int(embedded[split:].sum())),
        "beside_known": (int(direct[:split].sum()), int(direct[split:].sum())),
        "not_reached": (int((unseen & ~found.reached)[:split].sum()), int((unseen & ~found.reached)[split:].sum())),
        "known_neighbors": float(neighbors.mean()) if len(neighbors) else 0.0,
        "formerly_isolated": int(unseen.sum()) - sum(grown.num_added_entities),
    }
