"""The steps as plain functions: what the command line calls, and what a program may call itself."""

from __future__ import annotations

import dataclasses
import tempfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from largegnn.artifacts import Alignment, AlignmentTask, Partition, PartitionQuality, SubgraphSet, TaskNames
from largegnn.data.enlarge import Additions
from largegnn.data.in_memory import as_path
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.data.write import write_pair
from largegnn.datasets.generator import GeneratedPair, generate_pair
from largegnn.division import share_kept
from largegnn.division.merge import merge
from largegnn.errors import InputError
from largegnn.machine.metering import available_memory_mb
from largegnn.planning.inspection import Inspection, inspect_task
from largegnn.result import AlignmentResult
from largegnn.runs.pipeline import resume_input, run_in_memory, run_pipeline
from largegnn.runs.store import RunStore
from largegnn.settings import WORLD_PRESETS, DataSettings, ProtocolSettings, Settings, WorldSettings, resolve
from largegnn.stages import Run, plan_for

__all__ = [
    "Division",
    "align",
    "data_input",
    "divide",
    "generate",
    "inspect",
    "load",
    "open_run",
    "quality_of",
    "update",
]

_Path = str | PathLike[str]
# Paths, or what `as_path` can write to a file: polars frames, arrays of names.
_Graph = Any


def data_input(
    source: _Path,
    target: _Path | None = None,
    seeds: _Path | None = None,
    *,
    valid_links: _Path | None = None,
    test_links: _Path | None = None,
) -> DataInput:
    """Either calling form as one value: a data set folder alone, or SOURCE TARGET and seeds."""
    links = {"seeds": seeds, "valid_links": valid_links, "test_links": test_links}
    paths = {name: Path(path) for name, path in links.items() if path is not None}
    if target is None:
        return DataInput(folder=Path(source), **paths)
    return DataInput(source=Path(source), target=Path(target), **paths)


def load(
    source: _Path,
    target: _Path | None = None,
    seeds: _Path | None = None,
    *,
    valid_links: _Path | None = None,
    test_links: _Path | None = None,
    settings: DataSettings | None = None,
) -> LoadedPair:
    """Read a data set folder, or two triple files and their seeds, into a task and its names."""
    return load_pair(data_input(source, target, seeds, valid_links=valid_links, test_links=test_links), settings)


def align(
    source: _Graph,
    target: _Graph | None = None,
    seeds: _Graph | None = None,
    *,
    valid_links: _Graph | None = None,
    test_links: _Graph | None = None,
    out: _Path | None = None,
    settings: Settings | None = None,
) -> AlignmentResult:
    """Align two graphs given as paths, polars frames or arrays of names (a data set folder alone will do as well).

    With `out` everything is kept in a run folder, and an interrupted run goes on; without, nothing is written.
    """
    settings = settings or Settings()
    if target is None and not isinstance(source, str | PathLike):
        raise InputError(
            "there is nothing to align the source with",
            expected="a source, a target and seeds, or the path of a data set folder alone",
            found=f"a source of kind {type(source).__name__} and no target",
        )
    given = (source, target, seeds, valid_links, test_links)
    with tempfile.TemporaryDirectory(prefix="largegnn-") as scratch:
        names = ("source", "target", "seeds", "valid_links", "test_links")
        paths = [as_path(value, Path(scratch) / f"{name}.parquet") for name, value in zip(names, given, strict=True)]
        assert paths[0] is not None
        files = data_input(paths[0], paths[1], paths[2], valid_links=paths[3], test_links=paths[4])
        if out is not None:
            return AlignmentResult(*_named(run_pipeline(Path(out), files, settings)), Path(out).name)
        pair = load_pair(files, settings.data)
    run = run_in_memory(pair.task, settings, last="evaluate")
    return AlignmentResult(run, pair.names, "in memory")


def open_run(folder: _Path) -> AlignmentResult:
    """The alignment a run folder holds."""
    settings = resume_input(Path(folder))[1]
    run = Run(settings, store=RunStore(Path(folder)))
    run.artifact("alignment", Alignment)
    return AlignmentResult(*_named(run), Path(folder).resolve().name)


