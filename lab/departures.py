"""Compare the plain setting with the paper's, setting by setting: a table of the results page.

In: the systems. Out: Markdown, a row for each setting, a column for each group of data sets that have records and the
same settings. Values that differ from the paper are bold; settings that neither the paper nor the papers it cites give
are marked. The last column names a system that differs from the plain one only by following the paper in this setting,
so that each departure can be judged separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lab.records import ResultRecord
from lab.systems import DATASETS, PLAIN, PRINTED, STEADY, WIDE, PaperSystem, Table
from lab.tables import markdown_table
from largegnn.settings import flat_settings

__all__ = ["departures_section"]

OPEN = "not named"
_ALL = "all of its subgraph"


def _count(value: Any) -> str:
    return f"{value:,}"


@dataclass(frozen=True)
class _Choice:
    """A setting: its key, the paper's value (or values by table), the text of a value, the system that follows it."""

    title: str
    key: str
    paper: str | dict[str, str]
    text: Callable[[Any], str] = _count
    judged_by: str = "–"


_CHOICES = (
    _Choice("dimension", "train.dim", "128", judged_by=WIDE),
    _Choice("subgraphs", "division.parts", {"15k": "5", "100k": "10", "1m": "40"}),
    _Choice("entities of a subgraph", "landmarks.cap", {"15k": "7,500", "100k": "25,000", "1m": "90,000"}),
    _Choice("seeds of a step", "train.batch_size", "1,024"),
    _Choice("negatives of a seed", "train.negatives", _ALL, lambda value: _count(value) if value else _ALL),
    _Choice("learning rate", "train.learning_rate", "0.005"),
    _Choice("its course", "train.schedule", OPEN, str, STEADY),
    _Choice("dropout", "train.dropout", "0.3"),
    _Choice("epochs", "train.epochs", OPEN),
    _Choice("divisions", "train.repartition_every", "one", lambda value: f"one in {value} epochs" if value else "one"),
    _Choice("mean over subgraphs", "integrate.method", "`plain_average`", lambda value: f"`{value}`"),
    _Choice(
        "CNS",
        "train.losses.cross_subgraph",
        "printed form",
        lambda value: f"{value}, our form" if value else "none",
        PRINTED,
    ),
    _Choice("ER", "train.losses.reconstruction", f"a sum, weight {OPEN}", lambda value: f"a mean, weight {value:g}"),
)


def departures_section(systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> str:
    """Write a table of every setting of the plain rows and of the paper."""
    plain = {system.dataset: system for system in systems if system.name == PLAIN}
    known = [name for name in DATASETS if name in plain and any(record.dataset == name for record in records)]
    columns: dict[tuple[str, ...], list[str]] = {}
    for name in known:
        columns.setdefault(tuple(_cell(choice, plain[name]) for choice in _CHOICES), []).append(name)
    rows = []
    for choice, *cells in zip(_CHOICES, *columns, strict=True):
        paper = choice.paper if isinstance(choice.paper, str) else " / ".join(choice.paper.values())
        rows.append([f"{choice.title}, `{choice.key}`", paper, *cells, choice.judged_by])
    return markdown_table(["setting", "the paper", *map(", ".join, columns.values()), "the paper's way"], rows)


def _cell(choice: _Choice, system: PaperSystem) -> str:
    ours = choice.text(flat_settings(system.settings.model_dump())[choice.key])
    paper = choice.paper if isinstance(choice.paper, str) else choice.paper[_size(system)]
    return ours if ours == paper or OPEN in paper else f"**{ours}**"


def _size(system: PaperSystem) -> Table:
    """Return the table to which the size of a data set belongs."""
    return next(table for table in system.tables if table != "ablation")
