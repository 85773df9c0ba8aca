"""Define the commands of the laboratory: `python -m lab COMMAND`, called from the root of the repository.

- `reproduce` makes the missing runs of the paper's tables, and shows the paper's figures beside ours
- `tables` writes the page of results and every other page that shows records
- `words` lists words that the project no longer uses
- `supersede` moves records that are replaced to `lab/results/superseded`
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lab import CONFIGS, RESULTS, ROOT
from lab.systems import TABLES, PaperSystem, Table, read_systems
from largegnn.cli import options
from largegnn.errors import InputError, LargeGNNError, StorageError

if TYPE_CHECKING:
    from lab.records import ResultRecord

__all__ = ["app", "main"]

_log = logging.getLogger("largegnn.lab")


@click.group()
def app() -> None:
    """The laboratory of LargeGNN."""


@app.command("reproduce")
@click.option("--table", multiple=True, help=f"One of {', '.join(TABLES)}. May be repeated. Default: all.")
@click.option("--data", type=options.PATH, default=Path("data"), help="Folder of the data set folders.")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, help="Runs of each system, with random seeds 0, 1, ..."
)
@click.option("--dataset", multiple=True, help="Only this data set. May be repeated.")
@click.option("--system", multiple=True, help="Only this system. May be repeated.")
@click.option("--work", type=options.PATH, default=Path("runs/reproduce"), help="Folder for runs, records and tables.")
@click.option("--results", type=options.PATH, help="Folder of records. Runs that have a record are not repeated.")
@click.option("--configs", type=options.PATH, default=CONFIGS, help="Folder of the configuration files of the systems.")
@click.option("--device", default="auto", help="Device: auto, cpu or cuda.")
@click.option("--keep-runs", is_flag=True, help="Keep the run folders of finished runs.")
@click.option(
    "--supersede",
    metavar="REASON",
    help="Repeat runs whose records were made with other settings or have no origin. "
    "The old records move to the folder superseded, with this reason.",
)
@click.option("--dry-run", is_flag=True, help="List what is missing and run nothing.")
@options.json_option
def reproduce_command(
    table: tuple[str, ...],
    data: Path,
    repeats: int,
    dataset: tuple[str, ...],
    system: tuple[str, ...],
    work: Path,
    results: Path | None,
    configs: Path,
    device: str,
    keep_runs: bool,
    supersede: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make the missing runs of the paper's tables, and show the paper's figures beside ours. Call again to resume."""
    from lab.records import read_results
    from lab.reproduce import missing_data, plan_runs, reproduce

    tables = _tables(table)
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"no device is called {device!r}", expected="auto, cpu or cuda")
    systems = _chosen(read_systems(configs), tables, dataset, system)
    records_folder = work / "results" if results is None else results
    absent = missing_data(systems, data)
    for name, remedy in absent.items():
        _log.warning("%s is not in %s: %s", name, data, remedy)
    if dry_run:
        records = read_results(records_folder)
        for run in plan_runs([system for system in systems if system.dataset not in absent], records, repeats):
            _log.info("to run: %s on %s, random seed %d", run.system.name, run.system.dataset, run.random_seed)
    else:
        _check_any_work(systems, absent, read_results(records_folder), data)
        records = reproduce(
            systems, data, records_folder, work, repeats, device, keep_runs=keep_runs, superseded_for=supersede
        )
    _show(systems, records, tables, work, absent, as_json)


def _tables(names: tuple[str, ...]) -> list[Table]:
    for name in names:
        if name not in TABLES:
            raise InputError(f"the paper has no table {name!r}", expected=f"one of {', '.join(TABLES)}")
    return [table for table in TABLES if not names or table in names]


def _chosen(
    systems: list[PaperSystem], tables: list[Table], datasets: tuple[str, ...], names: tuple[str, ...]
) -> list[PaperSystem]:
    for given, known, kind in (
        (datasets, {system.dataset for system in systems}, "data set"),
        (names, {system.name for system in systems}, "system"),
    ):
        for name in given:
            if name not in known:
                raise InputError(f"no {kind} is called {name!r}", expected=f"one of {', '.join(sorted(known))}")
    return [
        system
        for system in systems
        if set(system.tables) & set(tables)
        and (not datasets or system.dataset in datasets)
        and (not names or system.name in names)
    ]


def _check_any_work(
    systems: list[PaperSystem], absent: dict[str, str], records: list[ResultRecord], data: Path
) -> None:
    """Raise an error if the call can neither run nor show anything."""
    if not systems:
        raise InputError("no system is left to run", fix="use fewer of the filters --table, --dataset and --system")
    if all(system.dataset in absent for system in systems) and not records:
        raise InputError(
            "none of the data sets was found",
            where=str(data),
            expected=f"a folder with {' or '.join(absent)}",
            fix=next(iter(absent.values())),
        )


def _show(
    systems: list[PaperSystem],
    records: list[ResultRecord],
    tables: list[Table],
    work: Path,
    absent: dict[str, str],
    as_json: bool,
) -> None:
    """Write the tables as Markdown and JSON files, and print them in one of these formats."""
    from lab.tables import make_rows, rows_as_json, table_markdown

    found: dict[str, Any] = {}
    pages = []
    for table in tables:
        rows = make_rows(systems, records, table)
        found[table] = rows_as_json(rows, table) | {
            "missing_data": {name: remedy for name, remedy in absent.items() if name in {row.dataset for row in rows}}
        }
        pages.append(f"## {table}\n\n{table_markdown(rows, table)}")
    markdown, text = "\n\n".join(pages) + "\n", json.dumps(found, indent=1) + "\n"
    try:
        work.mkdir(parents=True, exist_ok=True)
        (work / "tables.md").write_text(markdown, encoding="utf-8")
        (work / "tables.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write the tables to {work}: {error.strerror or error}") from error
    click.echo(text if as_json else markdown, nl=False)
    _log.info("tables: %s and %s", work / "tables.md", work / "tables.json")


@app.command("tables")
def tables_command() -> None:
    """Write docs/results.md and every other page that shows records."""
    from lab.pages import write_pages

    for page in write_pages():
        click.echo(f"written: {page.relative_to(ROOT)}")


@app.command("words")
def words_command() -> None:
    """List words that the project no longer uses, and what to write instead. The exit code is 1 if there are any."""
    from lab.words import check_words

    found = check_words()
    click.echo("".join(f"{line}\n" for line in found), nl=False)
    raise click.exceptions.Exit(1 if found else 0)


@app.command("supersede")
@click.argument("file", help="A file of lines in lab/results, without its ending.")
@click.argument("key", help="The key of a record; * matches any text.")
@click.argument("reason", help="Why the records are replaced.")
def supersede_command(file: str, key: str, reason: str) -> None:
    """Move records of a benchmark to lab/results/superseded, so that the benchmark makes them again."""
    from lab.lines import supersede_lines

    moved = supersede_lines(RESULTS / f"{file}.jsonl", key, reason)
    click.echo(f"{moved} records moved to lab/results/superseded")


def main() -> None:
    """Run a command; an error of LargeGNN ends it with a message and an exit code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        app(prog_name="python -m lab")
    except LargeGNNError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
