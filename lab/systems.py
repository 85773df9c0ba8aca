"""Read the systems that the paper compares, with the paper's figures, from the files of `lab/configs`.

In: a folder of TOML files, one for a system and a data set. A file holds the settings of the run like any settings
file, a table `[system]` that names the system, and, if the paper prints figures of it, a table `[paper]` with these
figures. Out: checked values, in the order of the paper's tables.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from largegnn.errors import InputError
from largegnn.settings import PRESETS, Section, Settings, TrainSettings, resolve

__all__ = [
    "BEST",
    "DATASETS",
    "PLAIN",
    "PRINTED",
    "STEADY",
    "SYSTEMS",
    "TABLES",
    "WIDE",
    "DatasetNote",
    "PaperSystem",
    "Table",
    "read_systems",
    "short_settings",
]

Table = Literal["15k", "100k", "1m", "ablation"]
TABLES: tuple[Table, ...] = ("15k", "100k", "1m", "ablation")
PLAIN, BEST, PRINTED = "LargeGNN", "LargeGNN (best)", "LargeGNN, printed CNS"
# Each of these systems removes one departure of the plain setting: small dimension at 1M, falling learning rate.
WIDE, STEADY = "LargeGNN, d = 128", "LargeGNN, constant rate"
SYSTEMS = (
    "LargeEA",
    "LIME",
    "LargeGNN (CPS)",
    "LargeGNN (SBP)",
    "LargeGNN w/o CLG",
    PLAIN,
    WIDE,
    "LargeGNN w/o CNS",
    PRINTED,
    STEADY,
    "LargeGNN w/o ER",
    "LargeGNN w/o both",
    BEST,
)
Positive = Field(None, gt=0, allow_inf_nan=False)
Share = Field(None, ge=0, le=1)


@dataclass(frozen=True)
class DatasetNote:
    """A data set: its title, and why the paper's figures and ours cannot be compared directly."""

    title: str
    note: str | None
    is_absent: bool = False  # the note applies only while there is no run on this data set


_NOT_HERE = "not available where these figures were made; the file is ready for whoever has the data"
DATASETS: dict[str, DatasetNote] = {
    "EN_FR_15K_V1": DatasetNote("EN-FR-15K: OpenEA EN_FR_15K_V1, fold 1", None),
    "EN_DE_15K_V1": DatasetNote(
        "EN-DE-15K: OpenEA EN_DE_15K_V1, fold 1",
        "graphs and test links are OpenEA's; the train and valid links used here were inferred, about 98 % are right",
    ),
    "EN_FR_100K_V1": DatasetNote("EN-FR-100K: OpenEA EN_FR_100K_V1", _NOT_HERE, True),
    "EN_DE_100K_V1": DatasetNote("EN-DE-100K: OpenEA EN_DE_100K_V1", _NOT_HERE, True),
    "ContEA_FR_EN": DatasetNote(
        "ContEA_FR_EN, in the place of the 100K sets",
        "real DBpedia, but other entities, more relations, and most entities have no counterpart: "
        "systems can be compared with each other, not with the paper",
    ),
    "DBpedia1M_EN_FR": DatasetNote("EN-FR-1M: DBpedia1M EN-FR", _NOT_HERE, True),
    "DBpedia1M_EN_DE": DatasetNote("EN-DE-1M: DBpedia1M EN-DE", _NOT_HERE, True),
    "DEBIAN_FILES_1M": DatasetNote(
        "DEBIAN_FILES_1M, in the place of DBpedia1M",
        "two snapshots of one project, so easier than two DBpedias: good for time, memory and system against system, "
        "never against the paper's figures",
    ),
    "dbpedia1m": DatasetNote(
        "generated `dbpedia1m`, in the place of DBpedia1M",
        "synthetic, with the counts of DBpedia1M EN-FR: its difficulty was chosen, so it does not stand for DBpedia",
    ),
}


class _System(Section):
    """The table `[system]`."""

    name: Literal[SYSTEMS]  # type: ignore[valid-type]
    dataset: str = Field(min_length=1, pattern=r"^[A-Za-z0-9_.-]+$")
    tables: list[Table] = Field(min_length=1)
    training: Literal["shared", "blocks"]
    stands_in_for: list[str] = Field(default_factory=list)


