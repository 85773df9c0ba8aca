"""Offer the steps of a run as functions on values, for programs and for the command line.

Everything happens in a run folder, the same one the command line makes; without `out` the folder is temporary and goes
with the result, which `AlignmentResult.save` keeps.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    Cost,
    DivisionPlan,
    EntityEmbeddings,
    EpochRecord,
    Evaluation,
    Neighbors,
    Partition,
    PartitionQuality,
    SubgraphSet,
    TrainedModel,
)
from largegnn.data.inputs import DataInput
from largegnn.data.load import LoadedPair, load_pair
from largegnn.errors import InputError
from largegnn.matching.match import MatchOutcome
from largegnn.pipeline import run_pipeline, run_task
from largegnn.planning.plan import plan_for
from largegnn.result import AlignmentResult
from largegnn.run import Run
from largegnn.runfolder.steps import derived_seed
from largegnn.settings import WORLD_PRESETS, DataSettings, Settings, WorldSettings, resolve

if TYPE_CHECKING:
    import polars as pl

    from largegnn.datasets.download import Download
    from largegnn.datasets.generator import GeneratedPair
    from largegnn.figures import Comparison
    from largegnn.planning.inspection import Inspection

__all__ = [
    "Division",
    "Training",
    "align",
    "compare",
    "data_input",
    "divide",
    "download",
    "evaluate",
    "generate",
    "inspect",
    "load",
    "match",
    "open_run",
    "run_task",
    "search",
    "train",
    "update",
]

AnyPath = str | PathLike[str]
Names = Sequence[Sequence[str]]
NameArray = npt.NDArray[np.str_] | npt.NDArray[np.object_]
AnySettings = Settings | Mapping[str, object] | None


def data_input(
    source: AnyPath,
    target: AnyPath | None = None,
    seeds: AnyPath | None = None,
    *,
    valid_links: AnyPath | None = None,
    test_links: AnyPath | None = None,
    source_names: AnyPath | None = None,
    target_names: AnyPath | None = None,
    decisions: AnyPath | None = None,
) -> DataInput:
    """Put either calling form into one value: a data set folder alone, or SOURCE TARGET and seeds."""
    files = {
        "seeds": seeds,
        "valid_links": valid_links,
        "test_links": test_links,
        "source_names": source_names,
        "target_names": target_names,
        "decisions": decisions,
    }
    paths = {name: Path(path) for name, path in files.items() if path is not None}
    if target is None:
        return DataInput(folder=Path(source), **paths)
    return DataInput(source=Path(source), target=Path(target), **paths)


def load(
    source: AnyPath,
    target: AnyPath | None = None,
    seeds: AnyPath | None = None,
    *,
    valid_links: AnyPath | None = None,
    test_links: AnyPath | None = None,
    source_names: AnyPath | None = None,
    target_names: AnyPath | None = None,
    settings: DataSettings | None = None,
    keep_literals: bool = True,
) -> LoadedPair:
    """Read a data set folder, or two triple files and their seeds, into a task, its names and its literals.

    Without literals, entities that have nothing else are dropped.
    """
    given = data_input(
        source,
        target,
        seeds,
        valid_links=valid_links,
        test_links=test_links,
        source_names=source_names,
        target_names=target_names,
    )
    return load_pair(given, settings, keep_literals=keep_literals)


def align(
    source: AnyPath | pl.DataFrame | NameArray | Names,
    target: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    seeds: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    *,
    valid_links: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    test_links: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    source_names: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    target_names: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    decisions: AnyPath | None = None,
    out: AnyPath | None = None,
    seed: int | None = None,
    device: str | None = None,
    channels: str | Sequence[str] | None = None,
    min_precision: float | None = None,
    settings: AnySettings = None,
) -> AlignmentResult:
    """Align two graphs.

    Parameters
    ----------
    source, target
        The graphs: paths of triple files, frames or arrays of three columns of names. A data set folder alone will do
        as the source. With the settings `data.source_key` and `data.target_key`: tables with a row for each entity.
    seeds, valid_links, test_links
        Known links: two columns. Valid links choose options and calibrate, test links are for the figures alone.
    source_names, target_names
        What the entities are called: two columns, entity and name.
    decisions
        A file of what reviewers decided: accepted pairs become seeds, rejected ones are forbidden.
    out
        The run folder; an interrupted run in it resumes. Without, the folder is temporary.
    seed
        The random seed; the same seed gives the same result.
    device
        "auto", "cpu" or "cuda".
    channels
        What gives evidence: "auto", or some of "structure", "literals" (names and values) and "rules" (neighbours).
    min_precision
        Accept as many pairs as keep this expected precision. Default: the threshold with the highest expected F1.
    settings
        Everything else: `Settings`, or a mapping of them such as `{"train.epochs": 10}`.

    Examples
    --------
    >>> result = largegnn.align("source.nt.gz", "target.ttl", "seeds.tsv")  # doctest: +SKIP
    >>> result.pairs  # doctest: +SKIP
    >>> result.export("sssom", "alignment.sssom.tsv")  # doctest: +SKIP

    """
    from largegnn.data.in_memory import as_path, as_table

    if target is None and not isinstance(source, str | PathLike):
        raise InputError(
            "there is nothing to align the source with",
            expected="a source, a target and seeds, or the path of a data set folder alone",
            found=f"a source of kind {type(source).__name__} and no target",
        )
    given = {
        "source": source,
        "target": target,
        "seeds": seeds,
        "valid_links": valid_links,
        "test_links": test_links,
        "source_names": source_names,
        "target_names": target_names,
    }
    named = {"seed": seed, "device": device, "channels": channels, "match.min_precision": min_precision}
    changes = {key: value for key, value in named.items() if value is not None}
    chosen = resolve(Settings, {}, values={**Settings.of(settings).model_dump(), **changes})
    with tempfile.TemporaryDirectory(prefix="largegnn-") as scratch:
        keys = {"source": chosen.data.source_key, "target": chosen.data.target_key}
        paths = {
            name: (as_table if keys.get(name) else as_path)(value, Path(scratch) / f"{name}.parquet")
            for name, value in given.items()
        }
        first = paths.pop("source")
        assert first is not None
        files = data_input(first, **paths, decisions=decisions)
        if out is not None:
            return AlignmentResult(run_pipeline(Path(out), files, chosen))
        folder = Path(tempfile.mkdtemp(prefix="largegnn-"))
        try:
            return AlignmentResult(run_pipeline(folder, files, chosen), temporary=True)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def open_run(folder: AnyPath) -> AlignmentResult:
    """Open the alignment in a run folder."""
    return AlignmentResult.open(folder)


def update(
    run: AnyPath,
    source_triples: AnyPath | Sequence[AnyPath] | pl.DataFrame | NameArray | None = None,
    target_triples: AnyPath | Sequence[AnyPath] | pl.DataFrame | NameArray | None = None,
    seeds: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    *,
    test_links: AnyPath | pl.DataFrame | NameArray | Names | None = None,
    out: AnyPath,
    form: str = "auto",
    device: str | None = None,
    cluster: str | None = None,
) -> AlignmentResult:
    """Embed and align what came later with the model of a finished run; `out` becomes the enlarged run.

    Triples are given like graphs to `align`, or as a list of paths.
    """
    from largegnn.data.enlarge import Additions
    from largegnn.data.in_memory import as_path, as_paths
    from largegnn.enlarge_run import update_run

    with tempfile.TemporaryDirectory(prefix="largegnn-") as scratch:
        folder = Path(scratch)
        added = Additions(
            as_paths(source_triples, folder / "source.parquet"),
            as_paths(target_triples, folder / "target.parquet"),
            as_path(seeds, folder / "seeds.parquet"),
            as_path(test_links, folder / "test_links.parquet"),
        )
        update_run(Path(run), added, Path(out), form, device, cluster)
    return open_run(out)


def inspect(
    source: AnyPath | LoadedPair,
    target: AnyPath | None = None,
    seeds: AnyPath | None = None,
    *,
    settings: AnySettings = None,
    memory_mb: float | None = None,
) -> Inspection:
    """Count and measure a pair, from files or loaded; `memory_mb` is what a run may use (default: all that is free)."""
    from largegnn.division.merge import merge
    from largegnn.machine.metering import available_memory_mb
    from largegnn.planning.inspection import inspect_task

    pair = source if isinstance(source, LoadedPair) else load(source, target, seeds)
    seeds_from = Settings.of(settings).protocol.seeds_from
    return inspect_task(
        pair.task,
        merge(pair.task, seeds_from),
        seeds_from,
        attribute_triples=pair.summary.num_attribute_triples,
        many_to_one_links=pair.summary.num_many_to_one_links,
        memory_mb=available_memory_mb() if memory_mb is None else memory_mb,
        literals=pair.literals,
    )


@dataclass(frozen=True)
class Division:
    """A divided task: the subgraphs, how much they keep, and the cost of each step."""

    num_parts: int
    cap: int
    parts: Partition
    membership: Partition
    subgraphs: SubgraphSet
    quality: PartitionQuality
    costs: Mapping[str, Cost]

    @classmethod
    def of(cls, run: Run) -> Division:
        """Read the division of a run; the share of kept test links is counted here, as no dividing step sees them."""
        from largegnn.division.subgraphs import share_kept

        plan, membership = run.outcome("partition", DivisionPlan), run.artifact("membership", Partition)
        kept = share_kept(run.artifact("task", AlignmentTask).test_links, membership)
        return cls(
            num_parts=plan.num_parts,
            cap=plan.cap,
            parts=run.artifact("parts", Partition),
            membership=membership,
            subgraphs=run.artifact("subgraphs", SubgraphSet),
            quality=dataclasses.replace(run.outcome("subgraphs", PartitionQuality), test_kept=kept),
            costs={name: cost for name, cost in run.costs().items() if name in _DIVIDING},
        )

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each step."""
        return {name: cost.seconds for name, cost in self.costs.items()}

    @property
    def peak_memory_mb(self) -> float:
        """The largest peak of any step."""
        return max(cost.peak_memory_mb for cost in self.costs.values())


