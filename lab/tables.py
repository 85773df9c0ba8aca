"""Compare stored results with the paper's figures, as rows of plain values and as Markdown.

In: the systems with the paper's figures, and the records of finished runs. Out: for each table of the paper one row for
each system and data set, with the paper's figure, ours (mean, deviation, number of runs) and the difference; the rows
as Markdown, and the sections of `lab/measurements/results.md` between `<!-- table:NAME -->` and `<!-- /table -->`.
A difference is stated only if data and protocol are those of the paper; otherwise a note says why not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from lab.records import ResultRecord, Summary, made_by, summarise_records
from lab.systems import BEST, DATASETS, PLAIN, TABLES, PaperSystem, Table, short_settings
from largegnn.errors import InputError

__all__ = [
    "Cell",
    "Row",
    "fill_page",
    "make_rows",
    "page_sections",
    "rows_as_json",
    "scoring_section",
    "summary_text",
    "table_markdown",
]

NOT_RUN = "not run"
SCORINGS = ("cosine", "csls", "transport", "csls+rules", "transport+rules")


@dataclass(frozen=True)
class _Figure:
    """A column: key, title, function that reads it from a record, key in the paper, whether a difference is stated."""

    key: str
    title: str
    ours: Callable[[ResultRecord], float | None]
    paper: str | None = None
    compared: bool = False
    form: Literal["share", "number"] = "share"


@dataclass(frozen=True)
class Cell:
    """One figure of one row; `difference` is our mean minus the paper's figure, or None if it must not be stated."""

    paper: float | None
    ours: Summary | None
    difference: float | None


@dataclass(frozen=True)
class Row:
    """A system on a data set."""

    dataset: str
    system: str
    runs: int
    cells: dict[str, Cell]
    other_settings: tuple[str, ...] = ()  # settings of the runs that differ from those in the system's file now
    made_by: str = ""  # the versions that made the runs


def _ideal(scoring: str, measure: Literal["hits@1", "hits@5", "mrr"]) -> Callable[[ResultRecord], float | None]:
    return lambda record: (record.ideal[scoring] or {}).get(measure)


def _real(decision: str, measure: str) -> Callable[[ResultRecord], float | None]:
    def read(record: ResultRecord) -> float | None:
        pairs = (record.real or {}).get(decision)
        value: float | None = getattr(pairs, measure) if pairs is not None else None
        return value

    return read


