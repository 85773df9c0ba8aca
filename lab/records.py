"""Store measured results: one JSON file for a data set, one record for a system and a random seed.

In: `lab/results/<dataset>.json`, a list of records. Out: checked values, and their mean and spread over random seeds.
A record describes one finished run, on any machine:

    {"dataset": "EN_FR_15K_V1", "system": "LargeGNN", "random_seed": 0, "machine": "NVIDIA H200, 16 CPU cores",
     "settings": {"parts": 5, "cap": 7500, "dim": 128},
     "ideal": {"cosine": {"hits@1": 0.6, "hits@5": 0.8, "hits@10": 0.9, "mrr": 0.7}, "csls": null},
     "real": {"mutual_5nn": {"precision": 0.2, "recall": 0.6, "f1": 0.3, "pairs": 31500}},
     "partition": {"train_kept": 1.0, "test_kept": 0.95, "mean_size": 7500.0, "seconds": 0.2, "peak_memory_mb": 300.0},
     "training": {"seconds": 40.0, "peak_memory_mb": 900.0, "peak_gpu_mb": null},
     "origin": {"version": "0.1.0", "commit": "...", ...}}

`origin` (see `lab.origin`) describes the program, machine and data of the run; it is null in the oldest records, whose
version is 0.1.0 and whose commit is unknown. `ideal` ranks targets for sources; a scoring that was not measured is
null, and further scorings may follow. `real` is null if no pairs were accepted. `settings` holds the few settings that
distinguish runs; all runs of one system on one data set must have the same, or their mean would mix different systems.
Every value of `partition` and `training` may be null. `partition.seconds` is the time of merge, partition and landmarks
(the paper's "Time"), `training.seconds` that of the step `train`. A replaced record moves to the folder `superseded`
beside the files, with the reason.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from lab.lines import SUPERSEDED
from lab.origin import Origin, today
from largegnn.errors import InputError, StorageError
from largegnn.machine.atomic import write_text
from largegnn.machine.locks import hold
from largegnn.settings import StrictModel

__all__ = [
    "FIRST_VERSION",
    "Cost",
    "Pairs",
    "PartitionFigures",
    "ResultRecord",
    "Summary",
    "add_record",
    "made_by",
    "read_records",
    "read_results",
    "summarise_records",
    "supersede",
]

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Measure = Literal["hits@1", "hits@5", "hits@10", "mrr"]
_MEASURES: tuple[Measure, ...] = ("hits@1", "hits@5", "hits@10", "mrr")
FIRST_VERSION = "0.1.0"  # the version of records without an origin


class Pairs(StrictModel):
    """Pairs accepted by one selection, judged by the test links; precision is null where there are none."""

    precision: Share | None
    recall: Share | None
    f1: Share | None
    pairs: int = Field(ge=0)


class PartitionFigures(StrictModel):
    """Shares that a division keeps, and its cost."""

    train_kept: Share | None
    test_kept: Share | None
    mean_size: Amount | None
    seconds: Amount | None
    peak_memory_mb: Amount | None


class Cost(StrictModel):
    """The cost of training."""

    seconds: Amount | None
    peak_memory_mb: Amount | None
    peak_gpu_mb: Amount | None


class ResultRecord(StrictModel):
    """One finished run."""

    dataset: str = Field(min_length=1)
    system: str = Field(min_length=1)
    random_seed: int = Field(ge=0)
    machine: str = Field(min_length=1)
    settings: dict[str, str | int | float | bool]
    ideal: dict[str, dict[Measure, Share] | None]
    real: dict[str, Pairs] | None
    partition: PartitionFigures
    training: Cost
    origin: Origin | None = None

    @field_validator("ideal")
    @classmethod
    def _check_ideal(cls, ideal: dict[str, dict[Measure, float] | None]) -> dict[str, dict[Measure, float] | None]:
        for scoring in ("cosine", "csls"):
            if scoring not in ideal:
                raise ValueError(f"the scoring {scoring} is missing; null if it was not measured")
        for scoring, figures in ideal.items():
            if figures is not None and "hits@1" not in figures:
                raise ValueError(f"{scoring} needs hits@1, and of {', '.join(_MEASURES)} what was measured")
        return ideal

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if all(figures is None for figures in self.ideal.values()):
            raise ValueError("no scoring was measured")
        return self


@dataclass(frozen=True)
class Summary:
    """A figure over the runs that have it: mean, sample standard deviation (0 for one run), number of runs."""

    mean: float
    deviation: float
    runs: int


def read_results(folder: Path) -> list[ResultRecord]:
    """Read the records of all files of a folder; there are none if the folder does not exist."""
    return [record for file in sorted(folder.glob("*.json")) for record in read_records(file)]


def read_records(file: Path) -> list[ResultRecord]:
    """Read the records of one file; an invalid record is refused with file, place and reason."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError("the stored results cannot be read", where=str(file), found=str(error)) from None
    if not isinstance(content, list):
        raise InputError("stored results are a list of records", where=str(file), found=type(content).__name__)
    records = [_read_record(file, number, entry) for number, entry in enumerate(content, start=1)]
    _check_together(file, records)
    return records