_DIVIDING = ("merge", "partition", "landmarks", "subgraphs")


@dataclass(frozen=True)
class Training:
    """A trained model, the vectors of all entities, and a record of every epoch."""

    model: TrainedModel
    embeddings: EntityEmbeddings
    history: tuple[EpochRecord, ...]


def divide(task: AlignmentTask, settings: AnySettings = None) -> Division:
    """Merge a task's graphs at the seeds and divide the result into subgraphs."""
    chosen = Settings.of(settings)
    plan_for(task, chosen.division, chosen.landmarks, chosen.device)  # refused before anything is computed
    with tempfile.TemporaryDirectory(prefix="largegnn-") as folder:
        return Division.of(run_task(Path(folder), task, None, chosen, last="subgraphs"))


def train(task: AlignmentTask, settings: AnySettings = None) -> Training:
    """Merge, divide and train on a task, and bring all entities into one space."""
    from largegnn.embedding.train import TrainOutcome

    with tempfile.TemporaryDirectory(prefix="largegnn-") as folder:
        run = run_task(Path(folder), task, None, Settings.of(settings), last="integrate")
        return Training(
            run.artifact("model", TrainedModel),
            run.artifact("embeddings", EntityEmbeddings),
            run.outcome("train", TrainOutcome).history,
        )