_HITS = _Figure("hits@1", "H@1", _ideal("cosine", "hits@1"), "hits@1", compared=True)
_CSLS = _Figure("csls_hits@1", "CSLS H@1", _ideal("csls", "hits@1"))
_IDEAL = (_HITS, _CSLS, _Figure("csls_mrr", "CSLS MRR", _ideal("csls", "mrr")))
_DIVISION = (
    _Figure("train_kept", "train", lambda record: record.partition.train_kept, "train_kept", compared=True),
    _Figure("test_kept", "test", lambda record: record.partition.test_kept, "test_kept", compared=True),
    _Figure("mean_size", "mean size", lambda record: record.partition.mean_size, "mean_size", form="number"),
    _Figure(
        "partition_seconds", "seconds", lambda record: record.partition.seconds, "partition_seconds", form="number"
    ),
)
_LARGE_IDEAL = (
    _Figure("mrr", "MRR", _ideal("cosine", "mrr"), "mrr", compared=True),
    _Figure("hits@5", "H@5", _ideal("cosine", "hits@5"), "hits@5", compared=True),
    _HITS,
    _CSLS,
)
# The paper's precision, and therefore its F1, comes from an error in its code: no difference is stated.
_REAL = (
    _Figure("precision", "P", _real("mutual_5nn", "precision"), "precision"),
    _Figure("recall", "R", _real("mutual_5nn", "recall"), "recall", compared=True),
    _Figure("f1", "F1", _real("mutual_5nn", "f1"), "f1"),
    _Figure("top1_precision", "top-1 P", _real("csls_mutual_top1", "precision")),
    _Figure("top1_recall", "top-1 R", _real("csls_mutual_top1", "recall")),
    _Figure("top1_f1", "top-1 F1", _real("csls_mutual_top1", "f1")),
)
_PARTS: dict[Table, dict[str, tuple[_Figure, ...]]] = {
    "15k": {"Ideal setting": _IDEAL, "Links kept in one subgraph, sizes, partition": _DIVISION},
    "100k": {
        "Ideal setting": _IDEAL,
        "Real setting": _REAL,
        "Links kept in one subgraph, sizes, partition": _DIVISION,
    },
    "1m": {
        "Ideal setting": _LARGE_IDEAL,
        "Real setting": _REAL,
        "Links kept in one subgraph, sizes, partition": _DIVISION,
    },
    "ablation": {"Ideal setting": (_HITS, _CSLS)},
}
_IN_BLOCKS = (
    "LargeEA, LIME: the code behind their rows in the paper was never released. Here: our encoder and alignment loss "
    "in each block, one model for each, cosine, candidates are the test targets of the block, a split link is a miss."
)
_SEEDS = (
    "CPS, SBP, LargeEA, LIME: partitioned with the true seeds; in the authors' code with the first 30 % of all links, "
    "so the paper's shares of links kept, and what follows from them, are not of the same division."
)
_NOTES: dict[Table, tuple[str, ...]] = {
    "15k": (
        _IN_BLOCKS,
        _SEEDS,
        "In the authors' code the epoch is chosen on the test links; ours is fixed beforehand.",
        "Seconds are those of merge, partition and landmarks, each on its own machine: no difference is stated.",
    ),
    "100k": (
        _IN_BLOCKS,
        _SEEDS,
        "Real setting: mutual 5-NN by cosine as in the paper's 1M tables; top-1: mutual, by CSLS.",
    ),
    "1m": (
        _IN_BLOCKS,
        "LargeEA, LIME: pairs are mutual within a block, all blocks together.",
        "Real setting: mutual 5-NN by cosine, as the paper; top-1: mutual, by CSLS. In the authors' code precision is "
        "computed with one direction not transposed, so that most false pairs vanish: no difference for P and F1.",
        "Replacements have a smaller dimension than the paper's, but for `d = 128` (see the plain setting).",
    ),
    "ablation": (
        "In the authors' code both losses are commented out: it trains what the paper calls `w/o both`.",
        "LargeGNN has our CNS, which also pulls the input rows of a seed together; `printed CNS` has the paper's form, "
        "which only pushes. `w/o CNS` removes both terms of ours.",
        "`constant rate` keeps the learning rate, which falls along a cosine in the plain setting.",
    ),
}


def make_rows(systems: Sequence[PaperSystem], records: Sequence[ResultRecord], table: Table) -> list[Row]:
    """Make one row for each system of a table on each of its data sets."""
    figures = {figure.key: figure for part in _PARTS[table].values() for figure in part}
    rows = []
    for system in (system for system in systems if table in system.tables):
        runs = [record for record in records if (record.dataset, record.system) == (system.dataset, system.name)]
        cells = {key: _cell(figure, system, runs) for key, figure in figures.items()}
        rows.append(Row(system.dataset, system.name, len(runs), cells, _other_settings(system, runs), made_by(runs)))
    return rows


def rows_as_json(rows: Sequence[Row], table: Table) -> dict[str, Any]:
    """Return the rows of a table as plain values, with its notes."""
    notes = {name: _note(name, rows) for name in dict.fromkeys(row.dataset for row in rows)}
    return {
        "table": table,
        "rows": [asdict(row) for row in rows],
        "notes": list(_NOTES[table]),
        "datasets": {name: note for name, note in notes.items() if note is not None},
    }


def table_markdown(rows: Sequence[Row], table: Table) -> str:
    """Write the rows of a table as Markdown: one block for each data set, then the notes."""
    blocks = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        dataset_rows = [row for row in rows if row.dataset == dataset]
        note = _note(dataset, dataset_rows)
        title = DATASETS[dataset].title if dataset in DATASETS else dataset
        blocks.append(f"**{title}**" + (f" ({note})" if note else ""))
        for name, figures in _PARTS[table].items():
            # The real setting is omitted if neither the paper nor our runs have figures for it.
            if figures is not _REAL or any(cell for row in dataset_rows for cell in _known(row, figures)):
                blocks.append(f"{name}:\n\n" + _grid(dataset_rows, figures))
        blocks += _origins(dataset_rows)
    return "\n\n".join([*blocks, "\n".join(f"- {note}" for note in _NOTES[table])])


