"""Read and tabulate figures that depend on the number of subgraphs (the plots of the paper).

In: `lab/results/subgraphs.jsonl`, with a line for each division of a data set and the training on it, or for the memory
that the training needs. Out: checked records; means over random seeds; Markdown for `lab/measurements/results.md`.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError

from lab.lines import read_lines
from lab.origin import Origin
from lab.tables import markdown_table
from largegnn.errors import InputError
from largegnn.settings import StrictModel

__all__ = ["FIGURES", "METHOD_NAMES", "SubgraphRecord", "mean_rows", "read_subgraphs", "subgraph_section"]

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
METHOD_NAMES = {"csg": "CSG (METIS + landmarks)", "cps": "CPS", "sbp": "SBP"}
# Measure -> title of its table.
FIGURES = {
    "test_kept": "share of test links kept in one subgraph",
    "train_kept": "share of train links kept in one subgraph",
    "mean_size": "mean entities of a subgraph",
    "hits@1": "H@1, cosine, source to target",
    "peak_memory_mb": "peak memory of training, MB",
    "peak_gpu_mb": "peak GPU memory of training, MB",
}


class SubgraphRecord(StrictModel):
    """One division and the training on it; a value that was not measured is None."""

    model_config = ConfigDict(populate_by_name=True)

    key: str
    dataset: str = Field(min_length=1)
    method: Literal["csg", "cps", "sbp"]
    parts: int = Field(ge=1)
    random_seed: int = Field(ge=0)
    train_kept: Share | None = None
    test_kept: Share | None = None
    hits_1: Share | None = Field(default=None, alias="hits@1")
    peak_memory_mb: Amount | None = None
    peak_gpu_mb: Amount | None = None
    mean_size: Amount | None = None
    max_size: int | None = None
    origin: Origin


def read_subgraphs(file: Path) -> list[SubgraphRecord]:
    """Read the records of a file; an invalid record is refused with its place."""
    records: dict[str, SubgraphRecord] = {}
    for number, line in enumerate(read_lines(file), start=1):
        where = f"{file}, line {number}"
        try:
            record = SubgraphRecord.model_validate(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "the record"
            raise InputError(
                "a stored result is not a valid record",
                where=where,
                expected=f"{place}: {first['msg']}",
                found=repr(first["input"])[:200],
            ) from None
        if record.key in records:
            raise InputError("a division is recorded twice", where=where, found=record.key)
        records[record.key] = record
    return list(records.values())


def mean_rows(records: Sequence[SubgraphRecord], measure: str) -> list[dict[str, Any]]:
    """Group a measure by data set, method and number of parts: mean and sample deviation over random seeds."""
    values: dict[tuple[str, str, int], list[float]] = {}
    for record in records:
        value = record.model_dump(by_alias=True)[measure]
        if value is not None:
            values.setdefault((record.dataset, record.method, record.parts), []).append(value)
    return [
        {
            "dataset": dataset,
            "method": method,
            "parts": parts,
            "value": statistics.fmean(group),
            "spread": statistics.stdev(group) if len(group) > 1 else 0.0,
            "runs": len(group),
        }
        for (dataset, method, parts), group in sorted(values.items(), key=_sort_key)
    ]


def _sort_key(item: tuple[tuple[str, str, int], list[float]]) -> tuple[str, int, int]:
    """Sort by name of the data set, position of the method in `METHOD_NAMES`, and number of parts."""
    (dataset, method, parts), _ = item
    return dataset, list(METHOD_NAMES).index(method), parts


def subgraph_section(records: Sequence[SubgraphRecord]) -> str:
    """Write the origin of the figures, a table of each figure, and the figures that were not measured."""
    blocks = ["\n".join(f"- Recorded by {made}: {count} runs." for made, count in sorted(_makers(records).items()))]
    for measure, title in FIGURES.items():
        rows = mean_rows(records, measure)
        if not rows:
            blocks.append(f"{title[0].upper()}{title[1:]}, against the number of subgraphs: not run.")
            continue
        row_of = {(row["dataset"], row["method"], row["parts"]): row for row in rows}
        parts = sorted({row["parts"] for row in rows})
        lines = [
            [dataset, METHOD_NAMES[method], *(_shown(row_of.get((dataset, method, count)), measure) for count in parts)]
            for dataset, method in dict.fromkeys((row["dataset"], row["method"]) for row in rows)
        ]
        table = markdown_table(["data set", "method", *(f"n = {count}" for count in parts)], lines)
        runs = sorted({row["runs"] for row in rows})
        over = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
        blocks.append(f"{title[0].upper()}{title[1:]}, mean over random seeds (runs: {over}):\n\n{table}")
    return "\n\n".join(blocks)


def _makers(records: Sequence[SubgraphRecord]) -> Counter[str]:
    """Count the records that each version and machine made."""
    made: Counter[str] = Counter()
    for record in records:
        origin, machine = record.origin, record.origin.machine
        where = f"{machine.cores} CPU cores" + (f" and {machine.gpu}" if machine.gpu else "")
        made[f"version {origin.version}, commit {(origin.commit or 'unknown')[:8]}, on {where}"] += 1
    return made


def _shown(row: dict[str, Any] | None, measure: str) -> str:
    if row is None:
        return "–"
    if measure == "mean_size" or measure.endswith("_mb"):
        return f"{row['value']:,.0f}"
    value, spread = (f"{row[name]:.3f}".removeprefix("0") for name in ("value", "spread"))
    return f"{value} ± {spread}" if measure == "hits@1" and row["runs"] > 1 else value