class _Paper(Section):
    """The table `[paper]`: the figures that the paper prints."""

    hits_1: float | None = Field(None, alias="hits@1", ge=0, le=1)
    hits_5: float | None = Field(None, alias="hits@5", ge=0, le=1)
    mrr: float | None = Share
    precision: float | None = Share
    recall: float | None = Share
    f1: float | None = Share
    train_kept: float | None = Share
    test_kept: float | None = Share
    mean_size: float | None = Positive
    partition_seconds: float | None = Positive
    memory_mb: float | None = Positive


@dataclass(frozen=True)
class PaperSystem:
    """One system on one data set: how to run it, and the paper's figures by name (empty where it has none)."""

    name: str
    dataset: str
    tables: tuple[Table, ...]
    training: Literal["shared", "blocks"]
    stands_in_for: tuple[str, ...]
    paper: dict[str, float]
    settings: Settings


def read_systems(folder: Path) -> list[PaperSystem]:
    """Read all files below a folder, in the order of the paper's tables; two files for one system are refused."""
    files = sorted(folder.rglob("*.toml"))
    if not files:
        raise InputError(
            "there are no files of the paper's systems",
            where=str(folder),
            expected="the folder lab/configs of the project",
            fix="run in a checkout of the project, or name the folder with --configs",
        )
    file_of: dict[tuple[str, str], Path] = {}
    systems = []
    for file in files:
        system = _read_file(file)
        first = file_of.setdefault((system.dataset, system.name), file)
        if first != file:
            raise InputError("two files describe one system on one data set", where=str(file), found=str(first))
        systems.append(system)
    known = list(DATASETS)
    return sorted(
        systems,
        key=lambda system: (
            known.index(system.dataset) if system.dataset in known else len(known),
            system.dataset,
            SYSTEMS.index(system.name),
        ),
    )


def short_settings(system: PaperSystem) -> dict[str, str | int | float | bool]:
    """Return the settings that distinguish runs, for a record."""
    settings = system.settings
    division, landmarks, train = settings.division, settings.landmarks, settings.train
    short: dict[str, str | int | float | bool] = {
        "training": system.training,
        "seeds_from": settings.protocol.seeds_from,
        "partitioner": division.partitioner,
        "parts": division.parts,
    }
    if landmarks.enabled:
        short["cap"] = landmarks.cap
    short |= {name: getattr(train, name) for name in ("dim", "epochs", "batch_size", "negatives")}
    if train.scale != TrainSettings().scale:
        short["scale"] = train.scale
    if train.losses.get("cross_subgraph_printed"):
        short["printed_cross_weight"] = train.losses["cross_subgraph_printed"]
    # These keys are the names in stored records.
    short["cross_weight"] = train.losses["cross_subgraph"]
    short["reconstruction_weight"] = train.losses["reconstruction"]
    short["refresh_every"] = train.repartition_every
    if train.schedule != TrainSettings().schedule:
        short["schedule"] = train.schedule
    return short if system.training == "blocks" else short | {"integrate": settings.integrate.method}


def _read_file(file: Path) -> PaperSystem:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError("the file of a system cannot be read", where=str(file), found=str(error)) from None
    if "system" not in content:
        raise InputError("the file does not name its system", where=str(file), expected="a table [system]")
    try:
        system = resolve(_System, {}, values=content.pop("system"))
        paper = resolve(_Paper, {}, values=content.pop("paper", {}))
        settings = resolve(Settings, PRESETS, values=content)
    except InputError as error:
        raise InputError(error.problem, expected=error.expected, found=error.found, where=str(file)) from None
    other_losses = {name: weight for name, weight in settings.train.losses.items() if name != "alignment"}
    if system.training == "blocks" and any(other_losses.values()):
        raise InputError(
            "models of single blocks have no losses across them",
            where=str(file),
            expected="train.losses.alignment alone above 0 with training = 'blocks'",
        )
    return PaperSystem(
        name=system.name,
        dataset=system.dataset,
        tables=tuple(system.tables),
        training=system.training,
        stands_in_for=tuple(system.stands_in_for),
        paper={key: float(value) for key, value in paper.model_dump(by_alias=True).items() if value is not None},
        settings=settings,
    )
