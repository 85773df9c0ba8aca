"""Make the missing runs of the paper's tables: each system on each data set with each random seed.

In: the systems of `lab/configs`, and a folder with data set folders. Out: a record of each run in the file of its data
set. A run that has a record is never repeated; several processes divide the runs among themselves. A system with tables
shared by all subgraphs is run by the pipeline in a run folder, so that a killed run resumes where it stopped. Models of
single blocks are trained in memory, and start again from the beginning. Run folders are removed once the record is
written, unless the caller keeps them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import shutil
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.origin import machine_name, origin_of
from lab.records import Pairs, ResultRecord, add_record, read_results, supersede
from lab.runs import derived_seed, run_pipeline
from lab.systems import PaperSystem, short_settings
from largegnn import api
from largegnn.artifacts import Cost, PairFigures, PartitionQuality, are_among, to_plain
from largegnn.datasets.catalogue import DATASETS
from largegnn.errors import InputError, StorageError
from largegnn.machine.devices import choose_device
from largegnn.machine.locks import hold
from largegnn.machine.metering import Meter
from largegnn.settings import WORLD_PRESETS, Settings

__all__ = [
    "Planned",
    "missing_data",
    "plan_runs",
    "remedy",
    "reproduce",
    "run_system",
]

_log = logging.getLogger(__name__)
_PARTITION = ("merge", "partition", "landmarks")  # the steps included in the paper's "Time"


@dataclass(frozen=True)
class Planned:
    """A run that has no record yet."""

    system: PaperSystem
    random_seed: int


def plan_runs(systems: Iterable[PaperSystem], records: Iterable[ResultRecord], num_repeats: int) -> list[Planned]:
    """List the runs that have no record yet, in the order of the systems, with random seeds 0, 1, ..."""
    finished = {(record.dataset, record.system, record.random_seed) for record in records}
    return [
        Planned(system, seed)
        for system in systems
        for seed in range(num_repeats)
        if (system.dataset, system.name, seed) not in finished
    ]


def missing_data(systems: Iterable[PaperSystem], data: Path) -> dict[str, str]:
    """Return the data sets that are missing in a folder, each with instructions to get it."""
    names = dict.fromkeys(system.dataset for system in systems)
    return {name: remedy(name, data) for name in names if not (data / name).is_dir()}


def remedy(dataset: str, data: Path) -> str:
    """Say how to get a data set into a folder."""
    if dataset in WORLD_PRESETS:
        return f"largegnn generate {data / dataset} --preset {dataset}"
    if dataset in DATASETS:
        return f"largegnn download {dataset} --out {data}"
    if dataset.startswith("DBpedia1M_"):
        return f"largegnn download dbpedia1m --out DIR, then move its folder to {data / dataset}"
    return f"no public address is known; put its folder at {data / dataset}"


def reproduce(
    systems: Sequence[PaperSystem],
    data: Path,
    results: Path,
    work: Path,
    num_repeats: int,
    device: str = "auto",
    *,
    keep_runs: bool = False,
    superseded_for: str | None = None,
) -> list[ResultRecord]:
    """Make every missing run whose data set is present; return all records afterwards.

    With a reason in `superseded_for`, outdated records (made with other settings, or without origin) of systems whose
    data set is present are moved to `superseded` first.
    """
    absent = missing_data(systems, data)
    if superseded_for:
        for system in systems:
            if system.dataset not in absent and _is_outdated(system, read_results(results)):
                supersede(results, system.dataset, system.name, superseded_for)
    records = read_results(results)
    planned = plan_runs([system for system in systems if system.dataset not in absent], records, num_repeats)
    for run in planned:
        _refuse_other_settings(run.system, records)
    # First make the runs that no other process works on, then wait for those and make the runs that are still missing.
    for wait in (False, True):
        for number, run in enumerate(planned, start=1):
            system, seed = run.system, run.random_seed
            folder = work / system.dataset / _folder_name(system.name) / f"seed-{seed}"
            with _claimed(folder, wait) as is_claimed:
                if not is_claimed or run not in plan_runs([system], read_results(results), num_repeats):
                    continue
                _log.info(
                    "run %d of %d: %s on %s, random seed %d", number, len(planned), system.name, system.dataset, seed
                )
                add_record(results, run_system(system, data / system.dataset, folder, seed, device))
                if not keep_runs and (folder / "manifest.json").exists():
                    shutil.rmtree(folder)
    return read_results(results)


@contextlib.contextmanager
def _claimed(folder: Path, wait: bool) -> Iterator[bool]:
    """Lock the run of a folder against other processes; yields whether this process got the lock."""
    file = folder.with_suffix(".lock")
    with contextlib.ExitStack() as stack:
        try:
            is_held = stack.enter_context(hold(file, wait=wait))
        except OSError as error:
            raise StorageError(f"cannot write {file}: {error.strerror or error}") from error
        yield is_held


def run_system(system: PaperSystem, data: Path, folder: Path, random_seed: int, device: str = "auto") -> ResultRecord:
    """Run a system on a data set folder; a killed run is resumed in `folder`."""
    settings = system.settings.model_copy(update={"seed": random_seed, "device": device})
    figures = _run_blocks(data, settings) if system.training == "blocks" else _run_shared(data, settings, folder)
    return ResultRecord.model_validate(
        {
            "dataset": system.dataset,
            "system": system.name,
            "random_seed": random_seed,
            "machine": machine_name(settings.device),
            "settings": short_settings(system),
            "origin": origin_of(settings, [data]),
            **figures,
        }
    )


def _is_outdated(system: PaperSystem, records: Sequence[ResultRecord]) -> bool:
    """Whether a system has records with other settings than a run made now, or without origin."""
    system_records = [record for record in records if (record.dataset, record.system) == (system.dataset, system.name)]
    return any(record.origin is None or record.settings != short_settings(system) for record in system_records)


def _refuse_other_settings(system: PaperSystem, records: Sequence[ResultRecord]) -> None:
    """Refuse, before any work, a run whose settings differ from those of the stored records of its system."""
    system_records = [record for record in records if (record.dataset, record.system) == (system.dataset, system.name)]
    if system_records and system_records[0].settings != short_settings(system):
        raise InputError(
            f"the stored runs of {system.name} on {system.dataset} were made with other settings",
            expected=str(short_settings(system)),
            found=str(system_records[0].settings),
            fix="move the records to `superseded` with --supersede REASON, or name another folder with --results",
        )


def _run_shared(data: Path, settings: Settings, folder: Path) -> dict[str, Any]:
    """Run the pipeline in a run folder, and return the figures for a record."""
    run = run_pipeline(folder, api.data_input(data), settings)
    summary = run.summary
    evaluation = summary.evaluation
    quality = summary.quality
    costs = summary.costs
    if evaluation is None or evaluation.ideal is None or quality is None:
        raise InputError("the data set has no test links", where=str(data))
    return {
        "ideal": {name: dict(ranks.source_to_target) for name, ranks in evaluation.ideal.items()},
        "real": {name: _to_pairs(pairs) for name, pairs in (evaluation.real or {}).items()},
        "partition": _partition_figures(
            dataclasses.replace(quality, test_kept=evaluation.test_kept),
            {name: costs[name] for name in (*_PARTITION, "subgraphs")},
        ),
        "training": to_plain(costs["train"]),
    }


def _run_blocks(data: Path, settings: Settings) -> dict[str, Any]:
    """Train one model for each block, rank and match within blocks, and return the figures for a record."""
    from lab.blocks import BlockPairs, rank_within_blocks, train_blocks
    from largegnn.evaluation.metrics import summarise
    from largegnn.evaluation.pair_metrics import precision_recall_f1

    task = api.load(data, settings=settings.data).task
    if not len(task.test_links):
        raise InputError("the data set has no test links", where=str(data))
    division = api.divide(task, settings)
    device = choose_device(settings.device)
    options = settings.train
    meter = Meter()
    blocks = train_blocks(division.subgraphs, task.num_relations, options, device, derived_seed(settings.seed, "train"))
    seeds_from = settings.protocol.seeds_from
    collected = BlockPairs(task.free(seeds_from), task.num_source_entities, str(device))
    ranks = rank_within_blocks(collected.watch(blocks), task.test_links, device=device)
    usage = meter.read()
    known = task.held_out(seeds_from)
    # Blocks are trained while they are ranked, so the cost includes ranking, which is a small part.
    cost = Cost(
        round(usage.seconds, 3),
        round(usage.peak_memory_mb, 1),
        None if usage.peak_gpu_mb is None else round(usage.peak_gpu_mb, 1),
    )
    return {
        "ideal": {"cosine": dict(summarise(ranks).source_to_target), "csls": None},
        "real": {
            name: _to_pairs(precision_recall_f1(pairs[~are_among(pairs, known)], task.test_links))
            for name, pairs in collected.pairs().items()
        },
        "partition": _partition_figures(division.quality, division.costs),
        "training": to_plain(cost),
    }


def _to_pairs(figures: PairFigures) -> dict[str, Any]:
    """Select the figures of pairs that a record stores."""
    return {key: getattr(figures, key) for key in Pairs.model_fields}


def _partition_figures(quality: PartitionQuality, costs: Mapping[str, Cost]) -> dict[str, Any]:
    return {
        "train_kept": quality.train_kept,
        "test_kept": quality.test_kept,
        "mean_size": round(statistics.fmean(quality.sizes), 1),
        "seconds": round(sum(costs[name].seconds for name in _PARTITION), 3),
        "peak_memory_mb": round(max(cost.peak_memory_mb for cost in costs.values()), 1),
    }


def _folder_name(system: str) -> str:
    plain = system.lower().replace("w/o", "without")
    return "-".join("".join(letter if letter.isalnum() else " " for letter in plain).split())
