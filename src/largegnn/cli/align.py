"""`largegnn align`: from two graphs and a few known links to an alignment, in a run folder."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Annotated, Any

import typer

from largegnn import api
from largegnn.cli import options
from largegnn.cli.reports import print_expectation, print_figures
from largegnn.cli.tables import number, print_table
from largegnn.data.inputs import DataInput
from largegnn.data.load import load_pair
from largegnn.division import warm_up
from largegnn.errors import InputError
from largegnn.export.files import write_files
from largegnn.export.tabular import plain_names, write_tsv_rows
from largegnn.result import AlignmentResult, report_of
from largegnn.runs.pipeline import run_pipeline
from largegnn.runs.store import RunStore
from largegnn.settings import Settings
from largegnn.stages import STAGE_NAMES, plan_for

__all__ = ["align_command"]

_STAGES = ", ".join(STAGE_NAMES)
_FILES = ("alignment.tsv", "alignment.parquet", "left_out.tsv", "report.json")


def align_command(
    source: Annotated[Path | None, typer.Argument(help="a data set folder, or the triples of the source graph")] = None,
    target: options.TargetArgument = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="the run folder")] = Path("run"),
    seeds: options.SeedsOption = None,
    valid_links: options.ValidLinksOption = None,
    test_links: options.TestLinksOption = None,
    valid_share: options.ValidShareOption = None,
    form: options.FormatOption = None,
    fold: options.FoldOption = None,
    skip_unknown: options.SkipUnknownOption = False,
    seeds_from: options.SeedsFromOption = None,
    seed: options.SeedOption = None,
    device: options.DeviceOption = None,
    min_precision: Annotated[
        float | None, typer.Option("--min-precision", help="expected precision to keep  [match.min_precision]")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", help="train on with confident pairs, so often  [rounds.number]")
    ] = None,
    preset: options.PresetOption = None,
    config: options.SettingsFileOption = None,
    overrides: options.SetOption = None,
    resume: options.ResumeOption = False,
    force: Annotated[str | None, typer.Option("--force", help=f"compute anew from this stage on: {_STAGES}")] = None,
    first: Annotated[str | None, typer.Option("--from", help="first stage to compute")] = None,
    last: Annotated[str | None, typer.Option("--to", help="last stage to compute")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="read the input, say sizes, memory and time, and stop")
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Align two graphs: every pair with a score and a confidence, every other entity with a reason."""
    flags = options.common_flags(
        valid_share=valid_share,
        form=form,
        fold=fold,
        skip_unknown=skip_unknown,
        seeds_from=seeds_from,
        seed=seed,
        device=device,
    ) | {"match.min_precision": min_precision, "rounds.number": rounds}
    paths = (source, target, seeds, valid_links, test_links)
    given, settings = options.input_and_settings(paths, out, resume, preset, config, overrides, flags)
    if dry_run:
        _show_plan(given, settings, as_json)
        return
    # Loading compiled code takes a moment; it goes on while the files are read. Not a daemon: one that is cut off when
    # the program ends with an error adds a traceback to it.
    threading.Thread(target=warm_up).start()
    try:
        run = run_pipeline(out, given, settings, force=force, first=first, last=last)
    finally:
        _remove_outlived(out)
    if "match" not in run.finished():
        if as_json:
            typer.echo(json.dumps({"folder": str(out), "files": {}, **report_of(run)}, indent=1))
            return
        print_table(f"run folder {out}", ("stage", "seconds", "peak MB"), _cost_rows(run.finished(), run.outcome))
        return
    result = api.open_run(out)
    files = _write_files(result, out)
    if as_json:
        typer.echo(json.dumps({"folder": str(out), "files": files, **result.report}, indent=1))
        return
    _show(result, out, files)


def _remove_outlived(out: Path) -> None:
    """Remove the files of an alignment that the run folder no longer holds, as after a failed --force."""
    if (out / "manifest.json").is_file() and "match" not in RunStore(out).stages:
        for name in _FILES:
            (out / name).unlink(missing_ok=True)


def _write_files(result: AlignmentResult, out: Path) -> dict[str, int]:
    """The files of a finished run, with the rows in each."""
    files = {"alignment.tsv": result.to_tsv(out / "alignment.tsv")}
    files["alignment.parquet"] = result.to("parquet", out / "alignment.parquet", accepted_only=False)
    if result.run.store is not None:
        result.run.store.write_text("report.json", json.dumps(result.report, indent=1) + "\n")
    left_out = result.left_out
    left_out = left_out.with_columns(plain_names(left_out["entity"]).alias("entity"))
    write_files({out / "left_out.tsv": lambda sink: write_tsv_rows(left_out, sink)})
    files["left_out.tsv"] = len(left_out)
    return files


def _show(result: AlignmentResult, out: Path, files: dict[str, int]) -> None:
    report = result.report
    print_figures(report)
    print_expectation(report)
    print_table(
        f"run folder {out}", ("stage", "seconds", "peak MB"), _cost_rows(result.run.finished(), result.run.outcome)
    )
    print_table("files", ("file", "rows"), [(str(out / name), number(rows)) for name, rows in files.items()])


def _cost_rows(stages: list[str], outcome: Any) -> list[tuple[str, str, str]]:
    costs = {name: outcome(name) for name in stages}
    rows = [(name, f"{cost.seconds:.2f}", f"{cost.peak_memory_mb:,.0f}") for name, cost in costs.items()]
    total = sum(cost.seconds for cost in costs.values())
    peak = max((cost.peak_memory_mb for cost in costs.values()), default=0.0)
    return [*rows, ("all", f"{total:.2f}", f"{peak:,.0f}")]


def _show_plan(given: DataInput | None, settings: Settings, as_json: bool) -> None:
    from largegnn.planning.seconds import estimate_seconds  # brings torch, which takes a second

    if given is None:
        raise InputError("--dry-run needs the input files", fix="name them instead of --resume")
    pair = load_pair(given, settings.data)
    inspection, plan = api.inspect(pair, settings.protocol), plan_for(pair.task, settings)
    size = inspection.size
    seconds = estimate_seconds(pair.task, settings, plan)
    facts: dict[str, Any] = {
        "benchmark": inspection.benchmark,
        "source_entities": pair.task.num_source_entities,
        "target_entities": pair.task.num_target_entities,
        "triples": len(pair.task.triples),
        "seeds": len(pair.task.seeds(settings.protocol.seeds_from)),
        "subgraphs": plan.num_parts,
        "cap": plan.cap,
        "training_mb": round(size.training_mb),
        "embeddings_mb": round(size.embeddings_mb),
        "seconds": {stage: round(value, 1) for stage, value in seconds.items()},
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    rows = [(key.replace("_", " "), number(value)) for key, value in facts.items() if isinstance(value, int)]
    print_table(f"plan ({plan.reason})", ("", "value"), rows)
    print_table(
        "seconds on this machine, order of magnitude",
        ("stage", "seconds"),
        [(stage, f"{value:,.0f}") for stage, value in [*seconds.items(), ("all", sum(seconds.values()))]],
    )