def add_record(folder: Path, record: ResultRecord) -> None:
    """Add a record to the file of its data set, under a lock; the file is replaced at once and keeps its records."""
    file = folder / f"{record.dataset}.json"
    try:
        with hold(folder / ".lock", wait=True):
            records = [*(read_records(file) if file.exists() else []), record]
            _check_together(file, records)
            _write(file, [entry.model_dump() for entry in records])
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror or error}") from error


def supersede(folder: Path, dataset: str, system: str, reason: str) -> int:
    """Move the records of a system on a data set to `superseded`, with the reason and the date; none is deleted."""
    file = folder / f"{dataset}.json"
    archive = folder / SUPERSEDED / f"{dataset}.json"
    if not file.exists():
        return 0
    try:
        archive.parent.mkdir(exist_ok=True)
        with hold(folder / ".lock", wait=True):
            records = read_records(file)
            moved = [record for record in records if record.system == system]
            if moved:
                before = json.loads(archive.read_text(encoding="utf-8")) if archive.exists() else []
                note = {"superseded": today(), "reason": reason}
                _write(archive, [*before, *(record.model_dump() | note for record in moved)])
                _write(file, [record.model_dump() for record in records if record.system != system])
    except OSError as error:
        raise StorageError(f"cannot write {archive}: {error.strerror or error}") from error
    return len(moved)


def _write(file: Path, entries: Sequence[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    write_text(file, f"[\n{lines}\n]\n")


def summarise_records(
    records: Iterable[ResultRecord], figure: Callable[[ResultRecord], float | None]
) -> Summary | None:
    """Summarise a figure over runs; None if no run has it."""
    values = [value for record in records if (value := figure(record)) is not None]
    if not values:
        return None
    return Summary(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def made_by(runs: Sequence[ResultRecord]) -> str:
    """Name the versions that made the runs, each with its commits."""
    commits: dict[str, dict[str, None]] = {}
    for record in runs:
        origin = record.origin
        commit = "unknown"
        if origin is not None and origin.commit:
            commit = origin.commit[:8] + ("+" if origin.commit.endswith("+") else "")
        commits.setdefault(origin.version if origin else FIRST_VERSION, {})[commit] = None
    return "; ".join(
        f"version {version}, commit{'s' if len(names) > 1 else ''} {', '.join(names)}"
        for version, names in commits.items()
    )


def _check_together(file: Path, records: Sequence[ResultRecord]) -> None:
    """Refuse records of another data set, two records of one run, and one system with several settings."""
    seen: dict[tuple[str, int], int] = {}
    settings: dict[str, tuple[int, dict[str, Any]]] = {}
    for number, record in enumerate(records, start=1):
        where = f"{file}, record {number} ({record.system}, random seed {record.random_seed})"
        if record.dataset != file.stem:
            raise InputError("a record is in the file of another data set", where=where, found=record.dataset)
        first = seen.setdefault((record.system, record.random_seed), number)
        if first != number:
            raise InputError("a run is recorded twice", where=where, found=f"it is record {first} too")
        before, known = settings.setdefault(record.system, (number, record.settings))
        if known != record.settings:
            raise InputError(
                "two runs of one system were made with different settings, so they have no common mean",
                where=where,
                expected=f"the settings of record {before}: {json.dumps(known)}",
                found=json.dumps(record.settings),
                fix="move the old records to `superseded`: python -m lab reproduce --supersede REASON",
            )


def _read_record(file: Path, number: int, entry: Any) -> ResultRecord:
    try:
        return ResultRecord.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the record"
        name = entry.get("system", "no system") if isinstance(entry, dict) else type(entry).__name__
        raise InputError(
            "a stored result is not a valid record",
            where=f"{file}, record {number} ({name})",
            expected=f"{place}: {str(first['msg']).removeprefix('Value error, ')}",
            found=repr(first["input"])[:200],
            fix="see lab/records.py for the form of a record",
        ) from None