def page_sections(systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> dict[str, str]:
    """Return the sections of the results page that come from records."""
    sections = {str(table): table_markdown(make_rows(systems, records, table), table) for table in TABLES}
    return sections | {"best": _best(systems, records), "cost": _costs(systems, records)}


def fill_page(page: str, sections: Mapping[str, str]) -> str:
    """Replace the text between the marks of a page; marks and sections must correspond one to one."""
    marks = re.findall(r"<!-- table:(\S+) -->\n.*?<!-- /table -->", page, flags=re.DOTALL)
    if sorted(marks) != sorted(sections):
        raise InputError(
            "the marks of the page do not correspond to the tables",
            expected=f"<!-- table:NAME --> ... <!-- /table --> once for each of {', '.join(sorted(sections))}",
            found=", ".join(sorted(marks)) or "no marks",
        )
    return re.sub(
        r"<!-- table:(\S+) -->\n.*?<!-- /table -->",
        lambda mark: f"<!-- table:{mark[1]} -->\n{sections[mark[1]]}\n<!-- /table -->",
        page,
        flags=re.DOTALL,
    )


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _note(dataset: str, rows: Sequence[Row]) -> str | None:
    """Return the note of a data set, if it applies."""
    entry = DATASETS.get(dataset)
    if entry is None or (entry.is_absent and any(row.runs for row in rows if row.dataset == dataset)):
        return None
    return entry.note


def _cell(figure: _Figure, system: PaperSystem, runs: Sequence[ResultRecord]) -> Cell:
    paper = None if figure.paper is None else system.paper.get(figure.paper)
    ours = summarise_records(runs, figure.ours)
    is_stated = figure.compared and paper is not None and ours is not None and not system.stands_in_for
    return Cell(paper, ours, ours.mean - paper if is_stated and ours is not None and paper is not None else None)


def _other_settings(system: PaperSystem, runs: Sequence[ResultRecord]) -> tuple[str, ...]:
    """List the settings that differ between the runs, which agree, and the system's file now."""
    if not runs:
        return ()
    now = short_settings(system)
    then = runs[0].settings
    names = [name for name in dict.fromkeys([*then, *now]) if then.get(name) != now.get(name)]
    return tuple(f"{name} {then.get(name, 'default')}, now {now.get(name, 'default')}" for name in names)


def _origins(rows: Sequence[Row]) -> list[str]:
    """State which versions made the runs of a data set, and which settings have changed; systems are grouped."""
    systems_by_text: dict[str, list[str]] = {}
    for row in rows:
        if row.runs:
            changes = f"; with settings that the file no longer has: {'; '.join(row.other_settings)}"
            text = f"{row.made_by}{changes if row.other_settings else ''}"
            systems_by_text.setdefault(text, []).append(row.system)
    lines = [f"- Recorded by {text}: {', '.join(names)}." for text, names in systems_by_text.items()]
    return ["\n".join(lines)] if lines else []


def _known(row: Row, figures: Sequence[_Figure]) -> list[Cell]:
    cells = [row.cells[figure.key] for figure in figures]
    return [cell for cell in cells if cell.paper is not None or cell.ours is not None]


def _grid(rows: Sequence[Row], figures: Sequence[_Figure]) -> str:
    columns = ["system"]
    lines = [[row.system] for row in rows]
    for figure in figures:
        has_paper = any(row.cells[figure.key].paper is not None for row in rows)
        columns += [f"{figure.title} paper", f"{figure.title} ours"] if has_paper else [figure.title]
        columns += ["difference"] if has_paper and figure.compared else []
        for line, row in zip(lines, rows, strict=True):
            cell = row.cells[figure.key]
            line += [_value(cell.paper, figure.form)] if has_paper else []
            line += [summary_text(cell.ours, figure.form) if row.runs else NOT_RUN]
            line += [_signed(cell.difference)] if has_paper and figure.compared else []
    for line, row in zip(lines, rows, strict=True):
        line.append(str(row.runs))
    return markdown_table([*columns, "runs"], lines)


def _best(systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> str:
    """Tabulate the plain and the best setting side by side, for every data set that has both."""
    top1 = _Figure("top1_f1", "mutual top-1 F1", _real("csls_mutual_top1", "f1"))
    figures = (_HITS, *_IDEAL[1:], top1)
    columns = ["data set", *(f"{figure.title} {kind}" for figure in figures for kind in ("plain", "best")), "runs"]
    rows = []
    for dataset in dict.fromkeys(system.dataset for system in systems if system.name == BEST):
        runs = {
            name: [record for record in records if (record.dataset, record.system) == (dataset, name)]
            for name in (PLAIN, BEST)
        }
        if dataset in DATASETS and DATASETS[dataset].is_absent and not any(runs.values()):
            continue
        cells = [
            summary_text(summarise_records(runs[name], figure.ours), figure.form) if runs[name] else NOT_RUN
            for figure in figures
            for name in (PLAIN, BEST)
        ]
        rows.append([dataset, *cells, f"{len(runs[PLAIN])} / {len(runs[BEST])}"])
    return markdown_table(columns, rows)


def _costs(systems: Sequence[PaperSystem], records: Sequence[ResultRecord]) -> str:
    """Tabulate the costs of the runs; each machine has rows of its own."""
    figures: tuple[Callable[[ResultRecord], float | None], ...] = (
        lambda record: record.partition.seconds,
        lambda record: record.partition.peak_memory_mb,
        lambda record: record.training.seconds,
        lambda record: record.training.peak_memory_mb,
        lambda record: record.training.peak_gpu_mb,
    )
    rows = []
    for system in systems:
        runs = [record for record in records if (record.dataset, record.system) == (system.dataset, system.name)]
        for machine in dict.fromkeys(record.machine for record in runs):
            machine_runs = [record for record in runs if record.machine == machine]
            cells = [summary_text(summarise_records(machine_runs, figure), "number") for figure in figures]
            paper = _value(system.paper.get("memory_mb"), "number")
            rows.append([system.dataset, system.name, machine, *cells, paper, str(len(machine_runs))])
    columns = ("data set", "system", "machine", "partition s", "partition MB", "training s", "training MB", "GPU MB")
    return markdown_table([*columns, "paper MB", "runs"], rows) if rows else f"{NOT_RUN.capitalize()}."


def summary_text(summary: Summary | None, form: str = "share") -> str:
    """Format mean and deviation for a table."""
    if summary is None:
        return "–"
    spread = f" ± {_value(summary.deviation, form)}" if summary.runs > 1 else ""
    return _value(summary.mean, form) + spread


def _value(value: float | None, form: str) -> str:
    if value is None:
        return "–"
    if form == "number":
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 or not value else f"{value:.2f}"
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{'-' if value < 0 else '+'}{_value(abs(value), 'share')}"


def scoring_section(records: Sequence[ResultRecord]) -> str:
    """Tabulate H@1 of the test links by each scoring."""
    rows = []
    for dataset in DATASETS:
        for system in (PLAIN, BEST):
            runs = [record for record in records if (record.dataset, record.system) == (dataset, system)]
            if runs:
                cells = [summary_text(summarise_records(runs, _hits_by(name))) for name in SCORINGS]
                rows.append([dataset, system, *cells, str(len(runs))])
    titles = [name.replace("+", ", ").replace("csls", "CSLS") for name in SCORINGS]
    return markdown_table(["data set", "system", *titles, "runs"], rows)


def _hits_by(scoring: str) -> Callable[[ResultRecord], float | None]:
    def hits(record: ResultRecord) -> float | None:
        figures = record.ideal.get(scoring)
        return None if figures is None else figures["hits@1"]

    return hits
