"""The stages in order, and the rule for each: reuse what is there and right, compute what is not.

A stage's fingerprint covers its name and version, the settings it reads, and the fingerprints of the stages it needs;
that of `load` covers the bytes of the input files. What the folder holds is reused if fingerprint and checksum agree,
and that is always logged. A folder that holds something else is refused, not overwritten: `force` replaces it.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from largegnn.artifacts import AlignmentTask, MergedGraph, TaskNames
from largegnn.config import PRESETS, Settings, resolve, to_toml
from largegnn.data.inputs import DataInput, find_files
from largegnn.data.load import load_pair
from largegnn.data.merge import count_merge, merge
from largegnn.errors import InputError
from largegnn.metering import Meter
from largegnn.store import RunStore, file_checksum, fingerprint
from largegnn.version import __version__

__all__ = ["STAGES", "STAGE_NAMES", "Run", "Stage", "resume_input", "run_pipeline"]

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


class Run:
    """A run folder in use: settings, inputs, and the artifacts of the stages done so far."""

    def __init__(self, folder: Path, given: DataInput | None, settings: Settings) -> None:
        self.store = RunStore(folder)
        self.given, self.settings = given, settings
        self._made: dict[str, Any] = {}

    def artifact(self, key: str, kind: type[_Artifact]) -> _Artifact:
        """An artifact by name, from this process if it was made here, else mapped from the folder."""
        if key not in self._made:
            stage = next(stage for stage in STAGES if key in stage.makes)
            if stage.name not in self.store.stages:
                raise InputError(
                    f"the run folder has no stage {stage.name}",
                    where=str(self.store.folder),
                    fix="run that stage first",
                )
            self._made[key] = self.store.load(stage.name, key, kind)
        return cast(_Artifact, self._made[key])

    def keep(self, artifacts: Mapping[str, Any]) -> None:
        """Hold artifacts that were just made."""
        self._made |= artifacts


def _run_load(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    if run.given is None:
        raise InputError("the run folder has no stage load", where=str(run.store.folder), fix="give the input again")
    loaded = load_pair(run.given, run.settings.data)
    return {"task": loaded.task, "names": loaded.names}, dataclasses.asdict(loaded.summary)


def _run_merge(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    graph = merge(run.artifact("task", AlignmentTask), run.settings.protocol.seeds_from)
    counts = count_merge(graph)
    facts = {"num_nodes": graph.num_nodes, "num_edges": graph.num_edges, **dataclasses.asdict(counts)}
    return {"merged": graph}, facts


STAGES: tuple[Stage, ...] = (
    Stage("load", 1, (), ("data",), {"task": AlignmentTask, "names": TaskNames}, _run_load),
    Stage("merge", 1, ("load",), ("protocol",), {"merged": MergedGraph}, _run_merge),
)
STAGE_NAMES = tuple(stage.name for stage in STAGES)


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
    start, end, forced = (_position(name, default) for name, default in ((first, 0), (last, -1), (force, len(STAGES))))
    if start > end:
        raise InputError(f"--from {first} comes after --to {last}", expected=f"the order {', '.join(STAGE_NAMES)}")
    if not (folder / "manifest.json").exists() and folder.exists() and _is_foreign(folder):
        raise InputError(
            "the output folder holds something that is not a run",
            where=str(folder),
            expected="a new or empty folder, or a run folder",
            fix="name another folder",
        )
    run = Run(folder, given, settings)
    with run.store.lock():
        inputs = _input_checksums(run)
        prints = _fingerprints(settings, inputs)
        _refuse_other_run(run, prints, inputs, first_replaced=forced)
        run.store.forget([stage.name for stage in STAGES[forced:]])
        run.store.update_manifest(
            made_by=__version__,
            input=_input_entry(given) if given is not None else run.store.manifest.get("input"),
            input_files=inputs,
            settings=settings.model_dump(),
            machine={"python": platform.python_version(), "numpy": np.__version__, "system": platform.platform()},
        )
        run.store.write_text("config.toml", to_toml(settings))
        for number, stage in enumerate(STAGES[: end + 1], start=1):
            if run.store.is_intact(stage.name):
                _log.info("%s: reused from %s", stage.name, folder)
            elif number - 1 < start:
                raise InputError(
                    f"the run folder has no intact stage {stage.name}, which --from {first} needs",
                    where=str(folder),
                    fix=f"start with --from {stage.name}",
                )
            else:
                _compute(run, stage, number, prints[stage.name])
    return run


def resume_input(folder: Path) -> tuple[DataInput | None, Settings]:
    """The input and settings an interrupted run was started with."""
    manifest = RunStore(folder).manifest
    if not manifest:
        raise InputError("there is no run to resume", where=str(folder), expected="a folder with a manifest.json")
    entry = manifest.get("input")
    given = DataInput(**{key: Path(value) for key, value in entry.items()}) if entry else None
    return given, resolve(Settings, PRESETS, values=manifest["settings"])


def _compute(run: Run, stage: Stage, number: int, stage_print: str) -> None:
    run.store.forget([later.name for later in STAGES[number - 1 :]])
    _log.info("%s: started", stage.name)
    meter = Meter()
    artifacts, facts = stage.run(run)
    usage = meter.read()
    run.keep(artifacts)
    run.store.save_stage(
        stage.name,
        number,
        artifacts,
        {
            "fingerprint": stage_print,
            "settings": _settings_of(stage, run.settings),
            "facts": facts,
            "seconds": round(usage.seconds, 3),
            "peak_memory_mb": round(usage.peak_memory_mb, 1),
            "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        },
    )
    _log.info("%s: done in %.2f s, peak memory %.0f MB", stage.name, usage.seconds, usage.peak_memory_mb)


def _position(name: str | None, default: int) -> int:
    if name is None:
        return default if default >= 0 else len(STAGES) + default
    if name not in STAGE_NAMES:
        raise InputError(f"no stage is called {name!r}", expected=f"one of {', '.join(STAGE_NAMES)}")
    return STAGE_NAMES.index(name)


def _is_foreign(folder: Path) -> bool:
    if not folder.is_dir():
        raise InputError("the output folder is a file", where=str(folder), fix="name another folder")
    return any(entry.name != ".lock" and not entry.name.endswith(".partial") for entry in folder.iterdir())


def _settings_of(stage: Stage, settings: Settings) -> dict[str, Any]:
    return {section: getattr(settings, section).model_dump() for section in stage.sections}


def _fingerprints(settings: Settings, inputs: Mapping[str, Any]) -> dict[str, str]:
    prints: dict[str, str] = {}
    for stage in STAGES:
        parts = {
            "stage": stage.name,
            "version": stage.version,
            "settings": _settings_of(stage, settings),
            "needs": [prints[need] for need in stage.needs],
        }
        if not stage.needs:
            parts["input"] = [entry["sha256"] for entry in inputs.values()]
        prints[stage.name] = fingerprint(parts)
    return prints


def _input_entry(given: DataInput) -> dict[str, str]:
    paths = dataclasses.asdict(given)
    return {key: str(Path(value).resolve()) for key, value in paths.items() if value is not None}


def _input_checksums(run: Run) -> dict[str, dict[str, Any]]:
    """Checksums of the input files in a fixed order; those of untouched files are taken from the manifest."""
    known: dict[str, dict[str, Any]] = run.store.manifest.get("input_files", {})
    if run.given is None:
        return known
    try:
        files = find_files(run.given, run.settings.data).paths()
    except InputError:
        if "load" not in run.store.stages:
            raise
        # The run folder has moved to a machine without the input: what it holds is still what it was made from.
        _log.info("the input files are not here; the run folder is taken as it is")
        return known
    checksums = {}
    for path in files:
        try:
            status = path.stat()
            identity = {"bytes": status.st_size, "modified_ns": status.st_mtime_ns}
            seen = known.get(str(path.resolve()))
            if seen is None or any(seen[key] != value for key, value in identity.items()):
                seen = {**identity, "sha256": file_checksum(path)}
        except OSError as error:
            raise InputError("the file cannot be read", where=str(path), found=error.strerror) from None
        checksums[str(path.resolve())] = seen
    return checksums


def _refuse_other_run(run: Run, prints: Mapping[str, str], inputs: Mapping[str, Any], first_replaced: int) -> None:
    """Refuse to replace what was computed from other input or settings, unless it was asked for."""
    for stage in STAGES[:first_replaced]:
        record = run.store.stages.get(stage.name)
        if record is None or record.fingerprint == prints[stage.name]:
            continue
        raise InputError(
            "the output folder holds another run",
            where=str(run.store.folder),
            found=_difference(run, stage, record.settings, inputs),
            fix=f"name another folder, or replace it from there on with --force {stage.name}",
        )


def _difference(run: Run, stage: Stage, recorded: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    changed = [
        f"{section}.{key} was {recorded[section].get(key)!r}, is {value!r}"
        for section, values in _settings_of(stage, run.settings).items()
        for key, value in values.items()
        if recorded.get(section, {}).get(key) != value
    ]
    known = run.store.manifest.get("input_files", {})
    changed += [
        f"{path} is not the file it was made from"
        for path, entry in inputs.items()
        if known.get(path, {}).get("sha256") != entry["sha256"]
    ]
    return "; ".join(changed) or f"stage {stage.name} of another version of the program"
