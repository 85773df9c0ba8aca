"""What depends on the number of subgraphs (the paper's figures): stored records, and a table of them.

In: `docs/results/subgraphs.json`, a list of records, one for a division of a data set, with what training on it gave
where it was measured. Out: checked values; means over random seeds; the Markdown of `docs/measurements/results.md`.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from largegnn.errors import InputError
from largegnn.paper.origin import Origin
from largegnn.paper.records import FIRST_VERSION
from largegnn.paper.tables import markdown_table
from largegnn.settings import StrictModel

__all__ = ["FIGURES", "METHOD_NAMES", "SubgraphRecord", "mean_rows", "read_subgraphs", "subgraph_section"]

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
METHOD_NAMES = {"csg": "CSG (METIS + landmarks)", "cps": "CPS", "sbp": "SBP"}
# Measure: (name of the picture, what it shows).
FIGURES = {
    "test_kept": ("recall", "share of test links kept in one subgraph"),
    "train_kept": ("train_recall", "share of train links kept in one subgraph"),
    "mean_size": ("size", "mean entities of a subgraph"),
    "hits@1": ("hits", "H@1, cosine, source to target"),
    "peak_memory_mb": ("memory", "peak memory of training, MB"),
    "peak_gpu_mb": ("gpu_memory", "peak GPU memory of training, MB"),
}


class SubgraphRecord(StrictModel):
    """One division, and what training on it gave where that was measured."""

    model_config = ConfigDict(populate_by_name=True)

    dataset: str = Field(min_length=1)
    method: Literal["csg", "cps", "sbp"]
    parts: int = Field(ge=1)
    random_seed: int = Field(ge=0)
    train_kept: Share
    test_kept: Share
    hits_1: Share | None = Field(alias="hits@1")
    peak_memory_mb: Amount | None
    peak_gpu_mb: Amount | None = None
    mean_size: Amount | None = None
    max_size: int | None = None
    machine: str | None = None
    origin: Origin | None = None


def read_subgraphs(file: Path) -> list[SubgraphRecord]:
    """The records of a file; a wrong one is refused with its place."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InputError("the stored results cannot be read", where=str(file), found=str(error)) from None
    if not isinstance(content, list):
        raise InputError("stored results are a list of records", where=str(file), found=type(content).__name__)
    records: dict[tuple[str, str, int, int], SubgraphRecord] = {}
    for number, entry in enumerate(content, start=1):
        where = f"{file}, record {number}"
        try:
            record = SubgraphRecord.model_validate(entry)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the record"
            raise InputError(
                "a stored result is not what a record has to be",
                where=where,
                expected=f"{place}: {first['msg']}",
                found=repr(first["input"])[:200],
            ) from None
        key = (record.dataset, record.method, record.parts, record.random_seed)
        if key in records:
            raise InputError("a division is recorded twice", where=where, found=", ".join(map(str, key)))
        records[key] = record
    return list(records.values())


def mean_rows(records: Sequence[SubgraphRecord], measure: str) -> list[dict[str, Any]]:
    """A measure by data set, method and number of parts: the mean over random seeds, of those that have it."""
    values: dict[tuple[str, str, int], list[float]] = {}
    for record in records:
        value = record.model_dump(by_alias=True)[measure]
        if value is not None:
            values.setdefault((record.dataset, record.method, record.parts), []).append(value)
    return [
        {"dataset": dataset, "method": method, "parts": parts, "value": statistics.fmean(found), "runs": len(found)}
        for (dataset, method, parts), found in values.items()
    ]


def subgraph_section(records: Sequence[SubgraphRecord]) -> str:
    """The pictures that can be drawn, a table of their figures, what was not run, and what is not known of the runs."""
    blocks = []
    older = [record for record in records if record.origin is None]
    if older:
        unknown = sum(record.machine is None for record in older)
        blocks.append(
            f"Recorded by version {FIRST_VERSION}, commit unknown: {len(older)} of {len(records)} divisions; "
            f"the machine of {unknown} was not recorded."
        )
    for measure, (name, title) in FIGURES.items():
        rows = mean_rows(records, measure)
        if not rows:
            blocks.append(f"{title[0].upper()}{title[1:]}, against the number of subgraphs: not run.")
            continue
        blocks.append(f"![{title} against the number of subgraphs](../figures/{name}.svg)")
        found = {(row["dataset"], row["method"], row["parts"]): row["value"] for row in rows}
        parts = sorted({row["parts"] for row in rows})
        lines = [
            [dataset, METHOD_NAMES[method], *(_shown(found.get((dataset, method, count)), measure) for count in parts)]
            for dataset, method in dict.fromkeys((row["dataset"], row["method"]) for row in rows)
        ]
        table = markdown_table(["data set", "method", *(f"n = {count}" for count in parts)], lines)
        runs = sorted({row["runs"] for row in rows})
        over = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        blocks.append(f"{title[0].upper()}{title[1:]}, mean over random seeds (runs: {over}):\n\n{table}")
    return "\n\n".join(blocks)


def _shown(value: float | None, measure: str) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if measure == "mean_size" or measure.endswith("_mb") else f"{value:.3f}".removeprefix("0")
