"""A run folder brought up to date, stage by stage: reuse what is there and right, compute what is not.

A stage's fingerprint covers its name and version, the settings it reads, and the fingerprints of the stages it needs;
that of `load` covers the bytes of the input files. What the folder holds is reused if fingerprint and checksum agree,
and that is always logged. A folder that holds something else is refused, not overwritten: `force` replaces it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.artifacts import to_plain
from largegnn.cluster.connection import open_cluster
from largegnn.data.inputs import DataInput
from largegnn.errors import InputError
from largegnn.machine.metering import Meter, release_memory
from largegnn.runs.arguments import stage_arguments
from largegnn.runs.input_files import InputFiles, checksum_input, known_files, plain_files
from largegnn.runs.repartition import Repartitioner
from largegnn.runs.run import Run, artifacts_of
from largegnn.runs.store import RunStore, fingerprint
from largegnn.seams.tables import ENGINES
from largegnn.settings import PRESETS, Settings, flat_settings, resolve, to_toml
from largegnn.stages import STAGE_NAMES, STAGES, Stage, stage_index
from largegnn.version import __version__

__all__ = ["open_store", "put_stage", "resume_input", "run_pipeline", "stage_fingerprints"]

_log = logging.getLogger(__name__)


def run_pipeline(
    folder: Path,
    given: DataInput | None,
    settings: Settings,
    *,
    force: str | None = None,
    first: str | None = None,
    last: str | None = None,
) -> Run:
    """Bring a run folder up to the stage `last`, computing only what is missing, changed by `force`, or damaged."""
    start = 0 if first is None else stage_index(first)
    end = len(STAGES) - 1 if last is None else stage_index(last)
    forced = len(STAGES) if force is None else stage_index(force)
    if start > end:
        raise InputError(f"--from {first} comes after --to {last}", expected=f"the order {', '.join(STAGE_NAMES)}")
    store = open_store(folder)
    run = Run(settings, store, given)
    with store.lock(), contextlib.ExitStack() as stack:
        inputs = checksum_input(given, settings, store)
        prints = stage_fingerprints(settings, inputs)
        _refuse_other_run(run, store, prints, inputs, first_replaced=forced)
        _refuse_gap(store, STAGE_NAMES[:start], kept=STAGE_NAMES[:forced])
        stack.enter_context(open_cluster(settings.cluster, store.folder, settings.device))
        _forget(run, STAGE_NAMES[forced:])
        for stage in STAGES[forced:]:
            _remove_work(store, stage.name)
        store.update_manifest(
            made_by=__version__,
            input=_input_entry(given) if given is not None else store.manifest.get("input"),
            input_files=plain_files(inputs),
            settings=settings.model_dump(mode="json"),
            machine={"python": platform.python_version(), "numpy": np.__version__, "system": platform.platform()},
        )
        store.write_text("config.toml", to_toml(settings))
        for number, stage in enumerate(STAGES[: end + 1], start=1):
            if stage.channel is not None and stage.channel not in run.channels():
                _log.info("%s: left out, as the channel %s is off", stage.name, stage.channel)
            elif store.is_intact(stage.name) and _has_pages(run, stage):
                _log.info("%s: reused from %s", stage.name, folder)
            else:
                _compute(run, store, stage, number, prints[stage.name])
    return run


def open_store(folder: Path) -> RunStore:
    """The store of a new, empty or run folder; anything else is refused."""
    store = RunStore(folder)
    if not store.manifest and folder.exists() and _is_foreign(folder):
        raise InputError(
            "the output folder holds something that is not a run",
            where=str(folder),
            expected="a new or empty folder, or a run folder",
            fix="name another folder",
        )
    return store


def put_stage(store: RunStore, settings: Settings, inputs: InputFiles, name: str, made: object) -> None:
    """Put a stage made elsewhere into a run folder, under the fingerprint the pipeline expects."""
    _save(store, settings, STAGES[stage_index(name)], stage_fingerprints(settings, inputs)[name], made, Meter())


def resume_input(folder: Path) -> tuple[DataInput | None, Settings]:
    """The input and settings an interrupted run was started with."""
    manifest = RunStore(folder).manifest
    if not manifest:
        raise InputError("there is no run to resume", where=str(folder), expected="a folder with a manifest.json")
    entry = manifest.get("input")
    given = DataInput(**{key: Path(value) for key, value in entry.items()}) if entry else None
    return given, resolve(Settings, PRESETS, values=manifest["settings"])


def _compute(run: Run, store: RunStore, stage: Stage, number: int, stage_print: str) -> None:
    """Run one stage and save it; what depended on its old state is forgotten first."""
    _forget(run, STAGE_NAMES[number - 1 :])
    if stage.name == "train" and store.manifest.get("update") is not None:
        store.update_manifest(update=None)  # trained on everything, it is no update any more
    _log.info("%s: started", stage.name)
    # Named after the fingerprint: what another stage or other settings left is never taken up.
    work = store.folder / f"work-{stage.name}-{stage_print[:12]}"
    _remove_work(store, stage.name, keep=work)
    meter = Meter()
    arguments = stage_arguments(run, stage, work)
    divisions = arguments.get("divisions")
    with divisions if isinstance(divisions, Repartitioner) else contextlib.nullcontext():
        made = ENGINES[run.settings.engine](stage, arguments)
    _save(store, run.settings, stage, stage_print, made, meter)
    run.forget_artifacts(stage.makes)
    release_memory()
    _remove_work(store, stage.name)
    cost = run.cost(stage.name)
    _log.info("%s: done in %.2f s, peak memory %.0f MB", stage.name, cost.seconds, cost.peak_memory_mb)


def _save(store: RunStore, settings: Settings, stage: Stage, stage_print: str, made: Any, meter: Meter) -> None:
    usage = meter.read()
    record = {
        "fingerprint": stage_print,
        "settings": stage.settings_read(settings),
        "facts": to_plain(made.outcome),
        "seconds": round(usage.seconds, 3),
        "peak_memory_mb": round(usage.peak_memory_mb, 1),
        "peak_gpu_mb": None if usage.peak_gpu_mb is None else round(usage.peak_gpu_mb, 1),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    store.save_stage(stage.name, STAGE_NAMES.index(stage.name) + 1, artifacts_of(made), record)


def _has_pages(run: Run, stage: Stage) -> bool:
    """Whether the files that the report wrote are still there; they are in no checksum, as people may edit them."""
    return stage.name != "report" or all((run.folder / file).is_file() for file in run.pages())


def _forget(run: Run, names: tuple[str, ...]) -> None:
    """Let go of stages, and of the pages of a report first: they would tell of what is not there any more."""
    for file in run.pages() if "report" in names else ():
        (run.folder / file).unlink(missing_ok=True)
    run.store.forget(list(names))
    run.forget_outcomes(names)


def _remove_work(store: RunStore, stage: str, keep: Path | None = None) -> None:
    """Remove the work folders of a stage, but for the one to go on with."""
    for folder in store.folder.glob(f"work-{stage}-*"):
        if folder != keep:
            shutil.rmtree(folder)


def _is_foreign(folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError("the output folder is a file", where=str(folder), fix="name another folder")
    return any(entry.name != ".lock" and not entry.name.endswith(".partial") for entry in folder.iterdir())


def stage_fingerprints(settings: Settings, inputs: InputFiles) -> dict[str, str]:
    """What each stage would be made from, in a short name; `inputs` are the checksums of the input files."""
    prints: dict[str, str] = {}
    for stage in STAGES:
        parts = {
            "stage": stage.name,
            "version": stage.version,
            "settings": stage.settings_read(settings),
            "needs": [prints[need] for need in stage.needs],
        }
        if not stage.needs:
            parts["input"] = [entry.sha256 for entry in inputs.values()]
        prints[stage.name] = fingerprint(parts)
    return prints


def _input_entry(given: DataInput) -> dict[str, str]:
    paths = dataclasses.asdict(given)
    return {key: str(Path(value).resolve()) for key, value in paths.items() if value is not None}


def _refuse_other_run(
    run: Run, store: RunStore, prints: Mapping[str, str], inputs: InputFiles, first_replaced: int
) -> None:
    """Refuse to replace what was computed from other input or settings, unless it was asked for."""
    for stage in STAGES[:first_replaced]:
        record = store.stages.get(stage.name)
        if record is None or record.fingerprint == prints[stage.name]:
            continue
        raise InputError(
            "the output folder holds another run",
            where=str(store.folder),
            found=_difference(run, store, stage, record.settings, inputs),
            fix=f"name another folder, or replace it from there on with --force {stage.name}",
        )


def _refuse_gap(store: RunStore, needed: tuple[str, ...], kept: tuple[str, ...]) -> None:
    """Refuse to start after a stage that is not there, before anything is replaced."""
    for name in needed:
        if name not in kept or not store.is_intact(name):
            raise InputError(
                f"the run folder has no intact stage {name}, which --from {STAGE_NAMES[len(needed)]} needs",
                where=str(store.folder),
                fix=f"start with --from {name}",
            )


def _difference(run: Run, store: RunStore, stage: Stage, recorded: Mapping[str, Any], inputs: InputFiles) -> str:
    # A section that made no difference then was not recorded; what makes it matter now is in another one.
    read = {section: value for section, value in stage.settings_read(run.settings).items() if section in recorded}
    before, now = flat_settings(recorded), flat_settings(read)
    changed = [f"{key} was {before.get(key)!r}, is {value!r}" for key, value in now.items() if before.get(key) != value]
    known = known_files(store)
    changed += [
        f"{path} is not the file it was made from"
        for path, entry in inputs.items()
        if path not in known or known[path].sha256 != entry.sha256
    ]
    return "; ".join(changed) or f"stage {stage.name} of another version of the program"