def update(
    run: _Path,
    source_triples: _Graph | None = None,
    target_triples: _Graph | None = None,
    seeds: _Graph | None = None,
    *,
    test_links: _Graph | None = None,
    out: _Path,
    form: str = "auto",
    device: str | None = None,
) -> AlignmentResult:
    """Embed and align what came later with the model of a finished run; `out` becomes the enlarged run.

    Triples are given like graphs to `align`, or as a list of paths.
    """
    from largegnn.runs.update import update_run

    with tempfile.TemporaryDirectory(prefix="largegnn-") as scratch:
        folder = Path(scratch)
        added = Additions(
            _paths(source_triples, folder / "source.parquet"),
            _paths(target_triples, folder / "target.parquet"),
            as_path(seeds, folder / "seeds.parquet"),
            as_path(test_links, folder / "test_links.parquet"),
        )
        update_run(Path(run), added, Path(out), form, device)
    return open_run(out)


def _paths(value: _Graph | None, place: Path) -> tuple[Path, ...]:
    """The paths of what is given: one, several, or what is written to `place` first."""
    if isinstance(value, list | tuple) and all(isinstance(path, str | PathLike) for path in value):
        return tuple(Path(path) for path in value)
    path = as_path(value, place)
    return () if path is None else (path,)


def _named(run: Run) -> tuple[Run, TaskNames]:
    return run, run.artifact("names", TaskNames)


def inspect(pair: LoadedPair, protocol: ProtocolSettings | None = None, memory_mb: float | None = None) -> Inspection:
    """Count and measure a loaded pair; the size estimate uses `memory_mb`, or the memory free on this machine."""
    seeds_from = (protocol or ProtocolSettings()).seeds_from
    return inspect_task(
        pair.task,
        merge(pair.task, seeds_from),
        seeds_from,
        attribute_triples=pair.summary.num_attribute_triples,
        many_to_one_links=pair.summary.num_many_to_one_links,
        memory_mb=available_memory_mb() if memory_mb is None else memory_mb,
    )


@dataclass(frozen=True)
class Division:
    """A divided task: the subgraphs, how much they keep, and what it cost."""

    num_parts: int
    cap: int
    parts: Partition
    cover: Partition
    subgraphs: SubgraphSet
    quality: PartitionQuality
    seconds: dict[str, float]
    peak_memory_mb: float


def divide(task: AlignmentTask, settings: Settings | None = None) -> Division:
    """Merge a task's graphs at the seeds and divide the result into subgraphs."""
    settings = settings or Settings()
    plan = plan_for(task, settings)  # refused here if it cannot work, before anything is computed
    run = run_in_memory(task, settings, last="subgraphs")
    outcomes = {name: run.outcome(name) for name in run.finished()}
    return Division(
        num_parts=plan.num_parts,
        cap=plan.cap,
        parts=run.artifact("parts", Partition),
        cover=run.artifact("cover", Partition),
        subgraphs=run.artifact("subgraphs", SubgraphSet),
        quality=quality_of(run),
        seconds={name: outcome.seconds for name, outcome in outcomes.items()},
        peak_memory_mb=max(outcome.peak_memory_mb for outcome in outcomes.values()),
    )


def quality_of(run: Run) -> PartitionQuality:
    """How good the division of a run is; its stages see no test links, so their share is added here."""
    quality = PartitionQuality(**run.outcome("subgraphs").facts)
    kept = share_kept(run.artifact("task", AlignmentTask).test_links, run.artifact("cover", Partition))
    return dataclasses.replace(quality, test_kept=kept)


def generate(
    settings: WorldSettings | str = "small",
    *,
    seed: int = 0,
    folder: _Path | None = None,
    form: str = "openea",
    packing: str | None = None,
) -> GeneratedPair:
    """Make up a pair of graphs from settings or a preset's name, and write it to `folder` if there is one."""
    if isinstance(settings, str):
        settings = resolve(WorldSettings, WORLD_PRESETS, settings)
    pair = generate_pair(settings, seed)
    if folder is not None:
        write_pair(pair.task, pair.names, Path(folder), form, packing)
    return pair