def search(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: AnySettings = None
) -> tuple[Neighbors, Neighbors]:
    """Find the nearest free targets of each free source, and the nearest free sources of each free target."""
    from largegnn.matching.nearest import find_nearest

    chosen = Settings.of(settings)
    hidden, seed = task.without_test_links(), derived_seed(chosen.seed, "search")
    found = find_nearest(hidden, embeddings, chosen.protocol, chosen.search, seed, device=chosen.device)
    return found.source_neighbors, found.target_neighbors


def match(
    task: AlignmentTask,
    embeddings: EntityEmbeddings,
    neighbors: tuple[Neighbors, Neighbors] | None = None,
    settings: AnySettings = None,
) -> tuple[Alignment, MatchOutcome]:
    """Match by given vectors: pairs with evidence, confidence and decision; searches first without `neighbors`."""
    from largegnn.matching.match import match as run_match

    chosen = Settings.of(settings)
    found = search(task, embeddings, chosen) if neighbors is None else neighbors
    # A task has no names and values: what the data allow is structure.
    channels = ("structure", "rules") if chosen.channels == ("auto",) else chosen.channels
    hidden = task.without_test_links()
    made = run_match(hidden, embeddings, *found, chosen.protocol, channels, chosen.match, device=chosen.device)
    return made.alignment, made.outcome


def evaluate(run: AnyPath) -> Evaluation:
    """Read the figures of a run by its test links, or measure them now."""
    from largegnn.figures import evaluated_run

    return evaluated_run(Path(run)).outcome("evaluate", Evaluation)


def compare(*runs: AnyPath) -> Comparison:
    """Compare runs: the settings that differ, and the figures."""
    from largegnn.figures import compare_runs

    return compare_runs([Path(run) for run in runs])


def download(name: str, out: AnyPath = "data", *, mirror: str | None = None, force: bool = False) -> Download:
    """Fetch a public data set by name, compare its checksum and unpack it; `mirror` is another address."""
    from largegnn.datasets.download import download as fetch_and_unpack

    return fetch_and_unpack(name, Path(out), mirror=mirror, force=force)


def generate(
    settings: WorldSettings | str = "small",
    *,
    seed: int = 0,
    folder: AnyPath | None = None,
    form: str = "openea",
    compression: str | None = None,
) -> GeneratedPair:
    """Generate a pair of graphs from settings or a preset's name, and write it to `folder` if there is one."""
    from largegnn.data.write import write_pair
    from largegnn.datasets.generator import generate_pair

    if isinstance(settings, str):
        settings = resolve(WorldSettings, WORLD_PRESETS, settings)
    pair = generate_pair(settings, seed)
    if folder is not None:
        write_pair(pair.task, pair.names, Path(folder), form, compression, pair.literals)
    return pair
